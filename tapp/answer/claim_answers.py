"""Answers for claims: a new one from its template, an existing one as it is, or larger.

With the update strategy `OnDelete` Metacontroller never writes a claim that exists, whatever is
answered. With `InPlace` it applies the answer, so that has to be one that changes nothing, as for
pods (`project.py`), but for the one size that is to grow.
"""

from typing import Any

import msgspec

from tapp.declared.model import TApp
from tapp.kube.canonical import canonical
from tapp.kube.objects import ClaimObject
from tapp.kube.parts import map_in, map_of
from tapp.kube.project import merge_key, project
from tapp.pod.manifest import read_annotation
from tapp.storage.new_claims import NewClaim, claim_document
from tapp.words.vocabulary import LAST_APPLIED

Document = dict[str, Any]


def new_claims(tapp: TApp, claims: list[NewClaim], namespace_uid: str) -> list[Document]:
    """Claims to create; those of one template share its spec, which is brought into form once."""
    forms: dict[int, Any] = {}
    found = []
    for claim in claims:
        spec = claim.template["spec"]
        if id(spec) not in forms:
            forms[id(spec)] = canonical(spec)
        found.append(claim_document(tapp, claim, forms[id(spec)], namespace_uid))
    return found


def kept_claim(claim: ClaimObject) -> Document:
    """The answer that keeps a claim of which nothing is ever written (`OnDelete`)."""
    metadata: Document = {"name": claim.metadata.name}
    if claim.metadata.namespace:
        metadata["namespace"] = claim.metadata.namespace
    if claim.metadata.labels:
        metadata["labels"] = claim.metadata.labels
    return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": metadata}


def unchanged_claim(claim: ClaimObject) -> Document:
    """The answer that leaves a claim alone where Metacontroller applies it (`InPlace`).

    A claim that Metacontroller has not applied before is answered with its metadata: one write of
    Metacontroller's own annotation, then none.
    """
    kept, annotations = kept_claim(claim), map_of(msgspec.json.decode(claim.metadata.annotations))
    applied = read_annotation(msgspec.json.decode, annotations.pop(LAST_APPLIED, None))
    if not isinstance(applied, dict):
        return kept
    observed = _document(claim, annotations)
    result: Document = project(observed, applied)
    metadata: Document = {}
    before = applied.get("metadata")
    if isinstance(before, dict):
        metadata = {**result["metadata"]}
        if "ownerReferences" in metadata:
            metadata["ownerReferences"] = _owners(
                metadata["ownerReferences"],
                observed["metadata"]["ownerReferences"],
                before["ownerReferences"],
            )
    identity = {key: value for key, value in kept["metadata"].items() if key != "labels"}
    return {**result, **kept, "metadata": {**metadata, **identity}}


def grown_claim(unchanged: Document, storage: str) -> Document:
    """The claim that `unchanged_claim` gives, with another size, and nothing else."""
    spec = map_in(unchanged, "spec")
    resources = map_in(spec, "resources")
    requests = {**map_in(resources, "requests"), "storage": storage}
    return {**unchanged, "spec": {**spec, "resources": {**resources, "requests": requests}}}


def _document(claim: ClaimObject, annotations: Document) -> Document:
    """A claim as far as projection looks at it; what is not there is left out."""
    meta = claim.metadata
    parts = {
        "labels": meta.labels,
        "annotations": annotations,
        "ownerReferences": msgspec.json.decode(meta.owner_references),
        "finalizers": msgspec.json.decode(meta.finalizers),
    }
    identity = kept_claim(claim)
    metadata = {**identity["metadata"], **{key: part for key, part in parts.items() if part}}
    spec = msgspec.json.decode(claim.spec)
    return {**identity, "metadata": metadata, **({"spec": spec} if spec else {})}


def _owners(projected: Any, observed: Any, applied: Any) -> Any:
    """Owners in a form that Metacontroller's merge does not mix up.

    It tells owners apart by name, and a TApp may have the name of its Namespace: one would take the
    place of the other, and the claim lose the owner that protects it. The name no longer is the key
    where an item has none: an owner that was not applied is answered with its uid alone, which
    changes nothing of it. Where somebody has written all of them into Metacontroller's annotation
    no answer leaves them alone; the API server refuses owners without a name, so none is lost.
    """
    if not isinstance(observed, list):
        return projected
    before = applied if isinstance(applied, list) else []  # as Metacontroller reads it
    if merge_key(observed, before) != "name":
        return projected
    if len({str(owner["name"]) for owner in observed}) == len(observed):
        return projected
    ours = [owner.get("uid") for owner in before]
    others = [owner for owner in observed if owner.get("uid") not in ours] or observed
    return [{"uid": owner.get("uid")} if owner in others else owner for owner in observed]
