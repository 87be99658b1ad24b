"""The benchmark's streams: what differs from request to request is what they say, and no more."""

import gc
import json
from collections.abc import Callable, Iterator
from functools import partial
from itertools import pairwise
from typing import Any

import pytest

from bench import compare, pod_status, stream, streams, tables
from bench.herd import Call
from bench.inprocess import call
from bench.parent import NEW, OLD
from hooks.app import create_app
from hooks.service.settings import Settings
from tests.builders import Document


@pytest.fixture(autouse=True)
def _frozen_again() -> Iterator[None]:
    """A measurement thaws what was frozen: every later collection would look at all modules."""
    yield
    gc.freeze()


def bodies(calls: list[Call]) -> list[Document]:
    return [json.loads(sent.body) for sent in calls]


def pods(body: Document) -> Document:
    found: Document = body["children"]["Pod.v1"]
    return found


def differing(before: Document, after: Document) -> set[str]:
    return {name for name, pod in pods(after).items() if pods(before)[name] != pod}


STREAMS: dict[str, tuple[Callable[[], list[Call]], int]] = {
    "one changed": (partial(streams.one_changed, 20, 8), 1),
    "many templates": (partial(streams.one_changed, 20, 8, 9), 1),
    "a value each": (partial(streams.one_changed, 20, 8, values=True), 1),
    "middle of a roll": (partial(streams.rolling, 100, 2, 6), 4),
    "create all": (partial(streams.create_all, 20, 4), 0),
}


@pytest.mark.parametrize(("make", "changed"), STREAMS.values(), ids=STREAMS)
def test_so_many_pods_differ_from_the_request_before(
    make: Callable[[], list[Call]], changed: int
) -> None:
    found = bodies(make())
    assert {len(differing(*pair)) for pair in pairwise(found)} == {changed}


@pytest.mark.parametrize(("make", "changed"), STREAMS.values(), ids=STREAMS)
def test_a_request_has_the_status_of_the_answer_before(
    make: Callable[[], list[Call]], changed: int
) -> None:
    calls = make()
    now = calls[0].now
    app = create_app(Settings(log_level="ERROR"), clock=lambda: now)
    statuses, parents = [], []
    for sent in calls:
        now = sent.now
        parents.append(json.loads(sent.body)["parent"])
        statuses.append(json.loads(call(app, "/sync", sent.body))["status"])
    if not changed:
        return
    for answered, parent in zip(statuses, parents[1:], strict=False):
        assert {**answered, "observedGeneration": parent["metadata"]["generation"]} == (
            parent["status"]
        )


def test_a_changed_pod_has_never_been_seen_before() -> None:
    calls = streams.one_changed(20, 8)
    seen: set[bytes] = set()
    for sent in calls:
        new = {part for part in sent.parts if b'"Pod"' in part} - seen
        assert len(new) >= (1 if seen else 20)
        seen |= new
    # Only the parent's part and one pod's are not those of the request before.
    for before, after in pairwise(calls):
        same = {id(part) for part in before.parts}
        assert sum(b'"kind":"Pod"' in part for part in after.parts if id(part) not in same) == 1


def test_every_kind_of_change_is_counted_as_often() -> None:
    for found in streams.streams([10, 100]):
        assert (len(found.calls()) - found.warm) % streams.KINDS == 0


def test_pods_in_the_middle_of_a_roll_are_updated_where_they_are() -> None:
    first, *_, last = bodies(streams.rolling(100, 2, 6))
    assert {key: pod["metadata"]["uid"] for key, pod in pods(first).items()} == {
        key: pod["metadata"]["uid"] for key, pod in pods(last).items()
    }
    running = [
        sum(
            status["ready"] and status["image"] == NEW
            for pod in pods(body).values()
            for status in pod["status"]["containerStatuses"]
        )
        for body in (first, last)
    ]
    assert running == [50, 50 + 7 * 2]


def test_a_whole_roll_has_every_request_from_the_change_to_the_last_instance() -> None:
    before, *roll = bodies(streams.whole_roll(10))
    images = [
        {pod["spec"]["containers"][0]["image"] for pod in pods(body).values()}
        for body in (before, roll[0], roll[-1])
    ]
    assert images == [{OLD}, {OLD}, {NEW}]
    assert before["parent"]["spec"] != roll[0]["parent"]["spec"]
    assert set.union(*(differing(*pair) for pair in pairwise(roll))) == set(pods(before))


# --- figures --------------------------------------------------------------------------------------


def test_small_streams_are_measured_shown_and_compared() -> None:
    told: list[str] = []
    rows: list[dict[str, Any]] = list(stream.measure(1, [10, 100], best=True, say=told.append))
    changed, first = rows[::2], rows[1::2]
    assert [(row["pods"], row["against"]) for row in changed] == [(10, "echo"), (100, "REF")]
    assert [(row["stream"], row["pods"]) for row in first] == [
        ("first request", n) for n in (10, 100)
    ]
    assert all(row["handlerMs"] > 0 and row["refMs"] > 0 for row in rows)
    assert all("met" in row for row in changed)
    assert rows[0]["echoMs"] > 0
    assert "growth" in changed[1]
    assert len(told) == 4
    rows.append(stream.memory_row(100))
    assert 0 < rows[-1]["bytesPerPod"] < 100_000
    shown = tables.table("stream", rows)
    assert shown.row_count == 5
    assert all(any(column.cells) for column in shown.columns), "no column is empty"
    assert [key[0] for key in compare.values({"stream": rows})] == ["stream"] * 5


# --- /pod-status ----------------------------------------------------------------------------------


def test_calls_of_the_decorator_are_of_pods_that_stay_as_they_are() -> None:
    sent = pod_status.requests_of(pod_status.PODS)
    assert 9_500 < sum(map(len, sent)) / len(sent) < 11_000
    assert len({json.loads(body)["object"]["metadata"]["uid"] for body in sent}) == len(sent)
    answers = [json.loads(pod_status.answer_to(body)) for body in sent]
    assert answers == [{"status": json.loads(body)["object"]["status"]} for body in sent]


def test_calls_of_the_decorator_are_measured_shown_and_compared() -> None:
    told: list[str] = []
    row = pod_status.measure(1, told.append, requests=40)
    assert row["requests"] == 40
    assert row["perSecond"] > 0 < row["echoPerSecond"]
    shown = tables.table("podStatus", row)
    assert shown.row_count == 1
    assert all(all(column.cells) for column in shown.columns), "no cell is empty"
    assert len(told) == 1
    assert list(compare.values({"podStatus": row}).values()) == [row["timeToEcho"]]
