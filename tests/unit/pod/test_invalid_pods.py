"""Tests that a pod with fields of wrong types stays as it is, and does not affect other
instances.
"""

from collections.abc import Callable
from copy import deepcopy
from typing import Any

import pytest

from simulator.api.apply import apply_update
from tests.builders import Document, labelled, template
from tests.hook_calls import desired
from tests.unit.world import World, condition, settled


def put(*path: str | int, value: Any) -> Callable[[Document], Document]:
    """Returns a function that sets the field at this path of a pod to a value."""

    def change(pod: Document) -> Document:
        pod = deepcopy(pod)
        inner: Any = pod
        for key in path[:-1]:
            inner = inner[key]
        inner[path[-1]] = value
        return pod

    return change


REVISION = ("metadata", "labels", "tapp_template_hash_key")
RECORD = ("metadata", "annotations", "apps.tkestack.io/in-place-update")
IMAGES = ("metadata", "annotations", "apps.tkestack.io/template-images")
LAST = ("metadata", "annotations", "metacontroller.k8s.io/last-applied-configuration")

ODD: dict[str, Callable[[Document], Document]] = {
    "labels are a list": put("metadata", "labels", value=["a"]),
    "labels are null": put("metadata", "labels", value=None),
    "a label is a number": put(*REVISION, value=5),
    "a label is an object": put(*REVISION, value={"a": 1}),
    "annotations are a string": put("metadata", "annotations", value="a"),
    "the record is a number": put(*RECORD, value=5),
    "the record is an object": put(*RECORD, value={"containers": {}}),
    "the template-images annotation is a list": put(*IMAGES, value=["a"]),
    "last-applied is a number": put(*LAST, value=5),
    "the creation time is a number": put("metadata", "creationTimestamp", value=5),
    "the generation is a string": put("metadata", "generation", value="one"),
    "the namespace is null": put("metadata", "namespace", value=None),
    "the spec is a list": put("spec", value=["containers"]),
    "the spec is null": put("spec", value=None),
    "containers are a number": put("spec", "containers", value=5),
    "containers are an object": put("spec", "containers", value={"app": {}}),
    "a container is a string": put("spec", "containers", value=["app"]),
    "a container's name is a list": put("spec", "containers", 0, "name", value=["app"]),
    "a container's image is a number": put("spec", "containers", 0, "image", value=5),
    "the node's name is a number": put("spec", "nodeName", value=5),
    "the restart policy is a list": put("spec", "restartPolicy", value=["Always"]),
    "the status is a string": put("status", value="Running"),
    "the status is null": put("status", value=None),
    "the phase is a number": put("status", "phase", value=7),
    "conditions are an object": put("status", "conditions", value={"Ready": True}),
    "a condition is null": put("status", "conditions", value=[None]),
    "the Ready condition's status is a boolean": put(
        "status", "conditions", value=[{"type": "Ready", "status": True}]
    ),
    "container statuses are a string": put("status", "containerStatuses", value="none"),
    "a containerID is a number": put("status", "containerStatuses", 0, "containerID", value=1),
    "a container's state is a list": put("status", "containerStatuses", 0, "state", value=[1]),
}


@pytest.mark.parametrize(
    "noted", [True, False], ids=["current status", "status of an earlier release"]
)
@pytest.mark.parametrize("change", ODD.values(), ids=ODD.keys())
def test_pod_with_an_invalid_field_stays_and_other_instances_are_updated(
    change: Callable[[Document], Document], noted: bool
) -> None:
    world = updated_once().modify(0, change)
    if not noted:
        known = {key: item for key, item in world.parent["status"].items() if "Rev" not in key}
        world.parent = {**world.parent, "status": known}
    world.change(template=template("nginx:3"), updateStrategy={"maxUnavailable": 3})
    world.hook.answer("/plan", world.request())
    request = world.request()
    answer = world.hook.answer("/sync", request)
    pods = desired(answer, "Pod")
    assert sorted(pods) == ["web-0", "web-1", "web-2"]
    for id in (1, 2):
        after = apply_update(world.pod(id), labelled(pods[f"web-{id}"], world.parent))
        assert after["spec"]["containers"][0]["image"] == "nginx:3"


STILL_CLEAR = (
    "labels are null",
    "the namespace is null",
    "the status is null",
    "the creation time is a number",
    "container statuses are a string",
    "a containerID is a number",
    "a container's state is a list",
    "the node's name is a number",
    "the restart policy is a list",
)
"""Invalid fields that do not hide the requested spec of the pod."""

UNCLEAR = {key: change for key, change in ODD.items() if key not in STILL_CLEAR}


@pytest.mark.parametrize("change", UNCLEAR.values(), ids=UNCLEAR.keys())
def test_pod_whose_requested_spec_is_unclear_is_kept_and_named(
    change: Callable[[Document], Document],
) -> None:
    world = updated_once().modify(0, change)
    world.change(template=template(container={"command": ["x"]}))
    answer = world.hook.answer("/sync", world.request())
    assert "web-0" in desired(answer, "Pod")
    found = condition(answer, "UnreadablePods")
    assert found is not None
    assert found["message"].startswith("instance 0: the TApp service cannot read the pod")


def updated_once() -> World:
    """Returns a TApp with three pods that have the record of an update in place."""
    return settled(replicas=3).change(template=template("nginx:2")).settle()


def test_pod_with_an_invalid_field_is_deleted_by_a_scale_down() -> None:
    world = settled(replicas=2).modify(1, ODD["the phase is a number"]).change(replicas=1)
    answer = world.hook.answer("/sync", world.request())
    assert sorted(desired(answer, "Pod")) == ["web-0"]


def test_pod_with_an_invalid_field_does_not_block_the_deletion_of_the_tapp() -> None:
    world = settled(replicas=2).modify(1, ODD["the spec is a list"])
    answer = world.hook.answer("/finalize", world.request(finalizing=True))
    assert answer["children"] == []
