"""The PATCHes that resize pods; the service sends them after its answer."""

from typing import Any, NamedTuple

from tapp.decide.changes import Resize
from tapp.plan import Plan

Document = dict[str, Any]


class Patch(NamedTuple):
    """One PATCH of a pod's subresource `resize`."""

    namespace: str
    name: str
    document: Document


def patches(plan: Plan) -> list[Patch]:
    """Resizes that a sync decides on, guarded by each pod's uid and resourceVersion."""
    namespace = plan.world.tapp.metadata.namespace
    return [
        Patch(namespace, change.pod.name, patch_of(change))
        for case in plan.notable
        if isinstance(change := case.decision.change, Resize)
    ]


def patch_of(change: Resize) -> Document:
    """A strategic merge patch of the subresource: containers and native sidecars, by name."""
    main = set(change.pod.spec.main_containers)
    spec: Document = {}
    for name, resources in change.resources.items():
        section = "containers" if name in main else "initContainers"
        spec.setdefault(section, []).append({"name": name, "resources": resources})
    guard = {"uid": change.pod.uid, "resourceVersion": change.pod.version}
    return {"metadata": guard, "spec": spec}
