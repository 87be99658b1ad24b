"""Second part: the service as shipped, over loopback, and what it needs.

One connection, kept alive, sends one request after another. REF is measured in this process right
before and after them. How the service stands many connections is `python -m tests.load`'s question.
"""

import re
import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.client import HTTPConnection
from pathlib import Path

from bench.inprocess import ROOT, Reference, call, collector_off, quiet
from bench.streams import NOTHING, ROLL, one_changed, request_in
from bench.tables import Row, judged
from demo.service import Service, serve

OK = 200
SECONDS, REQUESTS = 3.0, 200
"""A round of a size takes so long at most, or so many requests; p99 of few is the slowest."""
TARGETS = {100: 1.00, 1_000: 0.50, 10_000: 0.60}
"""p50 / REF."""
SMALL_TARGET = {10: 1.5}
"""p50 in milliseconds."""
MEMORY_TARGET = 2.5
"""(Peak - idle) / body of a worker."""
WORKERS = 2
BODIES = 6
"""Requests of a stream, sent again and again: each has one pod another than the one before."""
SEEDS = (1, 2, 3)

Say = Callable[[str], None]


def measure(rounds: int, sizes: list[int], say: Say) -> Iterator[Row]:
    """One row for each size."""
    for n in sizes:
        say(f"over HTTP: {n} instances")
        bodies = [sent.body for sent in one_changed(n, BODIES)]
        with serving(WORKERS) as service:
            ref = [*_ref(bodies, n)]
            # By the end of the first round the worker has seen the pods.
            times = sorted(_send(service, bodies, rounds)[len(bodies) :])
            ref += _ref(bodies, n)
        p50, reference = statistics.median(times), statistics.median(ref)
        yield {
            "what": "one pod changed",
            "pods": n,
            "requests": len(times),
            "p50 ms": p50,
            "p99 ms": times[int(0.99 * len(times))],
            "REF ms": reference,
            "/ REF": p50 / reference,
            **judged(p50 / reference, TARGETS.get(n)),
            **judged(p50, SMALL_TARGET.get(n), " ms"),
        }


def memory(n: int, say: Say) -> Iterator[Row]:
    """The most that one worker needs for syncs of `n` pods, one after another."""
    for situation in (NOTHING, ROLL):
        say(f"memory of a worker: {n} instances, {situation}")
        bodies = [request_in(situation, n, seed)[1] for seed in SEEDS]
        with serving(1) as service:
            _send(service, [request_in(NOTHING, 10)[1]] * 20)
            (worker,) = Path(f"/proc/{service.pid}/task/{service.pid}/children").read_text().split()
            idle = _resident(worker, "VmRSS")
            _send(service, bodies * 2)
            peak, after = _resident(worker, "VmHWM"), _resident(worker, "VmRSS")
        body = len(bodies[0]) / 2**20
        yield {
            "what": situation,
            "pods": n,
            "body": body,
            "idle": idle,
            "peak": peak,
            "after": after,
            "/ body": (peak - idle) / body,
            **judged((peak - idle) / body, MEMORY_TARGET),
        }


@contextmanager
def serving(workers: int) -> Iterator[Service]:
    """The service with that many workers, and what the Dockerfile sets for the allocator."""
    settings = dict(re.findall(r"(MALLOC_\w+)=(\S+)", (ROOT / "Dockerfile").read_text()))
    # What an answer costs is measured, one after the other.
    settings |= {"WEB_CONCURRENCY": str(workers), "TAPP_PACE_SECONDS": "0"}
    with serve(settings=settings) as service:
        yield service


def _send(service: Service, bodies: list[bytes], rounds: int = 0) -> list[float]:
    """Milliseconds of each request; the bodies are sent once, or in turn for so many rounds."""
    connection = HTTPConnection("127.0.0.1", service.port, timeout=60)
    times: list[float] = []
    stop = time.perf_counter() + rounds * SECONDS
    for number in range(len(bodies) + rounds * REQUESTS):
        started = time.perf_counter()
        if number >= 2 * len(bodies) and started > stop:
            break
        body, head = bodies[number % len(bodies)], {"Content-Type": "application/json"}
        connection.request("POST", "/sync", body, head)
        answer = connection.getresponse()
        said = answer.read()
        times.append((time.perf_counter() - started) * 1e3)
        if answer.status != OK:
            raise SystemExit(f"unexpected answer: {answer.status} {said[:300]!r}")
    connection.close()
    return times


def _ref(bodies: list[bytes], n: int) -> Iterator[float]:
    """Milliseconds of REF, a few times."""
    app = quiet()
    references = [Reference(body, call(app, "/sync", body)) for body in bodies]
    repeat = max(1, 300 // n)
    with collector_off():
        for reference in references:
            started = time.perf_counter()
            for _ in range(repeat):
                reference.ref()
            yield (time.perf_counter() - started) * 1e3 / repeat


def _resident(worker: str, field: str) -> float:
    """A size in /proc/PID/status, in MiB."""
    text = Path(f"/proc/{worker}/status").read_text()
    return int(re.findall(rf"{field}:\s+(\d+) kB", text)[0]) / 1024
