"""First part: requests as a cluster sends them, the same TApp again with few other pods.

The streams are in `bench/streams.py`. One worker, as shipped, gets a stream's requests one after
the other, with the times at which they were sent. REF is that of `bench/inprocess.py`,
taken of the same request and its answer right after it, in the same process.
"""

import gc
import statistics
import time
from collections.abc import Callable, Iterator

from bench.herd import Call
from bench.inprocess import Reference, as_shipped, call, collector_off
from bench.streams import ONE_CHANGED, Stream, streams
from bench.tables import Row, judged

GROWTH_TARGET = 11.0
"""Per tenfold number of instances."""
LARGE = 100_000_000
"""Bytes of all requests of a stream from which on it is played less often."""

Times = list[list[float]]
"""Seconds by request, then by pass."""


def measure(
    rounds: int, sizes: list[int], *, best: bool, say: Callable[[str], None]
) -> Iterator[Row]:
    """One row for each stream, in milliseconds and ratios.

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
                growth = row["handler ms"] / smaller["handler ms"]
                row["growth"] = f"{growth:.1f}{'' if growth <= GROWTH_TARGET else ' missed'}"
            smaller = row
        yield row


def _row(stream: Stream, rounds: int, *, best: bool) -> Row:
    calls = stream.calls()
    size = sum(len(part) for sent in calls for part in sent.parts)
    passes = rounds if size < LARGE else max(2, rounds // 3)
    middle = min if best else statistics.median
    clock = time.thread_time if best else time.perf_counter
    handler, ref = (
        statistics.median(middle(of_one) for of_one in times[stream.warm :]) * 1e3
        for times in _times(stream, calls, passes, clock)
    )
    return {
        "what": stream.name,
        "pods": stream.pods,
        "templates": stream.templates,
        "changed": stream.changed,
        "MB": size / len(calls) / 1e6,
        "REF ms": ref,
        "handler ms": handler,
        "/ REF": handler / ref,
        **judged(handler / ref, stream.target),
    }


def _times(
    stream: Stream, calls: list[Call], passes: int, clock: Callable[[], float]
) -> tuple[Times, Times]:
    """Plays the stream: the handler's times, and REF's.

    A pass begins with an application that has not answered anything yet.
    """
    handler: Times = [[] for _ in calls]
    ref: Times = [[] for _ in calls]
    now = calls[0].now

    def sent_at() -> float:
        return now

    for _ in range(passes):
        app = as_shipped(sent_at)
        with collector_off():
            for index, sent in enumerate(calls):
                if stream.cold:
                    app = as_shipped(sent_at)
                body, now = sent.body, sent.now
                gc.enable()  # the service has it on
                started = clock()
                answer = call(app, "/sync", body)
                handler[index].append(clock() - started)
                gc.disable()
                reference = Reference(body, answer)
                started = clock()
                reference.ref()
                ref[index].append(clock() - started)
                # Else the collector would look through it while the next request is answered.
                del reference
    return handler, ref
