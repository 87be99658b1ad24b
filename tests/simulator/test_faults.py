"""Tests the eviction API, the faults of a cluster, and the schedule that draws them from a seed."""

from typing import Any

import pytest

from simulator.faults import Faults
from simulator.metacontroller.faulty_hook import FaultyHook
from simulator.objects.objects import Object, is_terminating
from simulator.schedule import KINDS, Schedule, drawn
from simulator.world import World
from tests.simulator.fake_hook import is_ready, make_world

ALLOWED = "Cannot evict pod as it would violate the pod's disruption budget."


def group(world: World, replicas: int = 3) -> Faults:
    """Creates a Group with Ready pods, and returns the faults of its cluster."""
    world.apply(
        {
            "apiVersion": "test.example/v1",
            "kind": "Group",
            "metadata": {"name": "g"},
            "spec": {"replicas": replicas, "image": "web:1"},
        }
    )
    world.settle()
    assert isinstance(world.hook, FaultyHook)
    return Faults(world, world.hook)


def budget(world: World, **spec: Any) -> None:
    world.apply(
        {
            "apiVersion": "policy/v1",
            "kind": "PodDisruptionBudget",
            "metadata": {"name": "pdb"},
            "spec": {"selector": {}, **spec},
        }
    )


def condition(pod: Object) -> str:
    found = {each["type"]: each for each in pod["status"]["conditions"]}
    return str(found.get("DisruptionTarget", {}).get("reason", ""))


@pytest.mark.parametrize(
    ("spec", "allowed"),
    [
        ({"minAvailable": 3}, 0),
        ({"minAvailable": 2}, 1),
        ({"minAvailable": "34%"}, 1),
        ({"maxUnavailable": 0}, 0),
        ({"maxUnavailable": 1}, 1),
        ({"maxUnavailable": "50%"}, 2),
    ],
)
def test_evictions_stop_at_the_budget(spec: dict[str, Any], allowed: int) -> None:
    world = make_world()
    faults = group(world)
    budget(world, **spec)
    names = [pod["metadata"]["name"] for pod in world.list("Pod")]
    refused = [faults.evict(name) for name in names]
    assert refused == ["" for _ in range(allowed)] + [ALLOWED for _ in range(3 - allowed)]


def test_evicted_pod_is_deleted_and_has_the_condition_disruption_target() -> None:
    world = make_world()
    faults = group(world)
    name = world.list("Pod")[0]["metadata"]["name"]
    assert not faults.evict(name)
    pod = world.get("Pod", name)
    assert is_terminating(pod)
    assert condition(pod) == "EvictionByEvictionAPI"


@pytest.mark.parametrize(("policy", "refused"), [("IfHealthyBudget", ALLOWED), ("AlwaysAllow", "")])
def test_pod_that_is_not_ready_is_evicted_as_its_budget_says(policy: str, refused: str) -> None:
    """Below the budget, IfHealthyBudget protects also a pod that is not Ready."""
    world = make_world()
    faults = group(world)
    budget(world, minAvailable=3, unhealthyPodEvictionPolicy=policy)
    first = world.list("Pod")[0]
    faults.lose_nodes(first["spec"]["nodeName"])
    pod = world.get("Pod", first["metadata"]["name"])
    assert not is_ready(pod)
    assert faults.evict(pod["metadata"]["name"]) == refused


def test_broken_registry_stops_new_images_only() -> None:
    """A container that crashes starts again, because its node has the image."""
    world = make_world()
    faults = group(world)
    faults.break_registry()
    name = world.list("Pod")[0]["metadata"]["name"]
    assert faults.exit(name)
    world.run(60.0)
    assert is_ready(world.get("Pod", name))
    world.patch("Group", "g", {"spec": {"image": "web:2"}})
    world.run(60.0)
    assert not all(is_ready(pod) for pod in world.list("Pod"))
    faults.heal(("Pod",))
    world.run(600.0)
    assert all(is_ready(pod) for pod in world.list("Pod"))


def test_service_that_is_away_is_not_called_and_forgets() -> None:
    world = make_world()
    faults, forgotten = group(world), list[bool]()
    faults.stop_service()
    world.patch("Group", "g", {"spec": {"replicas": 4}})
    world.run(5.0)
    assert len(world.list("Pod")) == 3
    faults.start_service(lambda: forgotten.append(True))
    world.settle()
    assert len(world.list("Pod")) == 4
    assert forgotten == [True]


def test_same_seed_draws_the_same_faults_in_the_time_given() -> None:
    kinds = [*KINDS]
    assert drawn(7, kinds, 5, 60.0) == drawn(7, kinds[::-1], 5, 60.0)
    assert drawn(7, kinds, 5, 60.0) != drawn(8, kinds, 5, 60.0)
    faults = [fault for seed in range(300) for fault in drawn(seed, kinds, 2, 60.0)]
    assert {fault.kind for fault in faults} == {*KINDS}
    assert all(0 <= fault.at <= 60.0 for fault in faults)


@pytest.mark.parametrize("kind", sorted(KINDS.keys() - {"node-pressure"}))
def test_fault_ends_and_the_cluster_recovers(kind: str) -> None:
    """The hook of these tests replaces no pod that a kubelet has evicted, so that kind is left
    out.
    """
    world = make_world()
    faults, told = group(world), list[str]()

    def edit(back: bool) -> None:
        world.patch("Group", "g", {"spec": {"image": "web:1" if back else "web:2"}})

    schedule = Schedule(world, faults, "Group", edit=edit, told=told.append)
    world.patch("Group", "g", {"spec": {"image": "web:2"}})
    schedule.start(drawn(1, [kind], 2, 10.0))
    while schedule.pending:
        world.run(10.0)
    world.run(1200.0)
    assert told
    assert [is_ready(pod) for pod in world.list("Pod")] == [True, True, True]
    assert {pod["spec"]["containers"][0]["image"] for pod in world.list("Pod")} == {"web:2"}
