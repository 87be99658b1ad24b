"""Tests Reconciling and Stalled: a degraded TApp is stalled only after some time without
progress.
"""

from typing import Any

import pytest

from tests.builders import NOW, Document, crashing, running, template
from tests.kstatus import compute
from tests.unit.world import World, condition, settled

NEW = template("nginx:2", container={"command": ["run"]})
"""Differs from the first template in more than its image, so every update replaces the pod."""
PATIENCE = 30


def broken_rollout(**spec: Any) -> World:
    """Returns a TApp whose rollout is stuck, because the new pod of instance 0 crashes."""
    return continue_to_crash(settled(replicas=3, **spec).change(template=NEW))


def continue_to_crash(world: World) -> World:
    """Continues the rollout until the new pod of instance 0 crashes, and returns the world."""
    for _ in range(4):
        world.sync()
        world.kubelet()
        if "web-0" in world.pods:
            world.modify(0, crashing)
    world.sync()
    return world


def sync_at(world: World, seconds: float) -> Document:
    world.hook.now = NOW + seconds
    answer: Document = world.sync()
    return answer


def kstatus_of(world: World) -> tuple[bool, bool, str]:
    """Returns whether Reconciling exists, whether Stalled exists, and the state that kstatus
    computes.
    """
    status = world.parent["status"]
    reconciling, stalled = (condition(status, type) for type in ("Reconciling", "Stalled"))
    return reconciling is not None, stalled is not None, compute(world.parent)


RECONCILING = (True, False, "InProgress")
STALLED = (False, True, "Failed")


def test_broken_rollout_is_stalled_after_half_a_minute_without_progress() -> None:
    world = broken_rollout()
    assert condition(world.parent["status"], "Degraded")["status"] == "True"  # type: ignore[index]
    assert sync_at(world, PATIENCE - 1)["resyncAfterSeconds"] == 1
    assert kstatus_of(world) == RECONCILING
    sync_at(world, PATIENCE)
    assert kstatus_of(world) == STALLED
    stalled = condition(world.parent["status"], "Stalled")
    assert stalled is not None
    assert stalled["reason"] == "InstancesBroken"
    assert "CrashLoopBackOff" in stalled["message"]


def test_edit_of_a_stalled_tapp_gets_another_half_a_minute() -> None:
    """Edits a stalled TApp: it is Reconciling for half a minute before it can be Stalled again.

    Otherwise `helm upgrade --wait` would fail immediately for the edit that repairs the TApp.
    """
    world = broken_rollout()
    sync_at(world, 100)
    assert kstatus_of(world) == STALLED
    world.change(template=template("nginx:3", container={"command": ["run"]}))
    assert compute(world.parent) == "InProgress"  # not observed yet
    sync_at(world, 101)
    assert condition(world.parent["status"], "Degraded")["status"] == "True"  # type: ignore[index]
    assert kstatus_of(world) == RECONCILING
    continue_to_crash(world)
    sync_at(world, 101 + PATIENCE)
    assert kstatus_of(world) == STALLED


@pytest.mark.parametrize(
    ("spec", "patience"),
    [
        ({"minReadySeconds": 15}, 45),
        ({"progressDeadlineSeconds": 10}, 10),
        ({"progressDeadlineSeconds": 0}, 0),
    ],
    ids=["minReadySeconds", "shorter deadline", "no deadline"],
)
def test_time_until_stalled_depends_on_min_ready_seconds_and_deadline(
    spec: Document, patience: int
) -> None:
    world = broken_rollout(**spec)
    if patience:
        sync_at(world, patience - 1)
        assert kstatus_of(world) == RECONCILING
    sync_at(world, patience)
    assert kstatus_of(world) == STALLED


def test_failure_without_a_rollout_is_stalled_at_once() -> None:
    world = settled(replicas=3).modify(1, crashing)
    world.sync()
    assert kstatus_of(world) == STALLED
    world.modify(1, running)
    world.sync()
    assert kstatus_of(world) == (False, False, "Current")


def test_paused_rollout_is_neither_reconciling_nor_stalled() -> None:
    world = settled(replicas=3).change(template=NEW, updateStrategy={"paused": True})
    world.sync()
    assert kstatus_of(world) == (False, False, "InProgress")


def test_harmless_condition_does_not_make_the_tapp_stalled() -> None:
    world = settled(replicas=2).change(templates={"7": "default"}).settle()
    assert condition(world.parent["status"], "UnusedInstances") is not None
    assert kstatus_of(world) == (False, False, "Current")


@pytest.mark.parametrize("observed", [None, -1, 0], ids=["null", "minus one", "zero"])
def test_first_sync_does_not_count_as_a_change_of_the_spec(observed: int | None) -> None:
    """Without an observed generation, a sync updates available instances and does not wait for the
    next one.

    The API server sets the observed generation of a new TApp to -1.
    """
    world = settled(replicas=3).change(template=NEW)
    before = world.parent["status"]
    world.parent["status"] = before | {"observedGeneration": observed}
    assert "Keep/SpecJustChanged" not in world.decisions().values()
    world.parent["status"] = before | {"observedGeneration": 1, "conditions": []}
    assert "Keep/SpecJustChanged" in world.decisions().values()
