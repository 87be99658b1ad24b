"""First part: the WSGI application against parsing and writing the same JSON, in one process.

REF is `orjson.loads` of the request and `orjson.dumps` of the answer, FLOOR a minimal typed decode
and a spliced encode, both with the garbage collector off. The application is served as shipped:
its collector settings, its log (to nowhere). The three take turns, and every turn takes the next of
several requests, so that nothing can be remembered per pod.
"""

import gc
import io
import itertools
import os
import runpy
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
import orjson

from bench.requests import CREATE, FINALIZE, NOTHING, ROLL, SITUATIONS, Sample
from hooks.app import create_app
from hooks.logs import LOGGER
from hooks.settings import Settings

ROOT = Path(__file__).parents[1]
SEEDS = (1, 2, 3)
TARGETS = {10: 1.25, 100: 0.75, 1_000: 0.30, 10_000: 0.45}
"""handler / REF with nothing to do; half as much again in the middle of a roll."""
CREATE_TARGET = {1_000: 1.00}
"""handler / REF of the request with nothing to do: the request to create all has no pods."""
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
    rounds: int, sizes: list[int], *, cold: bool, best: bool, say: Callable[[str], None]
) -> Iterator[Row]:
    """One row for each size and situation: milliseconds and ratios.

    Args:
        rounds: how often the three take turns; three times as often below 10,000 instances.
        sizes: numbers of instances.
        cold: forget the templates of earlier requests before each request.
        best: minima of CPU time, not medians of time: for a machine that does other things, too.
        say: told what is being done.
    """
    before: dict[str, float] = {}
    for n in sizes:
        samples = [Sample(n, seed) for seed in SEEDS]
        full_ref = 0.0
        for situation in SITUATIONS:
            say(f"in process: {n} instances, {situation}")
            requests = [sample.request(situation) for sample in samples]
            turns = rounds * 3 if n < max(TARGETS) else rounds
            taken = measured(requests, turns, n, cold=cold, best=best)
            middle = min if best else statistics.median
            times = {name: middle(values) for name, values in taken.items()}
            if situation == NOTHING:
                full_ref = times["ref"]
            row = {
                "instances": n,
                "situation": situation,
                "bytes": len(requests[0][1]),
                **{f"{key}Ms": round(value * 1e3, 4) for key, value in times.items()},
                "handlerToRef": round(times["handler"] / times["ref"], 3),
                "handlerToFullRef": round(times["handler"] / full_ref, 3),
                "handlerToFloor": round(times["handler"] / times["floor"], 2),
            }
            last = before.get(situation)
            if last:
                row["growth"] = round(times["handler"] / last, 2)
            before[situation] = times["handler"]
            yield {**row, **_targets(row)}


def _targets(row: Row) -> Row:
    """The row's target, and whether it is met."""
    n, situation = row["instances"], row["situation"]
    targets, ratio = TARGETS, row["handlerToRef"]
    if situation == CREATE:
        targets, ratio = CREATE_TARGET, row["handlerToFullRef"]
    limit = targets.get(n) if situation != FINALIZE else None
    if limit is None:
        return {}
    if situation == ROLL:
        limit *= 1.5
    return {"target": round(limit, 3), "met": ratio <= limit}


def measured(
    requests: list[tuple[str, bytes]],
    rounds: int,
    n: int,
    *,
    cold: bool = False,
    best: bool = False,
) -> dict[str, list[float]]:
    """Seconds that REF, FLOOR and the handler took each time, for requests of `n` instances."""
    with _as_shipped() as app:
        clock = time.thread_time if best else time.perf_counter
        return _times(app, requests, rounds, n, cold=cold, clock=clock)


def _times(  # noqa: PLR0913 - the caller's options
    app: Application,
    requests: list[tuple[str, bytes]],
    rounds: int,
    n: int,
    *,
    cold: bool,
    clock: Callable[[], float],
) -> dict[str, list[float]]:
    forget = _memos() if cold else []
    references = [Reference(body, call(app, path, body)) for path, body in requests]
    repeat = max(1, 300 // n)
    times: dict[str, list[float]] = {"ref": [], "floor": [], "handler": []}
    turns = itertools.cycle(range(len(requests)))

    def handler(turn: int) -> None:
        for memo in forget:
            memo()
        call(app, *requests[turn])

    candidates: dict[str, Callable[[int], None]] = {
        "ref": lambda turn: references[turn].ref(),
        "floor": lambda turn: references[turn].floor(),
        "handler": handler,
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


def _memos() -> list[Callable[[], None]]:
    """What clears each memo that the service keeps from one request to the next."""
    return [
        found.cache_clear
        for name, module in list(sys.modules.items())
        if name.partition(".")[0] in ("tapp", "hooks")
        for found in vars(module).values()
        if hasattr(found, "cache_clear") and getattr(found, "__module__", name) == name
    ]


@contextmanager
def _as_shipped() -> Iterator[Application]:
    """The application, with gunicorn.conf.py's collector settings; its log lines go nowhere."""
    thresholds, inherited = gc.get_threshold(), os.environ.get("PROMETHEUS_MULTIPROC_DIR")
    served = runpy.run_path(str(ROOT / "gunicorn.conf.py"))
    level = LOGGER.level
    app = create_app(Settings())
    with Path(os.devnull).open("w", encoding="utf-8") as nowhere:
        streams = [(item, item.setStream(nowhere)) for item in LOGGER.handlers]  # type: ignore[attr-defined]
        try:
            served["post_worker_init"](None)
            yield app
        finally:
            gc.set_threshold(*thresholds)
            gc.unfreeze()
            served["on_exit"](None)
            if inherited is None:
                os.environ.pop("PROMETHEUS_MULTIPROC_DIR", None)
            LOGGER.setLevel(level)
            for handler, stream in streams:
                handler.setStream(stream)  # type: ignore[attr-defined]


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
