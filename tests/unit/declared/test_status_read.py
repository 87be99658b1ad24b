"""The parent's status, whoever wrote it: what makes no sense is absent, and the sync goes on."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.builders import Document, as_sent, tapp
from tests.counting import calls
from tests.unit.world import Hook, World

HOOK = Hook()
SINCE = "2026-01-05T10:00:00Z"
AFTER = "9999-12-31T23:59:59-23:59"
"""A time in the year 10000."""


def world(**spec: Any) -> World:
    """Three instances, of which one runs, one has failed and one is missing at the second sync."""
    found = World(tapp(**{"replicas": 3, "forceDeletePod": True, **spec}), hook=HOOK)
    found.sync()
    found.kubelet()
    return found


REQUEST = world().request()
MISSING: Document = {**REQUEST, "children": {**REQUEST["children"], "Pod.v1": {}}}


def answer(request: Document, status: Any) -> Document:
    """Answers of a sync and a finalize to a parent with this status; no error, whatever it is."""
    asked = {**request, "parent": {**request["parent"], "status": status}}
    assert HOOK.post("/finalize", {**asked, "finalizing": True}).status_code == 200
    found: Document = HOOK.answer("/sync", asked)
    return found


NONSENSE = {
    "status is a text": "x",
    "status is a list": [1],
    "status is a number": 5,
    "statuses is a list": {"statuses": ["Succ"]},
    "a word that is a number": {"statuses": {"0": 5}},
    "replacing a number": {"replacing": {"0": 5}},
    "a count of failures that is a text": {"failures": {"0": "many"}},
    "a negative count of failures": {"failures": {"0": -3}},
    "a count of failures without end": {"failures": {"0": 10**30, "1": 10**9}},
    "half a failure": {"failures": {"0": 1.5, "1": True}},
    "conditions are a map": {"conditions": {"type": "Ready"}},
    "conditions are numbers": {"conditions": [1, None, [], "Ready"]},
    "a condition without its type": {"conditions": [{"type": 5, "status": []}]},
    "a generation that is a text": {"observedGeneration": "1"},
    "a generation without end": {"observedGeneration": 1e300},
    "not created: an exponent": {"notCreated": {SINCE: "0-\u00b2"}},
    "not created: other digits": {"notCreated": {SINCE: "\u0661"}},
    "not created: digits without end": {"notCreated": {SINCE: "0-" + "9" * 5000}},
    "not created: backwards": {"notCreated": {SINCE: "5-3"}},
    "not created: since the year 10000": {"notCreated": {AFTER: "0-2"}},
    "not created: since no time": {"notCreated": {"yesterday": "0-2", "": "0-2"}},
    "not created: a list": {"notCreated": {SINCE: ["0-2"]}},
    "unserved since the year 10000": {"unserved": {"0": AFTER}},
    "settling since a week": {"settling": {"0/1": "2026-W01-1"}},
    "progressed as nobody writes it": {"progressed": {"x": SINCE, "1/1": SINCE, "-1/0/0": SINCE}},
    "progressed since the year 10000": {"progressed": {"1/3/3": AFTER}},
    "progressed without end": {"progressed": {f"{'9' * 5000}/1/1": SINCE}},
    "turned: containers that are none": {"turned": {"0/1": ",,", "0/2": "x", "": "web", "1": 5}},
}


@pytest.mark.parametrize("asked", [REQUEST, MISSING], ids=["pods run", "pods are missing"])
@pytest.mark.parametrize("status", NONSENSE.values(), ids=NONSENSE)
def test_what_makes_no_sense_in_a_status_is_absent(status: Any, asked: Document) -> None:
    assert answer(asked, status) == answer(asked, None)


@pytest.mark.parametrize(
    "text", [b'{"statuses":' + b"[" * 500 + b"]" * 500 + b"}", b'{"reason":"\xff"}']
)
def test_a_status_that_cannot_be_decoded_is_absent(text: bytes) -> None:
    asked = {**REQUEST, "parent": {**REQUEST["parent"], "status": "@@"}}
    response = HOOK.post("/sync", as_sent(asked).replace(b'"@@"', text))
    assert response.status_code == 200
    assert json.loads(response.data) == answer(REQUEST, None)


def test_one_entry_that_makes_no_sense_leaves_the_others_in_force() -> None:
    kept = {"statuses": {"1": "NotCreated"}, "notCreated": {SINCE: "1"}}
    also = {
        "statuses": {"0": 5, **kept["statuses"]},
        "notCreated": {AFTER: "0", SINCE: "\u00b2,1"},
        "failures": 7,
    }
    assert answer(MISSING, also) == answer(MISSING, kept)
    assert answer(MISSING, kept)["status"]["notCreated"] == {SINCE: "1"}


def test_the_time_of_a_condition_is_a_time() -> None:
    """The API server would refuse the whole status, at every sync."""
    before = answer(REQUEST, None)["status"]["conditions"]
    strange = [{**condition, "lastTransitionTime": "ZZZ"} for condition in before]
    for condition in answer(REQUEST, {"conditions": strange})["status"]["conditions"]:
        assert condition.get("lastTransitionTime", SINCE) < "2027"


@pytest.mark.parametrize(
    "entries",
    [
        {SINCE: ",".join(["0-99999"] * 20_000)},
        {f"2026-01-05T1{n // 3600}:{n // 60 % 60:02}:{n % 60:02}Z": "0-49999" for n in range(9999)},
    ],
    ids=["ranges that overlap", "times that overlap"],
)
def test_ranges_cost_no_more_than_a_tapp_has_instances(entries: Document) -> None:
    status = {"statuses": {"0": "NotCreated"}, "notCreated": entries}
    assert calls(lambda: answer(MISSING, status)) < 2_000_000


WORDS = st.sampled_from([SINCE, AFTER, "Killed", "Succ", "NotCreated", "0-2", "0-\u00b2", "", "-1"])
LEAVES = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | WORDS | st.text()
KEYS = WORDS | st.sampled_from(["0", "1", "0/1", "type", "status", "lastTransitionTime", "reason"])
ANY = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=6,
)
PARTS = st.sampled_from(
    [
        "statuses",
        "replacing",
        "failures",
        "settling",
        "pulling",
        "turned",
        "unserved",
        "notCreated",
        "conditions",
        "observedGeneration",
    ]
)


@given(ANY | st.dictionaries(PARTS, ANY), st.sampled_from([REQUEST, MISSING]))
def test_no_status_stops_a_sync(status: Any, asked: Document) -> None:
    found = answer(asked, status)
    again = answer(asked, found["status"])
    assert again["status"]["conditions"] == found["status"]["conditions"]
