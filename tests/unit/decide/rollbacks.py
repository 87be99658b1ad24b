"""Builds TApps with `onDeadline: Rollback`, and plays rollouts whose pods never become Ready."""

from typing import Any

from tests.builders import Document, running, tapp, template
from tests.unit.world import World, condition

LIMIT = 600
RETRY = "apps.tkestack.io/retry"
ROLLBACK = {"onDeadline": "Rollback"}


def tapp_at_web_1(replicas: int = 3, strategy: Document | None = None, **spec: Any) -> World:
    """Returns a settled TApp with the image `web:1` whose rollouts are rolled back."""
    first = {"template": template("web:1"), "updateStrategy": {**ROLLBACK, **(strategy or {})}}
    return World(tapp(replicas=replicas, **{**first, **spec}), history=True).settle()


def play(found: World, rounds: int = 12, broken: str = "bad") -> World:
    """Runs syncs, and a kubelet on which images with `broken` in their name never get Ready."""
    for _ in range(rounds):
        found.sync()
        found.pods = {
            name: running(pod, ready=broken not in pod["spec"]["containers"][0]["image"])
            for name, pod in found.pods.items()
            if "deletionTimestamp" not in pod["metadata"]
        }
    return found


def wait(found: World, seconds: float = LIMIT) -> World:
    """Lets the time pass, and returns the world."""
    found.hook.now += seconds
    return found


def fail(found: World, tag: str = "bad", **spec: Any) -> World:
    """Rolls out an image that never gets Ready, until the rollout was rolled back, or stopped."""
    play(found.change(template=template(f"web:{tag}"), **spec))
    return play(wait(found))


def retry(found: World) -> World:
    """Annotates the TApp as `kubectl tapp retry` does."""
    revision = found.parent["status"]["updateRevision"]
    at = found.parent["status"]["rolledBack"][revision].partition(": ")[0]
    metadata = found.parent["metadata"]
    annotations = {**metadata.get("annotations", {}), RETRY: f"{revision}/{at}"}
    found.parent = {**found.parent, "metadata": {**metadata, "annotations": annotations}}
    return found


def stalled(found: World) -> tuple[str, str]:
    """Returns reason and message of the condition Stalled; empty texts without the condition."""
    found_condition = condition(found.parent["status"], "Stalled")
    return (found_condition["reason"], found_condition["message"]) if found_condition else ("", "")


def rolled_back(found: World) -> list[str]:
    """Returns the revisions in `status.rolledBack`."""
    return [*found.parent["status"].get("rolledBack", {})]
