"""Tests resizes that restart a container: the pod first leaves its Services, and uses the
budget.
"""

from typing import Any

import pytest

from tests.builders import Document, running
from tests.holds import HELD, HOLD, HOLD_FOR
from tests.unit.decide.pods import annotated
from tests.unit.decide.resizing import (
    LESS,
    MORE,
    RESIZED,
    decision,
    tapp_with_resizing,
    template_with_resources,
    with_reported_resources,
    with_resources,
)
from tests.unit.world import World

DRAIN = "apps.tkestack.io/drain"
GATE = "apps.tkestack.io/InPlaceUpdateReady"
GRACE = 5
RESTART_FOR_CPU = [{"resourceName": "cpu", "restartPolicy": "RestartContainer"}]


def gated_template(resources: Document, image: str = "web:1", *, restarts: bool = True) -> Document:
    container = {"resizePolicy": RESTART_FOR_CPU} if restarts else {}
    gate = [{"conditionType": GATE}]
    return template_with_resources(resources, image, container=container, readinessGates=gate)


def tapp_with_gate(body: Document | None = None, grace: int = GRACE, **more: Any) -> World:
    in_place = {"resources": "InPlace", "gracePeriodSeconds": grace}
    strategy = {"inPlaceUpdateStrategy": in_place}
    return tapp_with_resizing(body or gated_template(LESS), updateStrategy=strategy, **more)


def decorator_and_kubelet(
    world: World, resources: Document = LESS, id: int = 0, **conditions: str
) -> None:
    """Runs the pod-status hook, and then sets Ready and the resources that the kubelet reports for
    an instance.

    `conditions` adds conditions of a resize, such as `Pending="Deferred"`.
    """
    world.pod_status()
    world.modify(id, lambda pod: with_reported_resources(running(pod), resources, **conditions))


def out_of_services(world: World) -> World:
    """Changes the resources and waits until the grace period of instance 0 outside its Services has
    ended.

    Returns the world.
    """
    world.change(template=gated_template(MORE)).sync()
    decorator_and_kubelet(world)
    world.hook.now += GRACE + 2
    return world


def has_drain_annotation(world: World) -> bool:
    return bool(world.pod(0)["metadata"]["annotations"].get(DRAIN))


def gate_status(world: World) -> str:
    conditions = world.pod(0)["status"]["conditions"]
    return next(str(item["status"]) for item in conditions if item["type"] == GATE)


def test_resize_with_a_restart_happens_outside_the_services() -> None:
    """Plays all steps of such a resize: leave the Services, resize, restart, write the labels,
    return.
    """
    world = tapp_with_gate().change(template=gated_template(MORE))
    assert decision(world).startswith(
        "Mark/Draining: its pod leaves its Services 5 s before its update:"
    )
    world.sync()
    decorator_and_kubelet(world)
    assert has_drain_annotation(world)
    assert gate_status(world) == "False"
    assert decision(world).startswith("Keep/Draining")
    world.hook.now += GRACE + 2
    assert decision(world).startswith(RESIZED)
    world.sync()
    assert world.writes == []
    world.modify(0, lambda pod: with_resources(pod, MORE))
    found = (
        "Keep/Draining: the kubelet restarts its containers for a resize, so its pod "
        "stays out of its Services"
    )
    for _ in range(2):
        assert decision(world) == found
        world.sync()
        assert has_drain_annotation(world)
        assert world.pod_status() == []
        assert gate_status(world) == "False"
        decorator_and_kubelet(world)
    decorator_and_kubelet(world, MORE)
    assert decision(world).startswith("UpdateInPlace/TemplateChanged")
    world.sync()
    assert not has_drain_annotation(world)
    decorator_and_kubelet(world, MORE)
    assert gate_status(world) == "True"
    decorator_and_kubelet(world, MORE)
    assert decision(world) == "Keep/UpToDate: its pod matches its template"


def test_resize_by_somebody_else_is_reverted_outside_the_services() -> None:
    """A user has resized a pod: the service resizes it back, outside of its Services.

    The revision label of the pod does not change, so only the resources show the resize.
    """
    world = tapp_with_gate()
    world.modify(0, lambda pod: with_reported_resources(with_resources(pod, MORE), MORE))
    assert decision(world).startswith("Mark/Draining")
    world.sync()
    decorator_and_kubelet(world, MORE)
    world.hook.now += GRACE + 2
    assert decision(world).startswith(RESIZED)
    world.modify(0, lambda pod: with_resources(pod, LESS))
    assert decision(world).startswith("Keep/Draining")
    decorator_and_kubelet(world, LESS)
    world.sync()
    assert not has_drain_annotation(world)


def test_hold_for_deletions_does_not_return_a_leaving_pod_to_its_services() -> None:
    world = out_of_services(tapp_with_gate())
    world.modify(0, annotated(HOLD, "match 42")).modify(0, annotated(HOLD_FOR, "delete"))
    assert decision(world).startswith("Mark/TemplateChanged")
    world.sync()
    assert world.pod(0)["metadata"]["labels"][HELD] == "true"
    assert has_drain_annotation(world)
    assert world.pod_status() == []
    assert gate_status(world) == "False"
    assert decision(world).startswith(RESIZED)


@pytest.mark.parametrize(
    ("restarts", "grace"), [(False, GRACE), (True, 0)], ids=["no restart", "no grace period"]
)
def test_pod_stays_in_its_services_without_a_restart_or_a_grace_period(
    restarts: bool, grace: int
) -> None:
    world = tapp_with_gate(gated_template(LESS, restarts=restarts), grace)
    world.change(template=gated_template(MORE, restarts=restarts))
    assert decision(world).startswith(RESIZED)


@pytest.mark.parametrize(
    ("pending", "seconds"),
    [("Deferred", 0), ("", 61)],
    ids=["deferred", "in progress for a minute"],
)
def test_pod_returns_to_its_services_if_its_resize_does_not_start(
    pending: str, seconds: int
) -> None:
    """The kubelet defers a resize, or does not finish it for a minute: the pod returns to its
    Services.

    The instance serves requests with its old resources, and a condition names it.
    """
    world = out_of_services(tapp_with_gate())
    world.sync()
    world.hook.now += seconds
    conditions = {"Pending": pending} if pending else {"InProgress": ""}
    world.modify(
        0, lambda pod: with_reported_resources(with_resources(pod, MORE), LESS, **conditions)
    )
    assert decision(world).startswith("UpdateInPlace/TemplateChanged")
    world.sync()
    assert not has_drain_annotation(world)


def test_pending_restart_uses_the_budget_after_a_further_edit() -> None:
    """Edits the template while the kubelet of instance 2 still has to restart its container: no
    other pod is updated.
    """
    body = template_with_resources(LESS, container={"resizePolicy": RESTART_FOR_CPU})
    world = tapp_with_resizing(body, replicas=3)
    world.modify(2, lambda pod: with_reported_resources(with_resources(pod, MORE), LESS))
    before = world.parent["metadata"]["generation"]
    world.change(
        template=template_with_resources({"requests": {"cpu": "3"}}, "web:2", container={"env": []})
    )
    world.parent["status"]["observedGeneration"] = before + 1
    assert [decision(world, id).partition("/")[0] for id in range(3)] == [
        "Keep",
        "Keep",
        "Recreate",
    ]
