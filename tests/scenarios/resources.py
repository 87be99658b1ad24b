"""Builds TApps whose pods a vertical autoscaler resizes."""

from typing import Any

from simulator.api.admission import lean_pods
from tests.scenarios.apps import tapp, template
from tests.scenarios.life import Document, Life

IGNORE = {"inPlaceUpdateStrategy": {"resources": "Ignore"}}
NATIVE = {"name": "native", "image": "native:1", "restartPolicy": "Always"}


def asking(cpu: str = "100m", image: str = "web:1", **more: Any) -> Document:
    """Returns a pod template whose main container has this CPU limit, and whose native sidecar
    requests it.

    `more` has further fields of the pod spec.
    """
    resources = {"limits": {"cpu": cpu, "memory": "64Mi"}}
    init = {**NATIVE, "resources": {"requests": {"cpu": cpu}}}
    return template(image, container={"resources": resources}, initContainers=[init], **more)


def begun(strategy: Document | None = None, *, lean: bool = False, **spec: Any) -> Life:
    """Returns a TApp with three available instances.

    `strategy` has fields of its update strategy, or is None; `lean` is True if an admission policy
    removes managed fields.
    """
    update = {"maxUnavailable": 2, **(strategy or {})}
    life = Life(policies=[lean_pods] if lean else [])
    life.apply(tapp(replicas=3, template=asking(), updateStrategy=update, **spec))
    life.writes()
    return life


def resize(life: Life, cpu: str, *ids: int) -> Life:
    """Sets the CPU of the pods of these instances as a vertical autoscaler would; no numbers stand
    for all.
    """
    for id in ids or range(3):
        limits = {"limits": {"cpu": cpu}, "requests": {"cpu": cpu}}
        life.world.resize(f"web-{id}", limits, "web")
        life.world.resize(f"web-{id}", {"requests": {"cpu": cpu}}, "native")
    return life.settle()
