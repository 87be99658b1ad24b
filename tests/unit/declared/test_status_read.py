"""Tests how the TApp's status is read, which anybody may have written: invalid parts count as
absent.
"""

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


def settled_world(**spec: Any) -> World:
    """Returns a TApp with three instances, for requests at the moment after their pods have
    started.
    """
    found = World(tapp(**{"replicas": 3, "forceDeletePod": True, **spec}), hook=HOOK)
    found.sync()
    found.kubelet()
    return found


REQUEST = settled_world().request()
MISSING: Document = {**REQUEST, "children": {**REQUEST["children"], "Pod.v1": {}}}


def response_for(request: Document, status: Any) -> Document:
    """Returns the response to a sync for a TApp with this status.

    Checks in addition that a finalize request with the status succeeds.
    """
    asked = {**request, "parent": {**request["parent"], "status": status}}
    assert HOOK.post("/finalize", {**asked, "finalizing": True}).status_code == 200
    found: Document = HOOK.answer("/sync", asked)
    return found


INVALID = {
    "status is a string": "x",
    "status is a list": [1],
    "status is a number": 5,
    "statuses is a list": {"statuses": ["Succ"]},
    "statuses has a number": {"statuses": {"0": 5}},
    "replacing has a number": {"replacing": {"0": 5}},
    "failures has a string": {"failures": {"0": "many"}},
    "failures has a negative number": {"failures": {"0": -3}},
    "failures has huge numbers": {"failures": {"0": 10**30, "1": 10**9}},
    "failures has a fraction": {"failures": {"0": 1.5, "1": True}},
    "conditions are a map": {"conditions": {"type": "Ready"}},
    "conditions are numbers": {"conditions": [1, None, [], "Ready"]},
    "condition without a valid type": {"conditions": [{"type": 5, "status": []}]},
    "generation is a string": {"observedGeneration": "1"},
    "generation is huge": {"observedGeneration": 1e300},
    "notCreated has an exponent": {"notCreated": {SINCE: "0-\u00b2"}},
    "notCreated has other digits": {"notCreated": {SINCE: "\u0661"}},
    "notCreated has a huge number": {"notCreated": {SINCE: "0-" + "9" * 5000}},
    "notCreated has a reversed range": {"notCreated": {SINCE: "5-3"}},
    "notCreated has a time after 9999": {"notCreated": {AFTER: "0-2"}},
    "notCreated has invalid times": {"notCreated": {"yesterday": "0-2", "": "0-2"}},
    "notCreated has a list": {"notCreated": {SINCE: ["0-2"]}},
    "unserved has a time after 9999": {"unserved": {"0": AFTER}},
    "settling has a week": {"settling": {"0/1": "2026-W01-1"}},
    "progressed has invalid keys": {"progressed": {"x": SINCE, "1/1": SINCE, "-1/0/0": SINCE}},
    "progressed has a time after 9999": {"progressed": {"1/3/3": AFTER}},
    "progressed has a huge number": {"progressed": {f"{'9' * 5000}/1/1": SINCE}},
    "turned has invalid containers": {"turned": {"0/1": ",,", "0/2": "x", "": "web", "1": 5}},
}


@pytest.mark.parametrize("parent_request", [REQUEST, MISSING], ids=["pods run", "pods are missing"])
@pytest.mark.parametrize("status", INVALID.values(), ids=INVALID)
def test_invalid_part_of_a_status_counts_as_absent(status: Any, parent_request: Document) -> None:
    assert response_for(parent_request, status) == response_for(parent_request, None)


@pytest.mark.parametrize(
    "text",
    [b'{"statuses":' + b"[" * 500 + b"]" * 500 + b"}", b'{"reason":"\xff"}'],
    ids=["too deep", "invalid UTF-8"],
)
def test_status_that_cannot_be_decoded_counts_as_absent(text: bytes) -> None:
    asked = {**REQUEST, "parent": {**REQUEST["parent"], "status": "@@"}}
    response = HOOK.post("/sync", as_sent(asked).replace(b'"@@"', text))
    assert response.status_code == 200
    assert json.loads(response.data) == response_for(REQUEST, None)


def test_invalid_entry_does_not_affect_other_entries() -> None:
    kept = {"statuses": {"1": "NotCreated"}, "notCreated": {SINCE: "1"}}
    also = {
        "statuses": {"0": 5, **kept["statuses"]},
        "notCreated": {AFTER: "0", SINCE: "\u00b2,1"},
        "failures": 7,
    }
    assert response_for(MISSING, also) == response_for(MISSING, kept)
    assert response_for(MISSING, kept)["status"]["notCreated"] == {SINCE: "1"}


def test_invalid_transition_time_of_a_condition_is_replaced() -> None:
    """Reads conditions with an invalid time: the response has a valid one.

    Otherwise the API server would refuse the whole status at every sync.
    """
    before = response_for(REQUEST, None)["status"]["conditions"]
    strange = [{**condition, "lastTransitionTime": "ZZZ"} for condition in before]
    for condition in response_for(REQUEST, {"conditions": strange})["status"]["conditions"]:
        assert condition.get("lastTransitionTime", SINCE) < "2027"


@pytest.mark.parametrize(
    "entries",
    [
        {SINCE: ",".join(["0-99999"] * 20_000)},
        {f"2026-01-05T1{n // 3600}:{n // 60 % 60:02}:{n % 60:02}Z": "0-49999" for n in range(9999)},
    ],
    ids=["repeated ranges", "repeated instances"],
)
def test_reading_repeated_ranges_takes_a_limited_number_of_calls(entries: Document) -> None:
    status = {"statuses": {"0": "NotCreated"}, "notCreated": entries}
    assert calls(lambda: response_for(MISSING, status)) < 2_000_000


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
def test_random_status_is_read_without_an_error(status: Any, asked: Document) -> None:
    found = response_for(asked, status)
    again = response_for(asked, found["status"])
    assert again["status"]["conditions"] == found["status"]["conditions"]
