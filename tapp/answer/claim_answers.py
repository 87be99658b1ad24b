"""The claims in the response that are created or changed; `unchanged_claims.py` has all others."""

from typing import Any

from tapp.declared.model import TApp
from tapp.kube.canonical import canonical
from tapp.kube.parts import map_in
from tapp.storage.new_claims import NewClaim, claim_document

Document = dict[str, Any]


def new_claims(tapp: TApp, claims: list[NewClaim], namespace_uid: str) -> list[Document]:
    """Returns the manifests of the claims to create.

    `namespace_uid` is the uid of the TApp's Namespace, which becomes an owner of the claims.
    """
    forms: dict[int, Any] = {}
    found = []
    for claim in claims:
        spec = claim.template["spec"]
        # All claims of one claim template share one spec, so its canonical form is computed once.
        if id(spec) not in forms:
            forms[id(spec)] = canonical(spec)
        found.append(claim_document(tapp, claim, forms[id(spec)], namespace_uid))
    return found


def grown_claim(unchanged: Document, storage: str) -> Document:
    """Returns the manifest for a claim that requests more storage and is unchanged in all other
    fields.

    Args:
        unchanged: the manifest that leaves the claim unchanged.
        storage: the storage to request, such as `20Gi`.
    """
    spec = map_in(unchanged, "spec")
    resources = map_in(spec, "resources")
    requests = {**map_in(resources, "requests"), "storage": storage}
    return {**unchanged, "spec": {**spec, "resources": {**resources, "requests": requests}}}


def modified_claim(document: Document, class_name: str | None) -> Document:
    """Returns the manifest for a claim that requests another VolumeAttributesClass.

    Args:
        document: the manifest of the claim without this change.
        class_name: the name of the VolumeAttributesClass; None removes the class of the claim.
    """
    key = "volumeAttributesClassName"
    spec = {name: value for name, value in map_in(document, "spec").items() if name != key}
    return {**document, "spec": spec if class_name is None else {**spec, key: class_name}}
