"""Second part: the same in one process, with nothing that could be remembered of any pod.

REF is `orjson.loads` of the request and `orjson.dumps` of the answer, FLOOR a minimal typed decode
and a spliced encode, both with the garbage collector off. The application is served as shipped:
its collector settings, its log (to nowhere). The three take turns, and every turn takes the next of
several requests with other pods. Requests as a cluster sends them: `bench/stream.py`.
"""

import gc
import io
import itertools
import logging
import os
import runpy
import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
import orjson

from bench.requests import SITUATIONS, Sample
from hooks.app import create_app
from hooks.service.logs import LOGGER
from hooks.service.settings import Settings

ROOT = Path(__file__).parents[1]
SEEDS = (1, 2, 3)
LARGEST = 10_000
"""Instances of a size that is measured less often."""
GROWTH_TARGET = 11.0
"""Per tenfold number of instances."""

Row = dict[str, Any]
Application = Callable[..., Any]


class _Meta(msgspec.Struct, gc=False):
    name: str


class _Condition(msgspec.Struct, gc=False):
    type: str
    status: str


class _Status(msgspec.Struct, gc=False):
    phase: str | None = None
    conditions: list[_Condition] = []


class _Pod(msgspec.Struct, gc=False):
    metadata: _Meta
    status: _Status | None = None


class _Request(msgspec.Struct):
    parent: msgspec.Raw
    children: dict[str, dict[str, _Pod]]


_floor_decode = msgspec.json.Decoder(_Request).decode


class Reference:
    """What a request and its answer cost at least: REF and FLOOR."""

    def __init__(self, body: bytes, answer: bytes) -> None:
        """Takes the answer apart beforehand; only its encoding is measured."""
        self._body = body
        self._tree = orjson.loads(answer)
        self._pieces = {
            key: [msgspec.Raw(orjson.dumps(item)) for item in value]
            if key == "children"
            else msgspec.Raw(orjson.dumps(value))
            for key, value in self._tree.items()
        }

    def ref(self) -> None:
        """Parses and writes everything; what was parsed is freed on the way out."""
        orjson.loads(self._body)
        orjson.dumps(self._tree)

    def floor(self) -> None:
        """Decodes names, phases and conditions, and writes an answer that is ready."""
        _floor_decode(self._body)
        msgspec.json.encode(self._pieces)


def measure(
    rounds: int, sizes: list[int], *, best: bool, say: Callable[[str], None]
) -> Iterator[Row]:
    """One row for each size and situation: milliseconds and ratios.

    Args:
        rounds: how often the three take turns; three times as often below 10,000 instances.
        sizes: numbers of instances.
        best: minima of CPU time, not medians of time: for a machine that does other things, too.
        say: told what is being done.
    """
    before: dict[str, float] = {}
    for n in sizes:
        samples = [Sample(n, seed) for seed in SEEDS]
        for situation in SITUATIONS:
            say(f"in process: {n} instances, {situation}")
            requests = [sample.request(situation) for sample in samples]
            turns = rounds * 3 if n < LARGEST else rounds
            taken = measured(requests, turns, n, best=best)
            middle = min if best else statistics.median
            times = {name: middle(values) for name, values in taken.items()}
            row = {
                "instances": n,
                "situation": situation,
                "bytes": len(requests[0][1]),
                **{f"{key}Ms": round(value * 1e3, 4) for key, value in times.items()},
                "handlerToRef": round(times["handler"] / times["ref"], 3),
                "handlerToFloor": round(times["handler"] / times["floor"], 2),
            }
            last = before.get(situation)
            if last:
                row["growth"] = round(times["handler"] / last, 2)
            before[situation] = times["handler"]
            yield row


def measured(
    requests: list[tuple[str, bytes]],
    rounds: int,
    n: int,
    *,
    best: bool = False,
) -> dict[str, list[float]]:
    """Seconds that REF, FLOOR and the handler took each time, for requests of `n` instances."""
    with as_shipped() as make:
        app = make()
        clock = time.thread_time if best else time.perf_counter
        return _times(app, requests, rounds, n, clock=clock)


def _times(
    app: Application,
    requests: list[tuple[str, bytes]],
    rounds: int,
    n: int,
    *,
    clock: Callable[[], float],
) -> dict[str, list[float]]:
    references = [Reference(body, call(app, path, body)) for path, body in requests]
    repeat = max(1, 300 // n)
    times: dict[str, list[float]] = {"ref": [], "floor": [], "handler": []}
    turns = itertools.cycle(range(len(requests)))

    candidates: dict[str, Callable[[int], object]] = {
        "ref": lambda turn: references[turn].ref(),
        "floor": lambda turn: references[turn].floor(),
        "handler": lambda turn: call(app, *requests[turn]),
    }
    with collector_off():
        for _ in range(rounds):
            which = [next(turns) for _ in range(repeat)]
            for name, run in candidates.items():
                if name == "handler":
                    gc.enable()
                for turn in which:
                    started = clock()
                    run(turn)
                    times[name].append(clock() - started)
                gc.disable()
    return times


@contextmanager
def collector_off() -> Iterator[None]:
    """The garbage collector is off, and what is there already is none of its business."""
    gc.collect()
    gc.freeze()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
        gc.unfreeze()


@contextmanager
def as_shipped(clock: Callable[[], float] = time.time) -> Iterator[Callable[[], Application]]:
    """Makes applications with gunicorn.conf.py's collector settings; their log goes nowhere."""
    thresholds, inherited = gc.get_threshold(), os.environ.get("PROMETHEUS_MULTIPROC_DIR")
    served = runpy.run_path(str(ROOT / "gunicorn.conf.py"))
    level = LOGGER.level
    create_app(Settings())  # makes the log, if nothing has yet

    def make() -> Application:
        app = create_app(Settings(), clock=clock)
        served["post_worker_init"](None)
        return app

    with Path(os.devnull).open("w", encoding="utf-8") as nowhere:
        shown = [item for item in LOGGER.handlers if isinstance(item, logging.StreamHandler)]
        streams = [(item, item.setStream(nowhere)) for item in shown]
        try:
            yield make
        finally:
            gc.set_threshold(*thresholds)
            gc.unfreeze()
            served["on_exit"](None)
            if inherited is None:
                os.environ.pop("PROMETHEUS_MULTIPROC_DIR", None)
            LOGGER.setLevel(level)
            for handler, stream in streams:
                handler.setStream(stream)


def call(app: Application, path: str, body: bytes) -> bytes:
    """One request through the WSGI application, without a test client's overhead."""
    environ = {
        "REQUEST_METHOD": "POST",
        "PATH_INFO": path,
        "SERVER_NAME": "bench",
        "SERVER_PORT": "80",
        "SERVER_PROTOCOL": "HTTP/1.1",
        "CONTENT_TYPE": "application/json",
        "CONTENT_LENGTH": str(len(body)),
        "wsgi.input": io.BytesIO(body),
        "wsgi.url_scheme": "http",
        "wsgi.errors": io.StringIO(),
    }
    codes: list[str] = []
    answer = b"".join(app(environ, lambda status, _headers: codes.append(status)))
    if codes != ["200 OK"]:
        raise SystemExit(f"{path} answered {codes}: {answer[:200]!r}")
    return answer
