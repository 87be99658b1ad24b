"""Tests pods on nodes that died before their kubelets observed the pods."""

import pytest

from tests.builders import Document, running
from tests.hook_calls import desired
from tests.unit.nodes import LOST, WorldOfNodes, timestamp
from tests.unit.pod.waiting import BOUND, message_of, pending, with_state
from tests.unit.world import condition


def bound_to_dead_nodes(world: WorldOfNodes, *ids: int) -> WorldOfNodes:
    """Binds the pods of these instances to nodes whose kubelets have not acknowledged them; returns
    the world.
    """
    for id in ids:
        world.modify(id, with_state(pending(("PodScheduled", "True"), node=f"node-{id}")))
    return world


def test_pod_that_a_dead_kubelet_never_acknowledged_is_marked_failed_and_replaced() -> None:
    """300 seconds after it was bound, a pod that no kubelet has acknowledged is set to Failed and
    replaced.

    Only a kubelet could finish the deletion of a running pod, so the phase is set to Failed first.
    """
    world = bound_to_dead_nodes(WorldOfNodes(3), 2)
    world.hook.now = BOUND + 299
    world.sync()
    assert not world.lost_node_annotation(2)
    world.hook.now = BOUND + 300
    world.sync()
    assert world.lost_node_annotation(2) == timestamp(BOUND)
    assert world.pod_status() == ["web-2"]
    assert world.pod(2)["status"]["phase"] == "Failed"
    assert world.pod(2)["status"]["reason"] == "NodeLost"
    assert world.decisions()[2] == "Delete/NodeLost"


def test_pod_stays_if_its_kubelet_acknowledges_it_late() -> None:
    world = bound_to_dead_nodes(WorldOfNodes(3), 2)
    world.hook.now = BOUND + 300
    world.sync()
    world.modify(2, running)
    assert world.pod_status() == []
    world.sync()
    assert not world.lost_node_annotation(2)


@pytest.mark.parametrize(
    "spec",
    [{"forceDeletePod": False}, {"neverMigrate": True}],
    ids=["without forceDeletePod", "neverMigrate"],
)
def test_unacknowledged_pod_is_reported_and_not_moved_without_force_delete_pod(
    spec: Document,
) -> None:
    world = bound_to_dead_nodes(WorldOfNodes(3, **spec), 2)
    world.hook.now = BOUND + 300
    said = message_of(world.sync(), "Degraded", "True", "InstancesBroken")
    assert "instance 2: its pod was bound to node node-2" in said
    assert not world.lost_node_annotation(2)


def test_no_pod_is_moved_while_most_kubelets_do_not_acknowledge_pods() -> None:
    world = bound_to_dead_nodes(WorldOfNodes(3), 1, 2)
    world.hook.now = BOUND + 300
    assert condition(world.sync(), "MostNodesSilent") is not None
    assert not world.lost_node_annotation(2)


@pytest.mark.parametrize(("age", "decision"), [
    (5, "Delete/Killed"), (30, "Keep/NodeSilent"), (300, "Mark/NodeLost"),
], ids=["5 seconds", "30 seconds", "300 seconds"])  # fmt: skip
def test_deletion_waits_for_a_kubelet_that_has_not_acknowledged_the_pod(
    age: float, decision: str
) -> None:
    """Kills an instance whose pod no kubelet has acknowledged: at first deletion, then a wait, then
    Failed.

    Otherwise the pod would stay Terminating for as long as the node is down.
    """
    world = bound_to_dead_nodes(WorldOfNodes(3), 2)
    world.hook.now = BOUND + age
    assert world.change(statuses={"2": "Killed"}).decisions()[2] == decision


def test_deletion_of_a_tapp_marks_an_unacknowledged_pod_as_lost() -> None:
    world = bound_to_dead_nodes(WorldOfNodes(3), 2)
    world.hook.now = BOUND + 300
    answer = world.hook.finalize(world.request(finalizing=True))
    kept = desired(answer, "Pod")
    assert list(kept) == ["web-2"]
    assert kept["web-2"]["metadata"]["annotations"][LOST] == timestamp(BOUND)
