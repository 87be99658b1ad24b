"""First part: requests as a cluster sends them, the same TApp again with few other pods.

The streams are in `bench/streams.py`. One worker, as shipped, gets a stream's requests one after
the other, with the times at which they were sent. REF is that of `bench/inprocess.py`,
taken of the same request and its answer right after it, in the same process.
"""

import gc
import statistics
import time
import tracemalloc
from collections.abc import Callable, Iterator
from typing import Any

from bench.echo import Echo
from bench.herd import Call
from bench.inprocess import GROWTH_TARGET, Application, Reference, as_shipped, call, collector_off
from bench.streams import ECHO, FULL_REF, ONE_CHANGED, SMALL, Stream, at_rest, streams

MEMO_PODS = 1_000
MEMO_TARGET = 4_096
"""Bytes that a worker keeps of a pod between two syncs."""
LARGE = 100_000_000
"""Bytes of all requests of a stream from which on it is played less often."""

Row = dict[str, Any]
Times = dict[str, list[list[float]]]
"""Seconds by what was done, then by request, then by pass."""


def measure(
    rounds: int, sizes: list[int], *, best: bool, say: Callable[[str], None]
) -> Iterator[Row]:
    """One row for each stream, in milliseconds and ratios, and one for the memo's memory.

    Args:
        rounds: how often each stream is played; a third of it where its requests are large.
        sizes: numbers of instances, see `streams`.
        best: minima of CPU time, not medians of time: for a machine that does other things, too.
        say: told what is being done.

    A request's time is the median (or minimum) over the passes; a row's is the median of its
    requests' times, because they differ in what has happened.
    """
    smaller: Row | None = None
    for stream in streams(sizes):
        say(f"stream: {stream.pods} pods, {stream.templates} templates, {stream.name}")
        row = _row(stream, rounds, best=best)
        if (stream.name, stream.templates) == (ONE_CHANGED, 1) and stream.pods in sizes:
            if smaller is not None and stream.pods == smaller["pods"] * 10:
                row["growth"] = round(row["handlerMs"] / smaller["handlerMs"], 2)
                row["growthMet"] = row["growth"] <= GROWTH_TARGET
            smaller = row
        yield row
    if max(sizes) >= MEMO_PODS:
        say("what is kept of a pod")
        yield memory_row(MEMO_PODS)


def _row(stream: Stream, rounds: int, *, best: bool) -> Row:
    calls = stream.calls()
    full = stream.full() if stream.full else None
    size = sum(len(part) for sent in calls for part in sent.parts)
    passes = rounds if size < LARGE else max(2, rounds // 3)
    clock = time.thread_time if best else time.perf_counter
    middle = min if best else statistics.median
    combined = sum if stream.whole else statistics.median
    times = {
        name: combined([middle(of_one) for of_one in requests[stream.warm :]])
        for name, requests in _times(stream, calls, full, passes, clock).items()
        if requests[-1]
    }
    row: Row = {
        "stream": stream.name,
        "pods": stream.pods,
        "templates": stream.templates,
        "changed": stream.changed,
        "syncs": len(calls) - stream.warm,
        "bytes": round(size / (1 if stream.whole else len(calls))),
        **{f"{name}Ms": round(value * 1e3, 4) for name, value in times.items()},
        "handlerToRef": round(times["handler"] / times["ref"], 3),
        "against": stream.against,
    }
    ratio = row["handlerToRef"]
    if stream.against == ECHO:
        ratio = row["handlerToEcho"] = round(times["handler"] / times["echo"], 3)
    elif stream.against == FULL_REF:
        ratio = row["handlerToFullRef"] = round(times["handler"] / times["full"], 3)
    if stream.target is not None:
        row |= {"target": stream.target, "met": ratio <= stream.target}
    return row


def _times(
    stream: Stream, calls: list[Call], full: Call | None, passes: int, clock: Callable[[], float]
) -> Times:
    """Plays the stream; a pass begins with an application that has not answered anything yet."""
    times: Times = {name: [[] for _ in calls] for name in ("handler", "ref", *_MORE)}
    now, echo = calls[0].now, Echo()
    with as_shipped(lambda: now) as make:
        whole = _reference_of(make(), full) if full else None
        for _ in range(passes):
            app = make()
            with collector_off():
                for index, sent in enumerate(calls):
                    if stream.cold:
                        app = make()
                    body, now = sent.body, sent.now
                    answer = _timed(clock, times["handler"][index], app, body)
                    if stream.against == ECHO:
                        echo.answer = answer
                        _timed(clock, times["echo"][index], echo.app, body)
                    reference = Reference(body, answer)
                    parts = {"ref": reference.ref}
                    if whole is not None:
                        parts["full"] = whole.ref
                    for name, run in parts.items():
                        started = clock()
                        run()
                        times[name][index].append(clock() - started)
                    # Else the collector would look through it while the next request is answered.
                    del reference, parts
    return times


_MORE = ("echo", "full")
"""What is not measured for every stream."""


def _timed(clock: Callable[[], float], times: list[float], app: Application, body: bytes) -> bytes:
    """The answer, with the collector as the service has it."""
    gc.enable()
    started = clock()
    answer = call(app, "/sync", body)
    times.append(clock() - started)
    gc.disable()
    return answer


def _reference_of(app: Application, full: Call) -> Reference:
    body = full.body
    return Reference(body, call(app, "/sync", body))


def memory_row(pods: int) -> Row:
    """What is kept between two syncs, as a row of the same table."""
    kept = round(memo_bytes_per_pod(pods))
    return {
        "stream": "kept between syncs",
        "pods": pods,
        "templates": 1,
        "bytesPerPod": kept,
        "target": MEMO_TARGET,
        "against": "bytes",
        "met": kept <= MEMO_TARGET,
    }


def memo_bytes_per_pod(pods: int = MEMO_PODS) -> float:
    """Bytes that are still held of each pod after a worker's first sync of a TApp with so many.

    The request's own bytes count as far as something keeps them.
    """
    small, sent = at_rest(SMALL), at_rest(pods)
    now = sent.now
    with as_shipped(lambda: now) as make:
        call(make(), "/sync", small.body)  # libraries have memos, too
        app = make()
        gc.collect()
        tracemalloc.start()
        try:
            before, _ = tracemalloc.get_traced_memory()
            call(app, "/sync", sent.body)
            gc.collect()
            after, _ = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
    return (after - before) / pods
