"""Second part: the service as shipped, over loopback, and what it needs.

REF is measured in this process, while the client does nothing, right before and after each cell.
"""

import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from bench.client import Job, run, start
from bench.client import result as finished
from bench.inprocess import SEEDS, Reference, call, collector_off, quiet
from bench.server import Server, serving
from bench.streams import NOTHING, ROLL, one_changed, request_in

CONNECTIONS = (1, 4, 16)
REQUESTS = {10: 1_500, 100: 600, 1_000: 120, 10_000: 24}
"""At most so many requests with one connection, twice as many with more; p99 of few is the
slowest."""
SECONDS = 20.0
TARGETS = {100: 1.00, 1_000: 0.50, 10_000: 0.60}
"""p50 with one connection / REF."""
SMALL_TARGET = {10: 1.5}
"""p50 with one connection, in milliseconds."""
PROBE_TARGET = 100.0
"""Milliseconds: p99 of `/healthz` while four large syncs are in flight on two workers."""
PROBE_SECONDS = 15.0
MEMORY_TARGET = 2.5
"""(Peak - idle) / body of a worker."""
WORKERS = 2
BODIES = 6
"""Requests of a stream, sent again and again."""

Row = dict[str, Any]
Say = Callable[[str], None]


def measure(sizes: list[int], say: Say) -> Iterator[Row]:
    """One row for each size and number of connections."""
    for n in sizes:
        bodies = _stream(n)
        with stored(bodies) as files, serving(WORKERS) as server:
            for connections in CONNECTIONS:
                say(f"over HTTP: {n} instances, {connections} connections")
                job = Job(
                    server.port,
                    "/sync",
                    files,
                    connections,
                    _requests(n) * (1 if connections == 1 else 2),
                    SECONDS,
                )
                ref = [*_ref(bodies, n)]
                figures = run(job)
                ref += _ref(bodies, n)
                p50, reference = figures.quantile(0.5), statistics.median(ref)
                row = {
                    "instances": n,
                    "connections": connections,
                    "requests": len(figures.milliseconds),
                    "p50Ms": round(p50, 3),
                    "p99Ms": round(figures.quantile(0.99), 3),
                    "perSecond": round(figures.per_second, 1),
                    "refMs": round(reference, 3),
                    "p50ToRef": round(p50 / reference, 3),
                }
                yield {**row, **_target(row)}


def _stream(n: int) -> list[bytes]:
    """Requests of one TApp, one pod another than in the request before, to be sent in turn."""
    return [sent.body for sent in one_changed(n, BODIES)]


def _requests(n: int) -> int:
    return next((count for size, count in REQUESTS.items() if n <= size), 12)


def _target(row: Row) -> Row:
    n = row["instances"]
    if row["connections"] != 1:
        return {}
    if n in SMALL_TARGET:
        return {"targetMs": SMALL_TARGET[n], "met": row["p50Ms"] <= SMALL_TARGET[n]}
    if n in TARGETS:
        return {"target": TARGETS[n], "met": row["p50ToRef"] <= TARGETS[n]}
    return {}


def _ref(bodies: list[bytes], n: int) -> Iterator[float]:
    """Milliseconds of REF, a few times."""
    app = quiet()
    references = [Reference(body, call(app, "/sync", body)) for body in bodies]
    repeat = max(1, 300 // n)
    with collector_off():
        for turn in range(6):
            reference = references[turn % len(references)]
            started = time.perf_counter()
            for _ in range(repeat):
                reference.ref()
            yield (time.perf_counter() - started) * 1e3 / repeat


@contextmanager
def stored(bodies: list[bytes]) -> Iterator[list[str]]:
    """The bodies as files for the client process."""
    with tempfile.TemporaryDirectory(prefix="tapp-bench-") as place:
        files = [Path(place) / f"{index}.json" for index in range(len(bodies))]
        for file, body in zip(files, bodies, strict=True):
            file.write_bytes(body)
        yield [str(file) for file in files]


def probes(n: int, say: Say) -> Row:
    """`/healthz`, by a new connection each time, while four syncs of `n` pods are in flight."""
    say(f"/healthz while four syncs of {n} pods are in flight")
    bodies = _stream(n)
    with stored(bodies) as files, serving(WORKERS) as server:
        load = start(Job(server.port, "/sync", files, connections=4, seconds=PROBE_SECONDS + 5))
        time.sleep(3)
        probe = Job(server.port, "/healthz", seconds=PROBE_SECONDS, pause=0.02, anew=True)
        figures = run(probe)
        syncs = finished(load)
    p99 = figures.quantile(0.99)
    return {
        "instances": n,
        "probes": len(figures.milliseconds),
        "p50Ms": round(figures.quantile(0.5), 2),
        "p99Ms": round(p99, 2),
        "maxMs": round(max(figures.milliseconds), 2),
        "syncP50Ms": round(syncs.quantile(0.5), 1),
        "target": PROBE_TARGET,
        "met": p99 <= PROBE_TARGET,
    }


def memory(n: int, say: Say) -> list[Row]:
    """What one worker needs at most for syncs of `n` pods, one after another."""
    rows = []
    for situation in (NOTHING, ROLL):
        say(f"memory of a worker: {n} instances, {situation}")
        bodies = [request_in(situation, n, seed)[1] for seed in SEEDS]
        with stored(bodies) as files, serving(1) as server:
            idle = _warmed_up(server)
            peak = 0
            for _ in range(2):
                Path(f"/proc/{server.workers[0]}/clear_refs").write_text("5")
                run(Job(server.port, "/sync", files, requests=len(files)))
                peak = max(peak, _status(server.workers[0], "VmHWM"))
            after = _status(server.workers[0], "VmRSS")
        body = len(bodies[0])
        share = (peak - idle) / body
        rows.append(
            {
                "instances": n,
                "situation": situation,
                "bodyMiB": round(body / 2**20, 1),
                "idleMiB": round(idle / 2**20, 1),
                "peakMiB": round(peak / 2**20, 1),
                "afterMiB": round(after / 2**20, 1),
                "peakOverIdleToBody": round(share, 2),
                "target": MEMORY_TARGET,
                "met": share <= MEMORY_TARGET,
            }
        )
    return rows


def _warmed_up(server: Server) -> int:
    """Resident bytes after a few small syncs."""
    with stored([request_in(NOTHING, 10)[1]]) as files:
        run(Job(server.port, "/sync", files, requests=20))
    return _status(server.workers[0], "VmRSS")


def _status(pid: int, field: str) -> int:
    """A size in /proc/PID/status, in bytes."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith(f"{field}:"):
            return int(line.split()[1]) * 1024
    raise SystemExit(f"/proc/{pid}/status has no {field}")
