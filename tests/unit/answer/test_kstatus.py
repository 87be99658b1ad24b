"""Reconciling and Stalled: what is degraded stops those who wait only when nothing gets on."""

from typing import Any

import pytest

from tests.builders import NOW, Document, crashing, running, template
from tests.kstatus import compute
from tests.unit.world import World, condition, settled

NEW = template("nginx:2", container={"command": ["run"]})
"""Differs in more than images: instances are recreated."""
PATIENCE = 30


def broken(**spec: Any) -> World:
    """A roll by new pods whose first instance crashes; it comes no further."""
    return crash(settled(replicas=3, **spec).change(template=NEW))


def crash(world: World) -> World:
    """Lets the roll go on, to an instance that crashes."""
    for _ in range(4):
        world.sync()
        world.kubelet()
        if "web-0" in world.pods:
            world.modify(0, crashing)
    world.sync()
    return world


def after(world: World, seconds: float) -> Document:
    world.hook.now = NOW + seconds
    answer: Document = world.sync()
    return answer


def seen(world: World) -> tuple[bool, bool, str]:
    """Reconciling and Stalled, and what kstatus makes of both."""
    status = world.parent["status"]
    reconciling, stalled = (condition(status, type) for type in ("Reconciling", "Stalled"))
    return reconciling is not None, stalled is not None, compute(world.parent)


RECONCILING = (True, False, "InProgress")
STALLED = (False, True, "Failed")


def test_what_is_broken_is_stalled_when_nothing_has_come_further_for_half_a_minute() -> None:
    world = broken()
    assert condition(world.parent["status"], "Degraded")["status"] == "True"  # type: ignore[index]
    assert after(world, PATIENCE - 1)["resyncAfterSeconds"] == 1
    assert seen(world) == RECONCILING
    after(world, PATIENCE)
    assert seen(world) == STALLED
    stalled = condition(world.parent["status"], "Stalled")
    assert stalled is not None
    assert stalled["reason"] == "InstancesBroken"
    assert "CrashLoopBackOff" in stalled["message"]


def test_a_change_of_the_spec_is_waited_for_as_long_again() -> None:
    """Whoever mends it by `helm upgrade --wait` is not told at once that it has failed."""
    world = broken()
    after(world, 100)
    assert seen(world) == STALLED
    world.change(template=template("nginx:3", container={"command": ["run"]}))
    assert compute(world.parent) == "InProgress"  # not answered yet
    after(world, 101)
    assert condition(world.parent["status"], "Degraded")["status"] == "True"  # type: ignore[index]
    assert seen(world) == RECONCILING
    crash(world)
    after(world, 101 + PATIENCE)
    assert seen(world) == STALLED


@pytest.mark.parametrize(
    ("spec", "patience"),
    [
        ({"minReadySeconds": 15}, 45),
        ({"progressDeadlineSeconds": 10}, 10),
        ({"progressDeadlineSeconds": 0}, 0),
    ],
    ids=["with minReadySeconds", "with a shorter deadline", "without one"],
)
def test_it_is_as_long_as_the_author_lets_it(spec: Document, patience: int) -> None:
    world = broken(**spec)
    if patience:
        after(world, patience - 1)
        assert seen(world) == RECONCILING
    after(world, patience)
    assert seen(world) == STALLED


def test_what_breaks_without_a_roll_is_stalled_at_once() -> None:
    world = settled(replicas=3).modify(1, crashing)
    world.sync()
    assert seen(world) == STALLED
    world.modify(1, running)
    world.sync()
    assert seen(world) == (False, False, "Current")


def test_what_is_paused_is_neither() -> None:
    world = settled(replicas=3).change(template=NEW, updateStrategy={"paused": True})
    world.sync()
    assert seen(world) == (False, False, "InProgress")


def test_what_is_harmless_is_no_standstill() -> None:
    world = settled(replicas=2).change(templates={"7": "default"}).settle()
    assert condition(world.parent["status"], "UnusedInstances") is not None
    assert seen(world) == (False, False, "Current")


@pytest.mark.parametrize("observed", [None, -1, 0])
def test_a_spec_that_nobody_has_answered_is_no_change_of_one(observed: int | None) -> None:
    """The API server fills in -1; the first answer of all waits for nothing."""
    world = settled(replicas=3).change(template=NEW)
    before = world.parent["status"]
    world.parent["status"] = before | {"observedGeneration": observed}
    assert "Keep/SpecJustChanged" not in world.decisions().values()
    world.parent["status"] = before | {"observedGeneration": 1, "conditions": []}
    assert "Keep/SpecJustChanged" in world.decisions().values()
