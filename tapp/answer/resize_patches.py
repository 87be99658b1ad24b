"""The PATCH requests that resize pods; the service sends them after it has sent its response."""

from typing import Any, NamedTuple

from tapp.decide.changes import Resize
from tapp.plan import Plan

Document = dict[str, Any]


class Patch(NamedTuple):
    """A PATCH request for the subresource `resize` of a pod: namespace and name of the pod, and
    body.
    """

    namespace: str
    name: str
    document: Document


def patches(plan: Plan) -> list[Patch]:
    """Returns the PATCH requests for the resizes that a sync has decided on.

    Each patch contains the uid and the resourceVersion of its pod, so the API server rejects the
    patch if the pod has changed.
    """
    namespace = plan.world.tapp.metadata.namespace
    return [
        Patch(namespace, change.pod.name, patch_of(change))
        for case in plan.notable
        if isinstance(change := case.decision.change, Resize)
    ]


def patch_of(change: Resize) -> Document:
    """Returns the body of a resize request: a strategic merge patch of the subresource `resize`.

    The patch has the new resources of containers and native sidecars.
    """
    main = set(change.pod.spec.main_containers)
    spec: Document = {}
    for name, resources in change.resources.items():
        section = "containers" if name in main else "initContainers"
        spec.setdefault(section, []).append({"name": name, "resources": resources})
    guard = {"uid": change.pod.uid, "resourceVersion": change.pod.version}
    return {"metadata": guard, "spec": spec}
