"""Tests that an upgrade of the service touches no pod: recorded requests get the same responses as
before.

The recorded pods have the revisions of the release that created them, so these files freeze the
hash of every template in them, too. `tests/contract/recorded` describes the recordings.
"""

import json
from pathlib import Path
from typing import Any

import pytest

from hooks.app import create_app
from hooks.service.settings import Settings
from hooks.version import VERSION
from tests.contract.recorded.stories import STORIES
from tests.hook_calls import applied, desired, observed
from tests.invariants import check, writes

Document = dict[str, Any]

RECORDED = Path(__file__).parent / "recorded"
FILES = sorted(RECORDED.glob("*/*.json"))
each_record = pytest.mark.parametrize(
    "path", FILES, ids=[f"{path.parent.name}-{path.stem}" for path in FILES]
)


def replay(record: Document) -> Document:
    """Sends a recorded request to the service at the recorded time, checks all invariants, and
    returns the response.
    """
    app = create_app(Settings(log_level="ERROR"), clock=lambda: record["now"])
    body = json.dumps(record["request"]).encode()
    response = app.test_client().post("/sync", data=body, content_type="application/json")
    assert response.status_code == 200, response.data
    answer: Document = json.loads(response.data)
    check(record["request"], answer, now=record["now"])
    return answer


@each_record
def test_response_has_the_same_children_as_before(path: Path) -> None:
    record = json.loads(path.read_text())
    answer = replay(record)
    for kind in ("Pod", "PersistentVolumeClaim"):
        assert desired(answer, kind) == desired(record["answer"], kind)


@each_record
def test_metacontroller_would_write_the_same_objects_as_before(path: Path) -> None:
    record = json.loads(path.read_text())
    before = writes(record["request"], record["answer"])
    assert writes(record["request"], replay(record)) == before
    assert (before == []) == (not path.stem.endswith("_begins"))


@each_record
def test_unchanged_pod_is_returned_as_it_is(path: Path) -> None:
    """A pod that the recorded response did not change merges with today's response to exactly the
    same pod.
    """
    record = json.loads(path.read_text())
    request, want = record["request"], desired(replay(record), "Pod")
    changing = {line.partition("/")[2] for line in writes(request, record["answer"])}
    for name, pod in observed(request, "Pod").items():
        if name in want and name not in changing:
            assert applied(request, pod, want[name]) == pod


@each_record
def test_instances_have_the_same_status_as_before(path: Path) -> None:
    """The fields about instances in today's status equal the recorded ones; new fields are
    allowed.
    """
    record = json.loads(path.read_text())
    before, after = record["answer"]["status"], replay(record)["status"]
    assert after["statuses"] == before["statuses"]
    assert after["appStatus"] == before["appStatus"]
    assert after["scaleLabelSelector"] == before["scaleLabelSelector"]


def test_every_scenario_is_recorded_for_this_release() -> None:
    """Each story has a recording of this release.

    If this fails, run `python -m tests.contract.recorded`, and check the difference.
    """
    names = {story.__name__ for story in STORIES}
    assert {path.stem for path in FILES if path.parent.name == VERSION} == names
