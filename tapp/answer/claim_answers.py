"""Claims in the response that are created or enlarged; `unchanged_claims.py` has the others."""

from typing import Any

from tapp.declared.model import TApp
from tapp.kube.canonical import canonical
from tapp.kube.parts import map_in
from tapp.storage.new_claims import NewClaim, claim_document

Document = dict[str, Any]


def new_claims(tapp: TApp, claims: list[NewClaim], namespace_uid: str) -> list[Document]:
    """Returns the claims to create as JSON.

    `namespace_uid` is the uid of the TApp's Namespace, which becomes an owner of the claims.
    """
    forms: dict[int, Any] = {}
    found = []
    for claim in claims:
        spec = claim.template["spec"]
        # The claims of one template share its spec, which is canonicalized once.
        if id(spec) not in forms:
            forms[id(spec)] = canonical(spec)
        found.append(claim_document(tapp, claim, forms[id(spec)], namespace_uid))
    return found


def grown_claim(unchanged: Document, storage: str) -> Document:
    """Returns the response for a claim that requests more storage and is otherwise unchanged.

    Args:
        unchanged: the response that leaves the claim as it is.
        storage: the storage to request, such as `20Gi`.
    """
    spec = map_in(unchanged, "spec")
    resources = map_in(spec, "resources")
    requests = {**map_in(resources, "requests"), "storage": storage}
    return {**unchanged, "spec": {**spec, "resources": {**resources, "requests": requests}}}
