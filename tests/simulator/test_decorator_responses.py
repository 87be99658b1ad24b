"""Tests the response of a DecoratorController's hook: writes, refusals and retries."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest

from simulator.objects.objects import annotations_of, labels_of, uid_of, with_meta
from simulator.world import UnsettledError
from tests.simulator.decorator_world import (
    GATE,
    STATUS,
    answering,
    decorator_calls,
    running,
    stage,
    touch,
    with_gate,
    written,
)
from tests.simulator.fake_hook import decorator, group


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ({}, []),
        (None, []),
        ({"status": None, "labels": None, "annotations": None, "attachments": None}, []),
        ({"attachments": [], "finalized": True, "resyncAfterSeconds": -1}, []),
        (lambda request: {"status": request["object"]["status"]}, []),
        ({"labels": {"decorated": "true"}, "annotations": {"absent": None}}, []),
        (with_gate, STATUS),
        (
            {"labels": {"a": "b"}, "annotations": {"c": "d"}},
            [("update", "p", ("metadata.annotations.c", "metadata.labels.a"), "ok")],
        ),
        (
            {"annotations": {"touched": None}},
            [("update", "p", ("metadata.annotations.touched",), "ok")],
        ),
        (
            lambda request: {**with_gate(request), "labels": {"a": "b"}},
            [("status", "p", ("metadata.labels.a", "status.conditions"), "ok"), STATUS[1]],
        ),
    ],
    ids=[
        "empty",
        "null",
        "null fields",
        "empty attachments",
        "same status",
        "same metadata",
        "other status",
        "new label and annotation",
        "removed annotation",
        "other status and label",
    ],
)
def test_response_is_written_if_it_differs_from_the_object(
    answer: Any, expected: list[tuple[Any, ...]]
) -> None:
    """Compares the writes for many responses: a response without a change writes nothing.

    The status is written before the object.
    """
    world, hook = running()
    answering(hook, answer)
    touch(world)
    world.settle()
    assert written(world) == expected


def test_status_of_the_response_replaces_the_observed_one() -> None:
    """The status of a response replaces the whole observed status, so missing fields are removed.

    A status with 1.0 is written although the observed one has 1.
    """
    world, hook = running()
    world.kubelet.lost_nodes.add("node-0")  # otherwise its kubelet would write it again
    answering(hook, {"status": {"phase": "Running", "x": 1}})
    touch(world)
    world.settle()
    assert world.get("Pod", "p")["status"] == {"phase": "Running", "x": 1}
    world.writes.clear()
    answering(hook, {"status": {"phase": "Running", "x": 1.0}})
    touch(world, value="2")
    world.settle()
    assert world.writes


@pytest.mark.parametrize(
    ("verb", "expected"),
    [("status", [("status", "Conflict")]), ("update", [("status", "ok"), ("update", "Conflict")])],
    ids=["write of the status", "write of metadata"],
)
def test_conflict_is_no_error_and_is_not_retried(
    verb: str, expected: list[tuple[str, str]]
) -> None:
    """A conflict in one of the writes fails no sync and causes no retry.

    The event of the change that caused the conflict leads to the next sync.
    """
    world, hook = running()
    answering(hook, with_gate)
    world.store.fail(1, verb=verb, kind="Pod", code=409)
    touch(world)
    world.run(30)
    assert list(world.outcomes.values()) == [""]
    assert [(one.verb, one.outcome) for one in world.writes] == expected


def test_concurrent_write_of_the_kubelet_is_not_lost() -> None:
    """The kubelet writes the status while the hook decides: the decorator's write is refused.

    The next sync repeats the write with the new status, so both changes are kept.
    """
    world, hook = running(with_gate)
    (decorating,) = world.decorators
    decorating.hook_seconds = 2.0
    answering(hook, lambda request: with_gate(request, status=False))
    touch(world)
    world.run(1)
    world.kubelet.finish(world.get("Pod", "p"))
    world.settle()
    assert [one.outcome for one in world.writes].count("Conflict") >= 1
    status = world.get("Pod", "p")["status"]
    assert status["containerStatuses"][0]["restartCount"] == 1
    assert {c["type"]: c["status"] for c in status["conditions"]}[GATE] == "False"


def test_pod_that_is_deleted_during_the_sync_is_no_error() -> None:
    """The pod is gone when its status is written: the 404 is ignored, and no PUT of the pod
    follows.
    """
    world, hook = running()
    world.decorators[0].hook_seconds = 1.0
    answering(hook, with_gate)
    touch(world)
    world.run(0.5)
    world.delete("Pod", "p", grace_seconds=0)
    world.run(30)
    assert [(one.verb, one.outcome) for one in world.writes] == [("status", "NotFound")]
    assert world.outcomes == {}


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        ({"status": {}, "extra": 1}, "unknown field"),
        ({"children": []}, "unknown field"),
        ({"status": 3}, "unmarshal"),
        ({"labels": {"a": 1}}, "unmarshal"),
        ({"resyncAfterSeconds": "1"}, "unmarshal"),
        ({"attachments": [{"kind": "Pod"}]}, "not modelled"),
        ([], "unmarshal"),
    ],
    ids=[
        "unknown field",
        "children",
        "status is a number",
        "label is a number",
        "time is a text",
        "attachment",
        "list",
    ],
)
def test_invalid_response_fails_the_sync(answer: Any, error: str) -> None:
    """After an invalid response nothing is written, and the sync is retried with growing pauses."""
    world, hook = running()
    answering(hook, answer)
    touch(world)
    with pytest.raises(UnsettledError, match=error):
        world.settle()
    assert world.writes == []
    pauses = [b.time - a.time for a, b in pairwise(decorator_calls(world)[:8])]
    assert all(later > 1.5 * sooner for sooner, later in pairwise(pauses))


@pytest.mark.parametrize("status", [500, 0, 429])
def test_failed_hook_writes_nothing_until_it_succeeds(status: int) -> None:
    world, hook = running()
    answering(hook, with_gate)
    world.hook.fail(3, status=status, path="/decorate")
    touch(world)
    world.run(0.101)
    assert world.writes == []
    world.settle()
    assert written(world)[0] == STATUS[0]


def test_refused_write_fails_the_sync_which_is_retried() -> None:
    world, hook = running()
    answering(hook, with_gate)
    world.store.fail(2, verb="status", kind="Pod", code=422)
    touch(world)
    world.settle()
    assert [one.outcome for one in world.writes] == ["Invalid", "Invalid", "ok", "no-op"]


def test_resync_after_seconds_causes_one_more_sync() -> None:
    world, hook = running()
    answering(hook, {"resyncAfterSeconds": 30})
    touch(world)
    world.run(100)
    times = [call.time for call in decorator_calls(world)]
    assert [round(b - a) for a, b in pairwise(times)] == [30, 30, 30]


def test_custom_resource_can_be_decorated() -> None:
    """Decorates a custom resource: a PUT of its status changes only the status, so labels need a
    second PUT.
    """
    resources = [{"apiVersion": "test.example/v1", "resource": "groups"}]
    world, _ = stage(
        lambda _request: {"status": {"x": 1}, "labels": {"a": "b"}},
        decorators=[decorator(resources=resources)],
    )
    world.metacontroller.queue.clear()
    world.apply(group(0))
    world.metacontroller.queue.clear()
    world.run(5)
    assert [(one.verb, one.outcome) for one in world.writes[:2]] == [
        ("status", "ok"),
        ("update", "ok"),
    ]
    assert labels_of(world.get("Group", "g")) == {"a": "b"}


def test_status_write_of_a_pod_changes_labels_but_no_owners() -> None:
    """Writes the status of a pod together with other fields: labels change, owners and spec do not.

    The strategy of the API server for pods/status does this.
    """
    world, _ = running()
    old = world.get("Pod", "p")
    changed = with_meta(old, labels={"a": "b"}, ownerReferences=[{"uid": uid_of(old)}])
    changed = {**changed, "spec": {}, "status": {**old["status"], "message": "x"}}
    new = world.cluster.update_status(world.kinds.find("Pod"), changed)
    assert labels_of(new) == {"a": "b"}
    assert annotations_of(new) == annotations_of(old)
    assert new["spec"] == old["spec"]
    assert new["status"]["message"] == "x"
    assert "ownerReferences" not in new["metadata"]
