"""A TApp whose pods are resized in place, and the reports of its kubelets."""

from typing import Any

from hooks.app import create_app
from hooks.service.settings import Settings
from tests.builders import Document, tapp, template
from tests.unit.world import Hook, World

IN_PLACE = {"inPlaceUpdateStrategy": {"resources": "InPlace"}}
LESS, MORE = ({"requests": {"cpu": cpu, "memory": "1Gi"}} for cpu in ("1", "2"))
RESIZED = "UpdateInPlace/TemplateChanged: template 'default' changes resources of app in place"


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
    """Returns a settled TApp with `resources: InPlace` whose kubelets report resources."""
    spec = {"template": body or template_with_resources(LESS), "replicas": replicas, **spec}
    spec["updateStrategy"] = {**IN_PLACE, **spec.get("updateStrategy", {})}
    world = World(tapp(**spec), history=True).settle()
    world.hook = _hook(resize)
    if reports:
        for id in range(replicas):
            world.modify(id, with_reported_resources)
    return world


def _hook(resize: bool) -> Hook:
    """Returns a hook service that sends no resizes."""
    hook = Hook()
    settings = Settings(log_level="ERROR", resize=resize)
    app = create_app(settings, lambda: hook.now, resize=lambda _plan: None)
    hook.client = app.test_client()
    return hook


def with_reported_resources(
    pod: Document, resources: Document | None = None, **conditions: str
) -> Document:
    """Returns the pod with the resources that its kubelet reports, by default those of the spec."""
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
    """Returns the pod after a resize request that the kubelet has not observed yet."""
    containers = [{**pod["spec"]["containers"][0], "resources": resources}]
    meta = {**pod["metadata"], "generation": pod["metadata"]["generation"] + 1}
    return {**pod, "metadata": meta, "spec": {**pod["spec"], "containers": containers}}


def decision(world: World, id: int = 0) -> str:
    """Returns the decision on an instance as `Action/Reason: message`."""
    found = world.hook.answer("/plan", world.request())["instances"][id]
    world.hook.sync(world.request())
    return f"{found['action']}/{found['reason']}: {found['message']}"
