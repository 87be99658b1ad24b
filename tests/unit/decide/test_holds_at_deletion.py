"""Tests the deletion of a TApp with pods on hold."""

from typing import Any

import pytest

from tests.builders import Document
from tests.hook_calls import desired
from tests.unit.decide.holds import (
    BEGAN,
    GROUP,
    annotated,
    at_second,
    on_lost_node,
    pending_action,
    tapp_on_hold,
    with_invalid_status,
)
from tests.unit.world import World, condition


def finalize(world: World) -> Document:
    answer = world.hook.finalize(world.request(finalizing=True))
    world.apply(answer)
    world.parent = {**world.parent, "status": answer["status"]}
    return answer


def test_deletion_of_a_tapp_waits_for_pods_on_hold_and_says_how_to_continue() -> None:
    world = tapp_on_hold(replicas=3)
    answer = finalize(world)
    assert set(desired(answer, "Pod")) == {"web-0"}
    assert not answer["finalized"]
    assert answer["resyncAfterSeconds"] == 5
    assert pending_action(world) == ("Delete", BEGAN, "true")
    progressing = condition(answer, "Progressing")
    assert progressing is not None
    assert progressing["status"] == "True"
    assert progressing["reason"] == "Held"
    assert "pod web-0" in progressing["message"]
    assert "'match 42'" in progressing["message"]
    assert "set spec.deletionHoldTimeoutSeconds to 0" in progressing["message"]
    assert condition(answer, "Degraded")["status"] == "False"  # type: ignore[index]
    world.kubelet()
    assert finalize(world)["resyncAfterSeconds"] == 60
    world.modify(0, annotated(hold=None))
    assert not desired(finalize(world), "Pod")
    world.kubelet()
    answer = finalize(world)
    assert answer["finalized"]
    assert condition(answer, "Progressing")["reason"] == "Deleting"  # type: ignore[index]


@pytest.mark.parametrize("limit", [0, 90])
def test_deletion_hold_limit_applies_although_the_rest_of_the_spec_is_invalid(limit: int) -> None:
    world = tapp_on_hold(replicas=1)
    world.change(replicas="many", deletionHoldTimeoutSeconds=limit)
    assert bool(desired(finalize(world), "Pod")) == bool(limit)
    assert not desired(finalize(at_second(world, limit)), "Pod")


@pytest.mark.parametrize("limit", [-1, "90", 1e3, 10**12, True])
def test_invalid_deletion_hold_limit_means_no_limit(limit: Any) -> None:
    world = tapp_on_hold(replicas=1).change(deletionHoldTimeoutSeconds=limit)
    finalize(world)
    assert desired(finalize(at_second(world, 10**7)), "Pod")


@pytest.mark.parametrize("finalizer", ["orphan", "foregroundDeletion"])
def test_hold_does_not_delay_deletions_by_the_garbage_collector(finalizer: str) -> None:
    world = tapp_on_hold(replicas=1)
    meta = {**world.parent["metadata"], "finalizers": [finalizer]}
    world.parent = {**world.parent, "metadata": meta}
    assert finalize(world)["finalized"]


def test_deletion_message_names_pods_on_lost_nodes_and_pods_on_hold() -> None:
    world = tapp_on_hold(replicas=2, forceDeletePod=True)
    world.modify(1, lambda pod: on_lost_node(pod, "2026-01-05T10:59:00Z"))
    answer = finalize(world)
    assert set(desired(answer, "Pod")) == {"web-0", "web-1"}
    message = condition(answer, "Progressing")["message"]  # type: ignore[index]
    assert "on nodes that have stopped reporting" in message
    assert "'match 42'" in message


def test_deletion_waits_for_a_pod_with_an_invalid_status_and_its_status_stays_the_same() -> None:
    """Deletes a TApp whose pod on hold cannot be read: the pod stays, and each response has the
    same status.

    A status that changes would trigger the next sync immediately.
    """
    world = tapp_on_hold(replicas=1, deletionHoldTimeoutSeconds=90).modify(0, with_invalid_status)
    first = finalize(world)
    assert set(desired(first, "Pod")) == {"web-0"}
    assert pending_action(world) == (None, None, "true")
    assert "cannot read the pod" in condition(first, "Progressing")["message"]  # type: ignore[index]
    again = finalize(at_second(world, 10**6))
    assert again["status"] == first["status"]
    assert set(desired(again, "Pod")) == {"web-0"}
    assert not desired(finalize(world.change(deletionHoldTimeoutSeconds=0)), "Pod")


def test_pending_action_stays_on_a_pod_whose_node_is_lost_later() -> None:
    """The node of a pod on hold is lost during the deletion of its TApp: the pod keeps its pending
    action.

    The node may come back while the match is still running.
    """
    world = tapp_on_hold(replicas=1, forceDeletePod=True)
    finalize(world)
    assert pending_action(world) == ("Delete", BEGAN, "true")
    finalize(world.modify(0, lambda pod: on_lost_node(pod, "2026-01-05T10:30:00Z")))
    assert world.pod(0)["metadata"]["annotations"][f"{GROUP}/lost-node"]
    assert pending_action(world) == ("Delete", BEGAN, "true")


@pytest.mark.parametrize(
    "status",
    [None, {}, {"conditions": []}, {"conditions": None}],
    ids=["null", "empty", "no conditions", "null conditions"],
)
def test_deletion_sets_all_conditions_of_a_tapp_without_a_status(status: Any) -> None:
    """Deletes a TApp without conditions while a pod is on hold: all conditions are set.

    A TApp was deleted before its first sync, or its status was lost in a restore.
    """
    world = tapp_on_hold(replicas=1)
    world.parent = {**world.parent, "status": status}
    if status is None:
        del world.parent["status"]
    answer = finalize(world)
    found = {name: condition(answer, name) for name in ("Available", "Progressing", "Ready")}
    assert {name: (item or {}).get("reason") for name, item in found.items()} == {
        "Available": "Deleting",
        "Progressing": "Held",
        "Ready": "Held",
    }
    assert {(item or {}).get("lastTransitionTime") for item in found.values()} == {BEGAN}
