"""Builds a TApp whose pods are resized in place (`resources: InPlace`), and the reports of its
kubelets.
"""

from typing import Any

from hooks.app import create_app
from hooks.service.settings import Settings
from tests.builders import Document, tapp, template
from tests.unit.world import Hook, World

IN_PLACE = {"inPlaceUpdateStrategy": {"resources": "InPlace"}}
LESS, MORE = ({"requests": {"cpu": cpu, "memory": "1Gi"}} for cpu in ("1", "2"))
RESIZED = (
    "UpdateInPlace/TemplateChanged: template 'default' changes resources of container app in place"
)
"""The decision on an instance whose resize is requested, and the beginning of its message."""


def template_with_resources(
    resources: Document | None, image: str = "web:1", **more: Any
) -> Document:
    container = {} if resources is None else {"resources": resources}
    return template(image, container={**container, **more.pop("container", {})}, **more)


def tapp_with_resizing(
    body: Document | None = None,
    *,
    reports: bool = True,
    resize: bool = True,
    replicas: int = 1,
    **spec: Any,
) -> World:
    """Returns a TApp with `resources: InPlace`, after it has settled.

    Args:
        body: the pod template; None for one that requests the resources LESS.
        reports: True if the kubelets have reported the resources of the containers.
        resize: True if the component resize is installed.
        replicas: the number of instances.
        spec: further fields of the TApp's spec.
    """
    spec = {"template": body or template_with_resources(LESS), "replicas": replicas, **spec}
    spec["updateStrategy"] = {**IN_PLACE, **spec.get("updateStrategy", {})}
    world = World(tapp(**spec), history=True).settle()
    world.hook = _hook(resize)
    if reports:
        for id in range(replicas):
            world.modify(id, with_reported_resources)
    return world


def _hook(resize: bool) -> Hook:
    """Returns a service that decides on resizes and does not send them.

    `resize` is True if the component resize is installed.
    """
    hook = Hook()
    settings = Settings(log_level="ERROR", resize=resize)
    app = create_app(settings, lambda: hook.now, resize=lambda _plan: None)
    hook.client = app.test_client()
    return hook


def with_reported_resources(
    pod: Document, resources: Document | None = None, **conditions: str
) -> Document:
    """Returns the pod after its kubelet has reported resources of its containers; None for those of
    the spec.

    `conditions` adds conditions: `Pending="Deferred"` is the type PodResizePending with this
    reason.
    """
    status = pod["status"]
    own = pod["spec"]["containers"][0].get("resources") or {}
    found = [
        {**item, "resources": own if resources is None else resources}
        for item in status["containerStatuses"]
    ]
    more = [
        {"type": f"PodResize{kind}", "status": "True", "reason": reason, "message": "the words"}
        for kind, reason in conditions.items()
    ]
    generation = pod["metadata"]["generation"]
    status = {**status, "containerStatuses": found, "observedGeneration": generation}
    return {**pod, "status": {**status, "conditions": [*status["conditions"], *more]}}


def with_resources(pod: Document, resources: Document) -> Document:
    """Returns the pod after a resize to these resources that its kubelet has not observed yet."""
    containers = [{**pod["spec"]["containers"][0], "resources": resources}]
    meta = {**pod["metadata"], "generation": pod["metadata"]["generation"] + 1}
    return {**pod, "metadata": meta, "spec": {**pod["spec"], "containers": containers}}


def decision(world: World, id: int = 0) -> str:
    """Returns the decision of the next sync on an instance, as `Action/Reason: message`.

    Checks in addition all invariants of that sync.
    """
    found = world.hook.answer("/plan", world.request())["instances"][id]
    world.hook.sync(world.request())
    return f"{found['action']}/{found['reason']}: {found['message']}"
