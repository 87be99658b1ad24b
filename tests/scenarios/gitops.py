"""TApps in every state that a tool for GitOps has to tell from the others."""

from collections.abc import Callable
from typing import Any

from tests.builders import manifest
from tests.scenarios.apps import tapp, template
from tests.scenarios.life import Life

Document = dict[str, Any]


def running() -> Life:
    """Three instances that run."""
    return Life().apply(tapp(replicas=3))


def broken() -> Life:
    """A roll to an image that is nowhere."""
    life = running()
    life.world.kubelet.levers.bad_images.add("web:broken")
    life.patch(template=template("web:broken"))
    life.world.run(60)
    return life


def breaking() -> Life:
    """The same a moment after the first instance could not get its image."""
    life = running()
    life.world.kubelet.levers.bad_images.add("web:broken")
    life.begin_patch(template=template("web:broken"))
    return life.until(lambda: life.condition("Degraded").startswith("True"))


def repairing() -> Life:
    """A change that puts it right has just been answered; the instance is still broken."""
    life = broken().begin_patch(template=template("web:2"))
    return life.until(
        lambda: life.status["observedGeneration"] == life.tapp["metadata"]["generation"]
    )


def stalled() -> Life:
    """A roll whose first instance never becomes ready; nothing is known to be broken."""
    life = running()
    life.world.kubelet.levers.unready_images.add("web:unready")
    life.patch(template=template("web:unready"), progressDeadlineSeconds=60)
    life.world.run(120)
    return life


def paused() -> Life:
    """Updates that wait for a person."""
    return running().patch(template=template("web:2"), updateStrategy={"paused": True})


def creating() -> Life:
    """The first pods are on their way."""
    life = Life().begin(tapp(replicas=3))
    return life.until(lambda: bool(life.condition("Progressing")))


def updating() -> Life:
    """An instance is updated, and two wait for it."""
    life = running().begin_patch(template=template("web:2"))
    return life.until(lambda: life.condition("Ready").startswith("False Updating"))


def refused() -> Life:
    """A name that is no host name, with a Service that asks for host names: no pod is made."""
    return Life().apply(manifest("web.v1", serviceName="web", template=template()))


def deleting() -> Life:
    """The TApp waits for its pods to end."""
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
    "refused": refused,
    "deleting": deleting,
}


def document(state: str) -> Document:
    """The TApp in that state, as the API server returns it, without kubectl's annotation."""
    found = STATES[state]().tapp
    metadata = {key: value for key, value in found["metadata"].items() if key != "annotations"}
    return found | {"metadata": metadata}
