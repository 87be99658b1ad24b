"""Builds a TApp that is updated in place, and the status that its kubelet publishes meanwhile."""

import json
from typing import Any

from tests.builders import Document, running, template
from tests.unit.world import World, settled

RECORD = "apps.tkestack.io/in-place-update"
OLD, WANTED, BETWEEN = "nginx:1.25", "nginx:2", "nginx:1.9"
"""Images before the update, after the update, and of a spec in between."""
GRACE = 30
STOPPED = {
    "exitCode": 137,
    "finishedAt": "2026-01-05T10:59:00Z",
    "startedAt": "2026-01-05T10:00:00Z",
}
"""The state of a container that was killed."""


def decisions_in_order(world: World) -> list[str]:
    return [world.decisions()[id] for id in sorted(world.decisions())]


def with_observed_generation(world: World, generation: int, reason: str) -> World:
    """Sets the observed generation and the reason of Progressing in the TApp's status; returns the
    world.
    """
    status = world.parent["status"]
    conditions = [
        {**item, "reason": reason} if item["type"] == "Progressing" else item
        for item in status["conditions"]
    ]
    status = {**status, "observedGeneration": generation, "conditions": conditions}
    world.parent = {**world.parent, "status": status}
    return world


def update_record(world: World, id: int = 0) -> Document:
    """Returns the record that the last update in place left in the annotations of an instance's
    pod.
    """
    record: Document = json.loads(world.pod(id)["metadata"]["annotations"][RECORD])
    return record


def with_kubelet_write(pod: Document, time: str) -> Document:
    """Returns the pod with a managed field that shows a status write of its kubelet at `time`."""
    entry = {"manager": "kubelet", "operation": "Update", "subresource": "status", "time": time}
    meta = pod["metadata"]
    return {**pod, "metadata": {**meta, "managedFields": [*meta["managedFields"], entry]}}


def just_updated(**spec: Any) -> World:
    """Returns a TApp with one instance whose update from OLD to WANTED has just been written.

    `spec` has fields of its pod spec.
    """
    body = {"terminationGracePeriodSeconds": GRACE, **spec}
    world = settled(template=template(OLD, **body)).change(template=template(WANTED, **body))
    world.sync()
    assert world.pod(0)["metadata"]["generation"] == 2
    return world


def recorded_container_id(world: World) -> str:
    """Returns the ID of the container from before the update, as the record of the update has
    it.
    """
    return str(update_record(world)["containers"]["app"]["id"])


def kubelet_publishes(
    world: World, *, seen: int | None, phase: str = "Running", **container: Any
) -> None:
    """Sets the status of instance 0's pod as its kubelet publishes it.

    `seen` is the observed generation; None if the kubelet does not report it. `container` has
    fields of the container status.
    """

    def publish(pod: Document) -> Document:
        status = running(pod)["status"]
        item = {**status["containerStatuses"][0], **container}
        status = {**status, "phase": phase, "containerStatuses": [item]}
        status["observedGeneration"] = seen
        if seen is None:
            del status["observedGeneration"]
        return {**pod, "status": status}

    world.modify(0, publish)


def settle_in_place(world: World) -> World:
    """Runs syncs until nothing changes, checks that no pod was replaced, and returns the world."""
    before = world.uids()
    world.settle()
    assert world.uids() == before
    return world
