"""The customize hook: which other objects a sync needs to see."""

from typing import Any

from tapp.declared.model import Parent
from tapp.world import Declared


def customize(parent: Parent, has_claims: bool, declared: Declared) -> dict[str, Any]:
    """Asks for what claims need: the TApp's Namespace, their second owner, and the StorageClasses.

    All of these, because a claim may be of another class than its template names by now, or of the
    cluster's default; they are few and small. Metacontroller caches the answer for a generation of
    the parent.
    """
    if not has_claims:
        return {"relatedResources": []}
    related: list[dict[str, Any]] = [
        {"apiVersion": "v1", "resource": "namespaces", "names": [parent.metadata.namespace]}
    ]
    if declared.growing_claims:
        related.append(
            {"apiVersion": "storage.k8s.io/v1", "resource": "storageclasses", "labelSelector": {}}
        )
    return {"relatedResources": related}
