"""Builds TApps in every state that GitOps tools must distinguish.

`STATES` has a function for each state, and `document` returns the TApp in a state.
"""

from collections.abc import Callable
from typing import Any

from tests.builders import manifest
from tests.scenarios.apps import tapp, template
from tests.scenarios.life import Life

Document = dict[str, Any]


def running() -> Life:
    """Returns the life of a TApp with three running instances."""
    return Life().apply(tapp(replicas=3))


def broken() -> Life:
    """Returns the life of a TApp whose rollout waits for an image that does not exist."""
    life = running()
    life.world.kubelet.levers.bad_images.add("web:broken")
    life.patch(template=template("web:broken"))
    life.world.run(60)
    return life


def breaking() -> Life:
    """Returns the life of a TApp at the moment when an instance could not pull its new image."""
    life = running()
    life.world.kubelet.levers.bad_images.add("web:broken")
    life.begin_patch(template=template("web:broken"))
    return life.until(lambda: life.condition("Degraded").startswith("True"))


def repairing() -> Life:
    """Returns the life of a TApp at the moment when the service first sees the repair of a broken
    rollout.
    """
    life = broken().begin_patch(template=template("web:2"))
    return life.until(
        lambda: life.status["observedGeneration"] == life.tapp["metadata"]["generation"]
    )


def stalled() -> Life:
    """Returns the life of a TApp whose rollout has waited too long for an instance that never
    becomes Ready.

    No container of the instance has failed.
    """
    life = running()
    life.world.kubelet.levers.unready_images.add("web:unready")
    life.patch(template=template("web:unready"), progressDeadlineSeconds=60)
    life.world.run(120)
    return life


def rolled_back() -> Life:
    """Returns the life of a TApp whose rollout was rolled back at its deadline."""
    life = running()
    life.world.kubelet.levers.unready_images.add("web:unready")
    life.patch(
        template=template("web:unready"),
        progressDeadlineSeconds=60,
        updateStrategy={"onDeadline": "Rollback"},
    )
    life.world.run(180)
    return life


def paused() -> Life:
    """Returns the life of a TApp whose updates are paused before its rollout has begun."""
    return running().patch(template=template("web:2"), updateStrategy={"paused": True})


def creating() -> Life:
    """Returns the life of a TApp whose first pods are being created."""
    life = Life().begin(tapp(replicas=3))
    return life.until(lambda: bool(life.condition("Progressing")))


def updating() -> Life:
    """Returns the life of a TApp during a rollout: one instance is updated, and two wait."""
    life = running().begin_patch(template=template("web:2"))
    return life.until(lambda: life.condition("Ready").startswith("False Updating"))


def refused() -> Life:
    """Returns the life of a TApp without pods, because its name cannot be part of a host name."""
    return Life().apply(manifest("web.v1", serviceName="web", template=template()))


def deleting() -> Life:
    """Returns the life of a TApp in deletion that still has pods."""
    life = running()
    life.world.delete("TApp", "web", propagation="Foreground")
    return life


STATES: dict[str, Callable[[], Life]] = {
    "new": lambda: Life().begin(tapp(replicas=3)),
    "changed": lambda: running().begin_patch(replicas=4),
    "creating": creating,
    "healthy": running,
    "updating": updating,
    "paused": paused,
    "paused-with-nothing-to-do": lambda: running().patch(updateStrategy={"paused": True}),
    "partitioned": lambda: running().patch(
        template=template("web:2"), updateStrategy={"partition": 1}
    ),
    "killed": lambda: running().patch(statuses={"1": "Killed"}),
    "breaking": breaking,
    "broken": broken,
    "repairing": repairing,
    "stalled": stalled,
    "rolled-back": rolled_back,
    "refused": refused,
    "deleting": deleting,
}
"""Name of a state -> a function that simulates a TApp until it is in this state."""


def document(state: str) -> Document:
    """Returns the TApp in a state as it is in the API server, without its annotations."""
    found = STATES[state]().tapp
    metadata = {key: value for key, value in found["metadata"].items() if key != "annotations"}
    return found | {"metadata": metadata}
