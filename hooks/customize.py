"""The customize hook: selects the further objects that a sync needs."""

from typing import Any

from tapp.declared.model import Parent
from tapp.world import Declared


def customize(parent: Parent, has_claims: bool, declared: Declared) -> dict[str, Any]:
    """Returns the related objects that claims need: the Namespace, and perhaps StorageClasses.

    Metacontroller calls this hook once for each generation of a TApp, and caches the result.

    Args:
        parent: the metadata of the TApp.
        has_claims: True if the TApp may have claims. Without claims no related object is needed.
        declared: the kinds of children that the CompositeController declares.
    """
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
