"""Tests instances that leave a lost node, and the pods on that node when it is back."""

import pytest

from tests.builders import Document
from tests.scenarios.apps import tapp
from tests.scenarios.life import Life

LIMIT = 300
LOST = "apps.tkestack.io/lost-node"


def tapp_with_force_delete(replicas: int = 5, nodes: int = 5) -> Life:
    """Returns a TApp with `forceDeletePod` and available instances, one on each node."""
    return Life(nodes=nodes).apply(tapp(replicas=replicas, forceDeletePod=True))


def node_of(life: Life, id: int) -> str:
    node: str = life.pods[id]["spec"]["nodeName"]
    return node


def lose(life: Life, *ids: int) -> list[str]:
    """Makes the nodes of these instances unreachable, and returns the names of the nodes."""
    nodes = sorted({node_of(life, id) for id in ids})
    for node in nodes:
        life.world.nodes.lose(node)
    life.news()
    return nodes


def written(life: Life) -> list[str]:
    """Returns the writes since the last call that have changed something, without those of the
    TApp.
    """
    news = [write for write in life.news() if write.kind != "TApp"]
    return [f"{write.verb} {write.name}" for write in news if write.outcome == "ok"]


def test_instance_leaves_a_lost_node_and_its_old_containers_stop_when_the_node_is_back() -> None:
    life = tapp_with_force_delete()
    before, old = life.uids(), life.pods[2]
    (node,) = lose(life, 2)
    began = life.world.clock.now
    life.until(lambda: 2 in life.pods and life.uids()[2] != before[2])
    assert LIMIT <= life.world.clock.now - began <= LIMIT + 5
    assert written(life) == ["update web-2", "status web-2", "delete web-2", "create web-2"]
    life.settle()
    assert life.complete
    assert node_of(life, 2) != node
    assert {id: uid for id, uid in life.uids().items() if id != 2} == {
        id: uid for id, uid in before.items() if id != 2
    }

    worker = life.world.kubelet.worker(old)
    assert worker is not None
    assert all(one.alive for one in worker.local.mains)  # the kubelet is unreachable
    life.world.nodes.recover(node)
    life.settle()
    assert not any(one.alive for one in worker.local.mains)
    assert life.world.kubelet.worker(old) is None
    assert life.complete
    assert written(life) == []


def test_no_instance_is_moved_while_most_nodes_are_unreachable() -> None:
    life = tapp_with_force_delete()
    before = life.uids()
    nodes = lose(life, 0, 1, 2)
    life.idle()
    assert written(life) == []
    assert life.condition("MostNodesSilent").startswith("True ")
    for node in nodes[:1]:
        life.world.nodes.recover(node)
    life.settle()  # two of five nodes count as lost
    assert sum(before[id] != uid for id, uid in life.uids().items()) == 2
    assert not life.condition("MostNodesSilent")


def test_node_that_is_back_in_time_causes_no_write() -> None:
    life = tapp_with_force_delete()
    before = life.uids()
    (node,) = lose(life, 2)
    life.world.run(LIMIT - 10)
    life.world.nodes.recover(node)
    life.idle(0.5)
    assert life.uids() == before
    assert written(life) == []
    assert life.complete


def test_node_that_is_back_before_its_pod_is_marked_failed_keeps_the_pod() -> None:
    """A node returns after the service has marked its pod as lost, but before the pod is set to
    Failed.

    The pod-status hook, which would do that, is not reachable. The pod stays, and its mark is
    removed.
    """
    life = tapp_with_force_delete()
    before = life.uids()
    (node,) = lose(life, 2)
    life.world.hook.fail(10**6, path="/pod-status")
    life.world.run(LIMIT + 120)
    assert LOST in life.pods[2]["metadata"]["annotations"]
    assert life.condition("PodStatusNotWritten").startswith("True ")
    life.world.nodes.recover(node)
    life.world.hook.heal()
    life.world.restart()
    life.settle()
    assert life.uids() == before
    assert LOST not in life.pods[2]["metadata"]["annotations"]
    assert life.complete


EDITS: dict[str, Document] = {"kill": {"statuses": {"2": "Killed"}}, "scale down": {"replicas": 2}}


@pytest.mark.parametrize("edit", EDITS.values(), ids=EDITS)
def test_pod_on_an_unreachable_node_is_deleted_when_the_node_is_lost(edit: Document) -> None:
    """Kills an instance, or scales down, while its node is unreachable: the pod goes after the
    limit.

    The pod does not stay Terminating, and the node does not have to come back.
    """
    life = tapp_with_force_delete(replicas=3, nodes=3)
    lose(life, 2)
    life.world.run(10)
    life.begin_patch(**edit)
    life.world.run(LIMIT - 30)
    assert "deletionTimestamp" not in life.pods[2]["metadata"]
    life.settle()
    assert sorted(life.pods) == [0, 1]
    assert written(life) == ["update web-2", "status web-2", "delete web-2"]


def test_deletion_of_a_tapp_ends_although_a_node_is_lost() -> None:
    life = tapp_with_force_delete()
    lose(life, 2)
    life.world.run(10)
    life.world.delete("TApp", "web")
    life.world.run(60)
    assert list(life.pods) == [2]
    life.world.run(LIMIT)
    life.settle()
    assert not life.exists
    assert life.pods == {}
