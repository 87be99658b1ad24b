"""Builds TApps with a partition, and the steps that tests play.

A step is a function that changes a world.
"""

from collections.abc import Callable, Iterable
from typing import Any

from tests.builders import Document, tapp, template
from tests.unit.world import World

PRIORITY = "apps.tkestack.io/update-priority"
Step = Callable[[World], Any]


def web_template(tag: object, **more: Any) -> Document:
    return template(f"web:{tag}", **more)


def tapp_at_web_1(replicas: int = 6, **spec: Any) -> World:
    """Returns a TApp whose instances run the image `web:1`, after it has settled."""
    return World(tapp(replicas=replicas, template=web_template(1), **spec), history=True).settle()


def image_tags(found: World) -> str:
    """Returns the last part of each instance's image in one text, such as `2211`; `-` if it has no
    pod.
    """
    replicas = found.parent["spec"]["replicas"]
    there = [f"web-{id}" in found.pods for id in range(replicas)]
    return "".join(
        found.container(id)["image"].rpartition(":")[2] if here else "-"
        for id, here in enumerate(there)
    )


def roll_out(tag: object, partition: Any = None, **strategy: Any) -> Step:
    """Returns a step that changes the image to `web:TAG` and fields of the update strategy, and
    then settles.

    A partition of None leaves the field as it is.
    """

    def change(found: World) -> None:
        before = found.parent["spec"].get("updateStrategy") or {}
        changed = {**before, **strategy}
        if partition is not None:
            changed["partition"] = partition
        found.change(template=web_template(tag), updateStrategy=changed).settle()

    return change


def set_partition(value: Any, **strategy: Any) -> Step:
    """Returns a step that sets the partition and fields of the update strategy, and then settles.

    None removes a field.
    """

    def change(found: World) -> None:
        before = found.parent["spec"].get("updateStrategy") or {}
        changed = {**before, "partition": value, **strategy}
        kept = {key: item for key, item in changed.items() if item is not None}
        found.change(updateStrategy=kept).settle()

    return change


def edit(**spec: Any) -> Step:
    return lambda found: found.change(**spec).settle()


def lose_pods(*ids: int) -> Step:
    """Returns a step that removes the pods of these instances, together with their annotations."""

    def change(found: World) -> None:
        for id in ids:
            del found.pods[f"web-{id}"]

    return change


def delete_revisions(found: World) -> None:
    """Deletes all ControllerRevisions, as a user may do."""
    found.revisions.clear()


def start_rollout(tag: object, syncs: int = 1, **strategy: Any) -> Step:
    """Returns a step that starts a rollout to the image `web:TAG` and runs only `syncs` syncs of
    it.
    """

    def change(found: World) -> None:
        found.change(template=web_template(tag), updateStrategy=strategy)
        for _ in range(syncs):
            found.sync()
            found.kubelet()

    return change


def play(steps: Iterable[Step], **spec: Any) -> World:
    found = tapp_at_web_1(**spec)
    for step in steps:
        step(found)
    return found.settle()
