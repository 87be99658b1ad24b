"""The PATCH requests that resize pods; the service sends them after its response."""

from typing import Any, NamedTuple

from tapp.decide.changes import Resize
from tapp.plan import Plan

Document = dict[str, Any]


class Patch(NamedTuple):
    """One PATCH request of a pod's subresource `resize`: where it goes, and its body."""

    namespace: str
    name: str
    document: Document


def patches(plan: Plan) -> list[Patch]:
    """Returns the PATCH requests for the resizes that a sync has decided on.

    Each patch has the pod's uid and resourceVersion, so the API server rejects it if the pod has
    changed.
    """
    namespace = plan.world.tapp.metadata.namespace
    return [
        Patch(namespace, change.pod.name, patch_of(change))
        for case in plan.notable
        if isinstance(change := case.decision.change, Resize)
    ]


def patch_of(change: Resize) -> Document:
    """Returns the strategic merge patch of the subresource `resize` for a pod.

    It has the new resources of containers and native sidecars.
    """
    main = set(change.pod.spec.main_containers)
    spec: Document = {}
    for name, resources in change.resources.items():
        section = "containers" if name in main else "initContainers"
        spec.setdefault(section, []).append({"name": name, "resources": resources})
    guard = {"uid": change.pod.uid, "resourceVersion": change.pod.version}
    return {"metadata": guard, "spec": spec}
