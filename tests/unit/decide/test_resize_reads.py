"""Tests containers that read their resources from the environment, and resizes of their pods.

A process keeps the environment that it was started with. So a container whose template changes the
value of a `resourceFieldRef` is restarted after the kubelet has resized its pod.
"""

from typing import Any

import pytest

from tapp.declared.reads import sizes_read_by
from tests.builders import Document, template
from tests.unit.decide.pods import with_digest
from tests.unit.decide.resizing import (
    IN_PLACE,
    LESS,
    MORE,
    decision,
    tapp_with_resizing,
    with_reported_resources,
    with_resources,
)
from tests.unit.world import World, settled

SIDECAR = {"name": "proxy", "image": "proxy:1"}


def env_with_resource(resource: str = "requests.cpu", **reference: Any) -> Document:
    """Returns fields of a container with an environment variable that reads this resource.

    `reference` has further fields of the `resourceFieldRef`.
    """
    found = {"resource": resource, **reference}
    return {"env": [{"name": "SIZE", "valueFrom": {"resourceFieldRef": found}}]}


def reading_template(resources: Document, **container: Any) -> Document:
    """Returns a template with these resources whose container reads its CPU requests.

    `container` has fields of the container that replace the environment variable.
    """
    return template(
        "web:1", container={"resources": resources, **(container or env_with_resource())}
    )


def reported(world: World, resources: Document, **conditions: str) -> World:
    """Sets the resources and the image digest that the kubelet reports for the pod, and returns the
    world.
    """
    return world.modify(
        0, lambda pod: with_digest(with_reported_resources(pod, resources, **conditions))
    )


def resized(world: World, resources: Document) -> World:
    """Resizes the pod: the API server accepts the resources, and the kubelet reports them; returns
    the world.
    """
    world.modify(0, lambda pod: with_resources(pod, resources))
    return reported(world, resources)


def test_container_that_reads_its_resources_restarts_in_place_after_the_resize() -> None:
    """Changes the resources of a container that reads them: after the resize, the container
    restarts.

    The plan announces the restart before the resize starts.
    """
    world = reported(tapp_with_resizing(reading_template(LESS)), LESS)
    world.change(template=reading_template(MORE))
    assert decision(world) == (
        "UpdateInPlace/TemplateChanged: template 'default' changes resources of container app in "
        "place; then container app restarts, to read the new resources"
    )
    world.modify(0, lambda pod: with_resources(pod, MORE))
    assert decision(world).startswith("Keep/Resizing")
    reported(world, MORE)
    assert decision(world).startswith(
        "UpdateInPlace/TemplateChanged: template 'default' restarts container app in place"
    )
    uids = world.uids()
    world.sync()
    assert world.uids() == uids
    assert world.container(0)["image"].endswith("@sha256:" + "a" * 64)


def test_container_does_not_restart_while_the_resize_is_deferred() -> None:
    """The kubelet defers the resize: the container restarts only after the resize.

    Until the resize is done, the container would only read its old value again.
    """
    world = reported(tapp_with_resizing(reading_template(LESS)), LESS)
    world.change(template=reading_template(MORE))
    world.modify(0, lambda pod: with_resources(pod, MORE))
    pod = world.pod(0)
    reported(world, LESS, Pending="Deferred")
    assert decision(world).startswith("Keep/ResizeDeferred")
    world.modify(0, lambda _: pod)
    reported(world, MORE)
    assert "restarts container app in place" in decision(world)


CASES: dict[str, tuple[Document, Document, Document, bool]] = {
    "own requests": (env_with_resource(), LESS, MORE, True),
    "own requests by container name": (env_with_resource(containerName="app"), LESS, MORE, True),
    "memory that does not change": (env_with_resource("requests.memory"), LESS, MORE, False),
    "divisor with equal results": (env_with_resource(divisor="4"), LESS, MORE, False),
    "divisor with different results": (env_with_resource(divisor="1m"), LESS, MORE, True),
    "requests that default to limits": (
        env_with_resource("requests.cpu"),
        {"limits": {"cpu": "1"}, "requests": {"memory": "1Gi"}},
        {"limits": {"cpu": "2"}, "requests": {"memory": "1Gi"}},
        True,
    ),
    "limit that defaulted to the node": (
        env_with_resource("limits.cpu"),
        LESS,
        {**LESS, "limits": {"cpu": "3"}},
        True,
    ),
    "no resource": ({"command": ["run"]}, LESS, MORE, False),
    "restart by resizePolicy": (
        {
            **env_with_resource(),
            "resizePolicy": [{"resourceName": "cpu", "restartPolicy": "RestartContainer"}],
        },
        LESS,
        MORE,
        False,
    ),
    "resizePolicy of another resource": (
        {
            **env_with_resource(),
            "resizePolicy": [{"resourceName": "memory", "restartPolicy": "RestartContainer"}],
        },
        LESS,
        MORE,
        True,
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_container_restarts_only_if_a_value_that_it_reads_changes(name: str) -> None:
    """Compares several references to resources: a restart follows only if the read value changes.

    A restart uses the budget, so no container restarts without a reason or twice.
    """
    container, before, after, restarts = CASES[name]
    world = reported(tapp_with_resizing(reading_template(before, **container)), before)
    world.change(template=reading_template(after, **container))
    assert ("restarts, to read the new resources" in decision(world)) is restarts
    resized(world, after)
    assert ("restarts container app in place" in decision(world)) is restarts
    assert decision(world).startswith("UpdateInPlace/TemplateChanged")


@pytest.mark.parametrize("sidecar", [False, True], ids=["container", "native sidecar"])
def test_container_that_reads_the_resources_of_another_one_restarts(sidecar: bool) -> None:
    """A sidecar reads the resources of the app: after the resize of the app, the sidecar restarts,
    and not the app.
    """
    reader = {**SIDECAR, **env_with_resource(containerName="app")}
    beside: Document = {"sidecars": [reader]}
    if sidecar:
        beside = {"initContainers": [{**reader, "restartPolicy": "Always"}]}

    def made(resources: Document) -> Document:
        return template("web:1", container={"resources": resources}, **beside)

    world = reported_for_both(tapp_with_resizing(made(LESS), tells=False), LESS)
    world.change(template=made(MORE))
    assert "then container proxy restarts" in decision(world)
    world.modify(0, lambda pod: with_first_resources(pod, MORE))
    reported_for_both(world, MORE)
    assert "restarts container proxy in place" in decision(world)


def with_first_resources(pod: Document, resources: Document) -> Document:
    """Returns the pod with these resources of its first container in its spec."""
    first, *others = pod["spec"]["containers"]
    containers = [{**first, "resources": resources}, *others]
    return {**pod, "spec": {**pod["spec"], "containers": containers}}


def reported_for_both(world: World, resources: Document) -> World:
    """Sets the resources and image digests that the kubelet reports for two containers; returns the
    world.
    """

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


def test_no_container_restarts_with_resources_ignore() -> None:
    """With `Ignore`, changed resources of the template reach only new pods, so nothing restarts."""
    strategy = {"inPlaceUpdateStrategy": {"resources": "Ignore"}}
    world = settled(template=reading_template(LESS), updateStrategy=strategy)
    world.change(template=reading_template(MORE))
    assert set(world.decisions().values()) <= {"Keep/UpToDate", "Adopt/SameMeaning"}


def test_container_with_resources_in_a_volume_does_not_restart() -> None:
    """A container reads its resources from a downward API volume, whose files the kubelet updates:
    it does not restart.
    """
    reference = {"resource": "requests.cpu", "containerName": "app"}
    files = {"items": [{"path": "cpu", "resourceFieldRef": reference}]}
    volumes = [{"name": "info", "downwardAPI": files}]

    def made(resources: Document) -> Document:
        return template("web:1", container={"resources": resources}, volumes=volumes)

    world = reported(tapp_with_resizing(made(LESS)), LESS)
    world.change(template=made(MORE))
    assert "to read the new" not in decision(world)
    resized(world, MORE)
    assert "restarts" not in decision(world)


def test_no_container_restarts_when_a_resize_by_somebody_else_is_reverted() -> None:
    """A user has resized a pod, and the service reverts that: no container restarts.

    The process was started with the template's value, and has never read another one.
    """
    world = reported(tapp_with_resizing(reading_template(LESS)), LESS)
    resized(world, MORE)
    assert "to read the new" not in decision(world)
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
    ids=lambda part: part or "no divisor",
)
def test_values_are_rounded_up_to_whole_units_as_the_kubelet_does(
    resource: str, divisor: str, expected: str
) -> None:
    """Computes values of `resourceFieldRef` with several divisors, like the kubelet's
    ExtractContainerResourceValue.
    """
    limits = {"cpu": "1500m", "memory": "1Gi"}
    more = {"divisor": divisor} if divisor else {}
    container = {
        "name": "app",
        "resources": {"limits": limits, "requests": {"cpu": "100m"}},
        **env_with_resource(resource, **more),
    }
    (entries,) = sizes_read_by([container], [container]).values()
    assert [*entries.values()] == [expected]
