"""Tests the cost of a sync, counted instead of timed: allocated objects, calls, and lines."""

import gc
import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

import orjson
import pytest

from hooks.app import create_app
from hooks.service.settings import Settings
from hooks.wire.memo import Memo
from hooks.wire.request import Request
from simulator.metacontroller.hook_client import WsgiHook
from tapp.declared.model import TApp
from tests.builders import Document
from tests.counting import calls, lines
from tests.sizes import size
from tests.typical_requests import NOTHING, SITUATIONS, request_in
from tests.unit.hooks.measure_memory import measured

APP = WsgiHook(create_app(Settings(log_level="ERROR")).wsgi_app)


def call(path: str, request: bytes) -> bytes:
    """Posts a request and returns the body of the response, without the cost of a test client."""
    answer = APP.post(path, request, 10)
    assert answer.status == 200
    return answer.body


@cache
def body(n: int, situation: str = NOTHING) -> tuple[str, bytes]:
    return request_in(situation, n)


def changed(pods: Callable[[dict[str, Document]], None], n: int = 1_000) -> bytes:
    """Returns the sync request of a TApp with `n` instances after the function `pods` has changed
    its pods.
    """
    document = json.loads(body(n)[1])
    pods(document["children"]["Pod.v1"])
    return orjson.dumps(document)


def unchanged(_pods: dict[str, Document]) -> None:
    pass


def without_managed_fields(pods: dict[str, Document]) -> None:
    for pod in pods.values():
        del pod["metadata"]["managedFields"]


# --- objects --------------------------------------------------------------------------------------


@contextmanager
def collected_before() -> Iterator[None]:
    gc.collect()
    gc.freeze()  # the next collection looks only at new objects
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def blocks(read: Callable[[bytes], object], request: bytes) -> int:
    """Returns the number of memory blocks that the result of `read(request)` holds."""
    read(request)  # the caches are filled from now on
    with collected_before():
        before = sys.getallocatedblocks()
        kept = read(request)
        after = sys.getallocatedblocks()
        del kept
    return after - before


def peak(what: str, request: bytes) -> int:
    """Returns the largest number of bytes in use while the request is parsed; `what` is `typed` or
    `loads`.
    """
    return measured(what, request)[0]


def parse(request: bytes) -> object:
    return Request(request, TApp, Memo(0))


PLENTY = size(80, 1_000)
SOME = 2 * PLENTY
"""Tolerance for blocks in the interpreter's free lists: two for each pod."""


def test_managed_fields_are_not_parsed_into_python_objects() -> None:
    plain, slim = changed(unchanged, PLENTY), changed(without_managed_fields, PLENTY)
    assert len(plain) - len(slim) > 1_500 * PLENTY
    assert abs(blocks(parse, plain) - blocks(parse, slim)) < SOME
    assert abs(peak("typed", plain) - peak("typed", slim)) < 100 * PLENTY


def test_measurement_detects_a_decoder_that_parses_everything() -> None:
    plain, slim = changed(unchanged, 200), changed(without_managed_fields, 200)
    assert blocks(orjson.loads, plain) - blocks(orjson.loads, slim) > 10 * 2 * 200
    assert peak("loads", plain) - peak("loads", slim) > 10 * 100 * 200
    assert blocks(orjson.loads, plain) > 5 * blocks(parse, plain)


# --- one unusual pod ------------------------------------------------------------------------------

ODD: dict[str, Callable[[Document], Any]] = {
    "phase is a number": lambda pod: pod["status"].update(phase=7),
    "conditions are null": lambda pod: pod["status"].update(conditions=[None]),
    "generation is huge": lambda pod: pod["metadata"].update(generation=10**18 * 7.5),
    "labels are a list": lambda pod: pod["metadata"].update(labels=["a"]),
    "containers are a number": lambda pod: pod["spec"].update(containers=5),
    "the spec is null": lambda pod: pod.update(spec=None),
}


MIXED = size(60, 1_000)


@pytest.mark.parametrize("change", ODD.values(), ids=ODD)
def test_unusual_pod_does_not_slow_down_the_parsing_of_other_pods(
    change: Callable[[Document], Any],
) -> None:
    request = changed(lambda pods: change(pods["shop/web-50"]), MIXED)
    memo = Memo(1 << 26)
    Request(body(MIXED)[1], TApp, memo)
    read = Request(request, TApp, memo)
    assert read.read == 1
    assert [name for name, each in read.pods.items() if each.pod.unreadable] == ["web-50"]
    assert blocks(parse, request) - blocks(parse, body(MIXED)[1]) < 2 * MIXED
    answers = [json.loads(call("/sync", text)) for text in (body(MIXED)[1], request)]
    plain, mixed = (
        {child["metadata"]["name"]: child for child in answer["children"]} for answer in answers
    )
    del plain["web-50"], mixed["web-50"]
    assert plain == mixed


# --- calls ----------------------------------------------------------------------------------------


def costs_of_few_and_many(
    measure: Callable[[Callable[[], object]], int], situation: str
) -> list[int]:
    """Returns the costs of a sync for a number of instances and for ten times as many."""
    found = []
    for n in (size(10, 100), size(100, 1_000)):
        path, request = body(n, situation)
        call(path, request)
        found.append(measure(lambda path=path, request=request: call(path, request)))  # type: ignore[misc]
    return found


@pytest.mark.parametrize("situation", SITUATIONS)
@pytest.mark.parametrize("measure", [calls, lines])
def test_cost_of_a_sync_grows_linearly(
    measure: Callable[[Callable[[], object]], int], situation: str
) -> None:
    """Promise P9: ten times the instances cost at most eleven times the calls and lines."""
    few, many = costs_of_few_and_many(measure, situation)
    assert few < many <= 11 * few
