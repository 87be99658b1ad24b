"""Tests lost nodes: the status of their pods, evictions, and the return of the node."""

from __future__ import annotations

from typing import Any

import pytest

from simulator.objects.kinds import POD
from simulator.objects.objects import Object, is_terminating, key_of
from simulator.world import World
from tapp.kube.tolerations import SILENT
from tests.simulator.fake_hook import is_ready, make_world, pod

GATE = "x/gate"


def tolerations(seconds: float | None) -> list[Object]:
    """Returns tolerations that keep a pod on a lost node for this many seconds; None means
    forever.
    """
    limit = {} if seconds is None else {"tolerationSeconds": seconds}
    return [{"key": key, "operator": "Exists", "effect": "NoExecute", **limit} for key in SILENT]


def lost(**spec: Any) -> World:
    """Returns a world with a pod whose node has just stopped reporting; `spec` has fields of the
    pod spec.
    """
    world = make_world(nodes=1)
    world.apply(pod("p", **spec))
    world.settle()
    world.nodes.lose("node-0")
    return world


def live(world: World) -> Object:
    """Returns the pod as it is in the API server now."""
    return world.get("Pod", "p")


def set_status(world: World, **fields: Any) -> None:
    """Sets these fields in the pod's status, as another controller does."""
    found = live(world)
    world.cluster.update_status(POD, {**found, "status": {**found["status"], **fields}})


def statuses(found: Object) -> dict[str, str]:
    """Returns type -> status for all conditions of a pod."""
    return {one["type"]: one["status"] for one in found["status"]["conditions"]}


def test_lost_node_changes_only_the_ready_condition() -> None:
    """Loses a node: only Ready turns False in the status of its pod.

    So a pod whose other conditions are True is on a node that does not report.
    """
    world = make_world(nodes=1)
    world.apply(pod("p", readinessGates=[{"conditionType": GATE}]))
    world.settle()
    open_gate(world, "True")
    world.run(5)
    before = live(world)
    assert is_ready(before)
    world.nodes.lose("node-0")
    after = live(world)
    assert statuses(after) == {**statuses(before), "Ready": "False"}
    assert after["status"]["containerStatuses"] == before["status"]["containerStatuses"]
    assert after["status"]["phase"] == "Running"


def test_pod_with_a_scheduling_gate_is_not_scheduled() -> None:
    """A pod with a scheduling gate, as Kueue uses it, gets no node.

    So a forecast of the plugin says that such a pod never runs.
    """
    world = make_world(nodes=1)
    world.apply(pod("p", schedulingGates=[{"name": "kueue.x-k8s.io/admission"}]))
    world.settle()
    assert "nodeName" not in live(world)["spec"]


def open_gate(world: World, status: str) -> None:
    """Sets the condition of the pod's readiness gate to this status."""
    others = [one for one in live(world)["status"]["conditions"] if one["type"] != GATE]
    gate = {"type": GATE, "status": status, "lastTransitionTime": world.clock.timestamp()}
    set_status(world, conditions=[*others, gate])


@pytest.mark.parametrize(
    ("spec", "evicted"),
    [
        ({}, 300),
        ({"tolerations": tolerations(10)}, 10),
        ({"tolerations": tolerations(0)}, 0),
        ({"tolerations": tolerations(-5)}, 0),
        ({"tolerations": tolerations(None)}, None),
        ({"tolerations": [{"operator": "Exists"}]}, None),
        ({"tolerations": [*tolerations(10), {"operator": "Exists"}]}, 10),
        ({"tolerations": [{"operator": "Exists"}, *tolerations(10)]}, None),
        ({"tolerations": [{"key": SILENT[1], "value": "no such", "tolerationSeconds": 9}]}, 0),
    ],
    ids=[
        "default",
        "10 s",
        "0 s",
        "negative time",
        "no limit",
        "toleration of everything",
        "limit before toleration of everything",
        "toleration of everything before limit",
        "value that no taint has",
    ],
)
def test_first_matching_toleration_limits_the_time_on_a_lost_node(
    spec: Object, evicted: float | None
) -> None:
    """Loses the node of pods with several tolerations: the first that matches sets the time of the
    eviction.

    If that toleration has no limit, the pod is not evicted.
    """
    world = lost(**spec)
    if evicted is None:
        world.run(5000)
        assert not is_terminating(live(world))
        return
    world.run(evicted - 1 if evicted else 0)
    assert is_terminating(live(world)) is (evicted == 0)
    world.run(2)
    assert is_terminating(live(world))


def change(world: World, seconds: float | None) -> None:
    """Sets the pod's toleration of a lost node to this many seconds; None means forever."""
    world.patch("Pod", "p", {"spec": {"tolerations": tolerations(seconds)}})


def test_new_toleration_without_a_limit_cancels_an_eviction() -> None:
    """Removes the limit just before the eviction: the pod stays until it gets a limit again.

    The taint manager checks again when the tolerations of a pod change.
    """
    world = lost()
    world.run(299)
    change(world, None)
    world.run(5000)
    assert not is_terminating(live(world))
    change(world, 20)
    world.run(21)
    assert is_terminating(live(world))


@pytest.mark.parametrize("seconds", [10, 3000])
def test_new_limit_does_not_change_a_pending_eviction(seconds: float) -> None:
    world = lost()
    world.run(100)
    change(world, seconds)
    world.run(199)
    assert not is_terminating(live(world))
    world.run(2)
    assert is_terminating(live(world))


def test_time_of_an_earlier_loss_does_not_count() -> None:
    world = lost()
    world.run(200)
    world.nodes.recover("node-0")
    world.run(10)
    world.nodes.lose("node-0")
    world.run(299)
    assert not is_terminating(live(world))
    world.run(2)
    assert is_terminating(live(world))


def test_failed_pod_on_a_lost_node_is_deleted_without_the_kubelet() -> None:
    """Deletes a pod on a lost node that was set to Failed: its object is gone at once.

    The kubelet kills the containers when the node comes back.
    """
    world = lost(tolerations=tolerations(None), terminationGracePeriodSeconds=10)
    world.kubelet.levers.stop_seconds = 4.0
    world.kubelet.levers.jitter = 0.0
    old = live(world)
    worker = world.kubelet.worker(old)
    assert worker is not None
    set_status(world, phase="Failed", reason="NodeLost", message="m")
    world.run(100)
    assert live(world)["status"]["phase"] == "Failed"
    world.cluster.delete(POD, *key_of(old))
    assert world.list("Pod") == []
    world.run(100)
    assert world.kubelet.worker(old) is worker
    assert worker.local.can_serve(world.clock.now)
    world.nodes.recover("node-0")
    world.run(3)
    assert any(one.alive for one in worker.local.all)
    world.run(3)
    assert not any(one.alive for one in worker.local.all)
    world.settle()
    assert world.kubelet.worker(old) is None


def test_returning_kubelet_keeps_a_failed_phase() -> None:
    """A node returns whose pod was set to Failed: the kubelet kills its containers.

    Phase, reason and message stay.
    """
    world = lost(tolerations=tolerations(None))
    set_status(world, phase="Failed", reason="NodeLost", message="m")
    world.nodes.recover("node-0")
    world.settle()
    status = live(world)["status"]
    assert status["phase"] == "Failed"
    assert status["reason"] == "NodeLost"
    assert status["message"] == "m"
    assert "terminated" in status["containerStatuses"][0]["state"]
    assert not is_ready(live(world))
