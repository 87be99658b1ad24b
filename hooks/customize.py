"""The customize hook: which other objects a sync needs to see."""

from typing import Any

from tapp.model import Parent


def customize(parent: Parent, has_claims: bool) -> dict[str, Any]:
    """Asks for the TApp's Namespace where claims need it as their second owner.

    Metacontroller caches the answer for a generation of the parent.
    """
    if not has_claims:
        return {"relatedResources": []}
    return {
        "relatedResources": [
            {"apiVersion": "v1", "resource": "namespaces", "names": [parent.metadata.namespace]}
        ]
    }
