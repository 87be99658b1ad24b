"""Resizes for which a container starts again: out of its Services first, and in the budget."""

from typing import Any

import pytest

from tests.builders import Document, running
from tests.holds import HELD, HOLD, HOLD_FOR
from tests.unit.decide.test_drain import DRAIN, GATE, GRACE
from tests.unit.decide.test_resize import (
    LESS,
    MORE,
    RESIZED,
    annotated,
    asking,
    decision,
    given,
    resizing,
)
from tests.unit.decide.test_resize import said as told
from tests.unit.world import World

AGAIN = [{"resourceName": "cpu", "restartPolicy": "RestartContainer"}]


def behind_a_gate(resources: Document, image: str = "web:1", *, again: bool = True) -> Document:
    container = {"resizePolicy": AGAIN} if again else {}
    gate = [{"conditionType": GATE}]
    return asking(resources, image, container=container, readinessGates=gate)


def gated(body: Document | None = None, grace: int = GRACE, **more: Any) -> World:
    in_place = {"resources": "InPlace", "gracePeriodSeconds": grace}
    strategy = {"inPlaceUpdateStrategy": in_place}
    return resizing(body or behind_a_gate(LESS), updateStrategy=strategy, **more)


def look(world: World, resources: Document = LESS, id: int = 0, **conditions: str) -> None:
    """The decorator, and the kubelet, which says that the containers have these."""
    world.pod_status()
    world.modify(id, lambda pod: told(running(pod), resources, **conditions))


def left(world: World) -> World:
    """Up to where instance 0 has been out of its Services for long enough."""
    world.change(template=behind_a_gate(MORE)).sync()
    look(world)
    world.hook.now += GRACE + 2
    return world


def drained(world: World) -> bool:
    return bool(world.pod(0)["metadata"]["annotations"].get(DRAIN))


def gate(world: World) -> str:
    conditions = world.pod(0)["status"]["conditions"]
    return next(str(item["status"]) for item in conditions if item["type"] == GATE)


def test_the_whole_of_a_drained_resize() -> None:
    """Asked, out of its Services, resized, restarted, labels, back."""
    world = gated().change(template=behind_a_gate(MORE))
    assert decision(world).startswith("Mark/Draining: it leaves its Services for 5 s, then templ")
    world.sync()
    look(world)
    assert (drained(world), gate(world)) == (True, "False")
    assert decision(world).startswith("Keep/Draining")
    world.hook.now += GRACE + 2
    assert decision(world).startswith(RESIZED)
    world.sync()
    assert world.writes == []
    world.modify(0, lambda pod: given(pod, MORE))
    found = "Keep/Draining: its kubelet starts containers again for other resources"
    for _ in range(2):
        assert decision(world) == found
        world.sync()
        assert (drained(world), world.pod_status(), gate(world)) == (True, [], "False")
        look(world)
    look(world, MORE)
    assert decision(world).startswith("UpdateInPlace/TemplateChanged")
    world.sync()
    assert not drained(world)
    look(world, MORE)
    assert gate(world) == "True"
    look(world, MORE)
    assert decision(world) == "Keep/UpToDate: runs its template"


def test_what_somebody_else_has_resized_is_taken_back_behind_a_closed_gate() -> None:
    """The pod has its template's revision all the time."""
    world = gated()
    world.modify(0, lambda pod: told(given(pod, MORE), MORE))
    assert decision(world).startswith("Mark/Draining")
    world.sync()
    look(world, MORE)
    world.hook.now += GRACE + 2
    assert decision(world).startswith(RESIZED)
    world.modify(0, lambda pod: given(pod, LESS))
    assert decision(world).startswith("Keep/Draining")
    look(world, LESS)
    world.sync()
    assert not drained(world)


def test_a_hold_for_something_else_that_begins_leaves_the_drain_as_it_is() -> None:
    world = left(gated())
    world.modify(0, annotated(HOLD, "match 42")).modify(0, annotated(HOLD_FOR, "delete"))
    assert decision(world).startswith("Mark/TemplateChanged")
    world.sync()
    assert world.pod(0)["metadata"]["labels"][HELD] == "true"
    assert (drained(world), world.pod_status(), gate(world)) == (True, [], "False")
    assert decision(world).startswith(RESIZED)


@pytest.mark.parametrize(
    ("again", "grace"), [(False, GRACE), (True, 0)], ids=["no restart", "no grace period"]
)
def test_nothing_is_drained_for_it(again: bool, grace: int) -> None:
    world = gated(behind_a_gate(LESS, again=again), grace)
    world.change(template=behind_a_gate(MORE, again=again))
    assert decision(world).startswith(RESIZED)


@pytest.mark.parametrize(
    ("pending", "seconds"), [("Deferred", 0), ("", 61)], ids=["no room", "for long"]
)
def test_what_does_not_begin_is_waited_for_no_longer(pending: str, seconds: int) -> None:
    """The instance serves on with what it has; it is told of by a condition."""
    world = left(gated())
    world.sync()
    world.hook.now += seconds
    conditions = {"Pending": pending} if pending else {"InProgress": ""}
    world.modify(0, lambda pod: told(given(pod, MORE), LESS, **conditions))
    assert decision(world).startswith("UpdateInPlace/TemplateChanged")
    world.sync()
    assert not drained(world)


def test_another_template_in_the_middle_does_not_forget_who_restarts() -> None:
    """The kubelet of 2 has not stopped its container yet."""
    body = asking(LESS, container={"resizePolicy": AGAIN})
    world = resizing(body, replicas=3)
    world.modify(2, lambda pod: told(given(pod, MORE), LESS))
    before = world.parent["metadata"]["generation"]
    world.change(template=asking({"requests": {"cpu": "3"}}, "web:2", container={"env": []}))
    world.parent["status"]["observedGeneration"] = before + 1
    assert [decision(world, id).partition("/")[0] for id in range(3)] == [
        "Keep",
        "Keep",
        "Recreate",
    ]
