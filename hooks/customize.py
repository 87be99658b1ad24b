"""The customize hook: selects the other objects that a sync needs to see."""

from typing import Any

from tapp.declared.model import Parent
from tapp.world import Declared


def customize(parent: Parent, has_claims: bool, declared: Declared) -> dict[str, Any]:
    """Requests the objects that claims need. Metacontroller caches them for each generation."""
    if not has_claims:
        return {"relatedResources": []}
    # The Namespace is the second owner of the claims.
    related: list[dict[str, Any]] = [
        {"apiVersion": "v1", "resource": "namespaces", "names": [parent.metadata.namespace]}
    ]
    # All StorageClasses, which are few and small: a claim may have another class than its template
    # names by now, or the cluster's default.
    if declared.growing_claims:
        related.append(
            {"apiVersion": "storage.k8s.io/v1", "resource": "storageclasses", "labelSelector": {}}
        )
    return {"relatedResources": related}
