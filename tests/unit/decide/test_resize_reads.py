"""Containers that read resources from their environment, and resizes of pods that run.

A process has the environment that it was started with. So a container whose template gives it
another value of `resourceFieldRef` starts again when the kubelet has resized its pod.
"""

from typing import Any

import pytest

from tapp.declared.reads import sizes_read_by
from tests.builders import Document, template
from tests.unit.decide.test_metadata import with_digest
from tests.unit.decide.test_resize import IN_PLACE, LESS, MORE, decision, given, resizing, said
from tests.unit.world import World, settled

SIDECAR = {"name": "proxy", "image": "proxy:1"}


def reading(resource: str = "requests.cpu", **reference: Any) -> Document:
    """The environment that has a resource."""
    found = {"resource": resource, **reference}
    return {"env": [{"name": "SIZE", "valueFrom": {"resourceFieldRef": found}}]}


def asking(resources: Document, **container: Any) -> Document:
    """A template whose container has these resources, and reads its requests of cpu."""
    return template("web:1", container={"resources": resources, **(container or reading())})


def told(world: World, resources: Document, **conditions: str) -> World:
    """The kubelet says which resources the containers have, and which image runs."""
    return world.modify(0, lambda pod: with_digest(said(pod, resources, **conditions)))


def resized(world: World, resources: Document) -> World:
    """The API server has taken the resize, and the kubelet has done it."""
    world.modify(0, lambda pod: given(pod, resources))
    return told(world, resources)


def test_a_container_restarts_when_its_resize_is_done() -> None:
    """The plan says so before; the restart is one in place, and the pod stays."""
    world = told(resizing(asking(LESS)), LESS)
    world.change(template=asking(MORE))
    assert decision(world) == (
        "UpdateInPlace/TemplateChanged: template 'default' changes resources of app in place; "
        "then app restarts, to read its resources anew"
    )
    world.modify(0, lambda pod: given(pod, MORE))
    assert decision(world).startswith("Keep/Resizing")
    told(world, MORE)
    assert decision(world).startswith(
        "UpdateInPlace/TemplateChanged: template 'default' restarts app in place"
    )
    uids = world.uids()
    world.sync()
    assert world.uids() == uids
    assert world.container(0)["image"].endswith("@sha256:" + "a" * 64)


def test_a_node_without_room_restarts_nothing() -> None:
    """The container would have the old value again."""
    world = told(resizing(asking(LESS)), LESS)
    world.change(template=asking(MORE))
    world.modify(0, lambda pod: given(pod, MORE))
    pod = world.pod(0)
    told(world, LESS, Pending="Deferred")
    assert decision(world).startswith("Keep/ResizeDeferred")
    world.modify(0, lambda _: pod)
    told(world, MORE)
    assert "restarts app in place" in decision(world)


CASES: dict[str, tuple[Document, Document, Document, bool]] = {
    "its own requests": (reading(), LESS, MORE, True),
    "its own requests, by its name": (reading(containerName="app"), LESS, MORE, True),
    "memory, which stays": (reading("requests.memory"), LESS, MORE, False),
    "a unit in which both are the same": (reading(divisor="4"), LESS, MORE, False),
    "a unit in which they differ": (reading(divisor="1m"), LESS, MORE, True),
    "requests that are limits": (
        reading("requests.cpu"),
        {"limits": {"cpu": "1"}, "requests": {"memory": "1Gi"}},
        {"limits": {"cpu": "2"}, "requests": {"memory": "1Gi"}},
        True,
    ),
    "a limit that was the node's": (
        reading("limits.cpu"),
        LESS,
        {**LESS, "limits": {"cpu": "3"}},
        True,
    ),
    "nothing": ({"command": ["run"]}, LESS, MORE, False),
    "a restart by its resizePolicy": (
        {
            **reading(),
            "resizePolicy": [{"resourceName": "cpu", "restartPolicy": "RestartContainer"}],
        },
        LESS,
        MORE,
        False,
    ),
    "a policy for another resource": (
        {
            **reading(),
            "resizePolicy": [{"resourceName": "memory", "restartPolicy": "RestartContainer"}],
        },
        LESS,
        MORE,
        True,
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_it_restarts_only_for_a_value_that_it_reads(name: str) -> None:
    """A restart costs the budget: none without a reason, and none twice."""
    container, before, after, restarts = CASES[name]
    world = told(resizing(asking(before, **container)), before)
    world.change(template=asking(after, **container))
    assert ("restarts, to read its resources anew" in decision(world)) is restarts
    resized(world, after)
    assert ("restarts app in place" in decision(world)) is restarts
    assert decision(world).startswith("UpdateInPlace/TemplateChanged")


@pytest.mark.parametrize("sidecar", [False, True], ids=["a container", "a native sidecar"])
def test_a_container_that_reads_another_ones_resources_restarts(sidecar: bool) -> None:
    """`containerName` names it; the container that is resized runs on."""
    reader = {**SIDECAR, **reading(containerName="app")}
    beside: Document = {"sidecars": [reader]}
    if sidecar:
        beside = {"initContainers": [{**reader, "restartPolicy": "Always"}]}

    def made(resources: Document) -> Document:
        return template("web:1", container={"resources": resources}, **beside)

    world = told_of_both(resizing(made(LESS), tells=False), LESS)
    world.change(template=made(MORE))
    assert "then proxy restarts" in decision(world)
    world.modify(0, lambda pod: of_the_first(pod, MORE))
    told_of_both(world, MORE)
    assert "restarts proxy in place" in decision(world)


def of_the_first(pod: Document, resources: Document) -> Document:
    """The first container of a pod has other resources by now."""
    first, *others = pod["spec"]["containers"]
    containers = [{**first, "resources": resources}, *others]
    return {**pod, "spec": {**pod["spec"], "containers": containers}}


def told_of_both(world: World, resources: Document) -> World:
    """The kubelet tells of two containers, of which the first has resources."""

    def found(pod: Document) -> Document:
        status = dict(pod["status"])
        for part in ("containerStatuses", "initContainerStatuses"):
            status[part] = [
                {
                    **item,
                    "imageID": f"docker.io/library/{item['image'].split(':')[0]}@sha256:{'a' * 64}",
                    "resources": resources if item["name"] == "app" else {},
                }
                for item in status.get(part, [])
            ]
        return {**pod, "status": {**status, "observedGeneration": pod["metadata"]["generation"]}}

    return world.modify(0, found)


def test_what_is_left_to_others_restarts_nothing() -> None:
    """With `Ignore` the template's resources reach only new pods."""
    strategy = {"inPlaceUpdateStrategy": {"resources": "Ignore"}}
    world = settled(template=asking(LESS), updateStrategy=strategy)
    world.change(template=asking(MORE))
    assert set(world.decisions().values()) <= {"Keep/UpToDate", "Adopt/SameMeaning"}


def test_a_volume_with_resources_restarts_nothing() -> None:
    """The kubelet writes the files of a downward API volume anew."""
    reference = {"resource": "requests.cpu", "containerName": "app"}
    files = {"items": [{"path": "cpu", "resourceFieldRef": reference}]}
    volumes = [{"name": "info", "downwardAPI": files}]

    def made(resources: Document) -> Document:
        return template("web:1", container={"resources": resources}, volumes=volumes)

    world = told(resizing(made(LESS)), LESS)
    world.change(template=made(MORE))
    assert "anew" not in decision(world)
    resized(world, MORE)
    assert "restarts" not in decision(world)


def test_a_resize_by_somebody_else_restarts_nothing_when_it_is_taken_back() -> None:
    """The process still has the value of its template."""
    world = told(resizing(asking(LESS)), LESS)
    resized(world, MORE)
    assert "anew" not in decision(world)
    assert IN_PLACE


@pytest.mark.parametrize(
    ("resource", "divisor", "expected"),
    [
        ("limits.cpu", None, "2"),
        ("limits.cpu", "1m", "1500"),
        ("requests.cpu", "0", "1"),
        ("limits.memory", None, "1073741824"),
        ("limits.memory", "1Mi", "1024"),
        ("limits.memory", "1G", "2"),
        ("requests.memory", "1Gi", "1"),
    ],
)
def test_values_are_those_of_the_kubelet(resource: str, divisor: str, expected: str) -> None:
    """Rounded up to whole units (ExtractContainerResourceValue)."""
    limits = {"cpu": "1500m", "memory": "1Gi"}
    more = {"divisor": divisor} if divisor else {}
    container = {
        "name": "app",
        "resources": {"limits": limits, "requests": {"cpu": "100m"}},
        **reading(resource, **more),
    }
    (entries,) = sizes_read_by([container], [container]).values()
    assert [*entries.values()] == [expected]
