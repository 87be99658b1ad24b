"""The answers that leave claims as they are.

With the update strategy `OnDelete` Metacontroller never writes a claim that exists, whatever the
answer says. With `InPlace` it applies the answer, so the answer has to be one that changes nothing,
as for pods (`tapp/kube/project.py`). Both depend on the claim alone.
"""

from typing import Any

import msgspec

from tapp.kube.objects import ClaimObject
from tapp.kube.parts import map_of
from tapp.kube.project import merge_key, project
from tapp.pod.manifest import read_annotation
from tapp.words.vocabulary import LAST_APPLIED

Document = dict[str, Any]


def kept_claim(claim: ClaimObject) -> Document:
    """Returns the answer that keeps a claim which Metacontroller never writes (`OnDelete`)."""
    metadata: Document = {"name": claim.metadata.name}
    if claim.metadata.namespace:
        metadata["namespace"] = claim.metadata.namespace
    if claim.metadata.labels:
        metadata["labels"] = claim.metadata.labels
    return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": metadata}


def unchanged_claim(claim: ClaimObject) -> Document:
    """Returns the answer that changes nothing of a claim which Metacontroller applies (`InPlace`).

    For a claim that Metacontroller has not applied before, that is its metadata. Metacontroller
    writes its own annotation once, and then nothing.
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


def _document(claim: ClaimObject, annotations: Document) -> Document:
    """Returns the fields of a claim that projection reads, without empty fields."""
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
    """Returns owners in a form that Metacontroller's merge does not mix up.

    Metacontroller tells owners apart by name, and a TApp may have the name of its Namespace. Then
    one would take the place of the other, and the claim would lose the owner that protects it. The
    name is no key any more if an item lacks it. So an owner that was not applied is answered with
    its uid alone, which changes nothing. If somebody has written all owners into Metacontroller's
    annotation, no answer leaves them alone. The API server refuses owners without a name, so none
    is lost.
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
