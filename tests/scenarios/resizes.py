"""Builds TApps whose pods the service resizes in place (`resources: InPlace`)."""

from typing import Any

from simulator.api.admission import lean_pods
from tests.scenarios.apps import tapp, template
from tests.scenarios.life import Document, Life

NATIVE = {"name": "native", "image": "native:1", "restartPolicy": "Always"}
RESTART = [{"resourceName": "cpu", "restartPolicy": "RestartContainer"}]


def strategy(unavailable: int = 1, **more: Any) -> Document:
    in_place = {"resources": "InPlace"}
    return {"maxUnavailable": unavailable, "inPlaceUpdateStrategy": in_place, **more}


def asking(cpu: str = "100m", image: str = "web:1", **more: Any) -> Document:
    """Returns a pod template whose main container has this CPU limit, and whose native sidecar
    requests it.

    `more` has further fields of the main container.
    """
    resources = {"limits": {"cpu": cpu, "memory": "64Mi"}, "requests": {"cpu": "50m"}}
    init = {**NATIVE, "resources": {"requests": {"cpu": cpu}}}
    container = {"resources": resources, **more}
    return template(image, container=container, initContainers=[init])


def begun(
    body: Document | None = None,
    *,
    lean: bool = False,
    reports: bool = True,
    resize: bool = True,
    **spec: Any,
) -> Life:
    """Returns a TApp with three available instances, whose readiness is watched from now on.

    Args:
        body: the pod template; None for `asking()`.
        lean: True if an admission policy removes managed fields.
        reports: True if kubelets support resizes and report the resources of containers.
        resize: True if the component resize is installed.
        spec: further fields of the spec.
    """
    life = Life(policies=[lean_pods] if lean else [], resize=resize)
    life.world.kubelet.levers.resizes = reports
    spec = {"updateStrategy": strategy(), **spec}
    life.apply(tapp(replicas=3, template=body or asking(), **spec))
    life.writes()
    life.watch_readiness()
    return life
