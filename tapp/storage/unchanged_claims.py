"""The responses that leave claims unchanged.

With the update strategy `OnDelete`, Metacontroller never writes an existing claim, so any response
leaves the claim unchanged. With `InPlace`, Metacontroller applies the response to the claim. So the
response repeats the fields that Metacontroller has applied before, as for pods
(`tapp/kube/project.py`).
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
    """Returns the response that keeps a claim with the update strategy `OnDelete`.

    The response has only the claim's name, namespace and labels, because Metacontroller never
    writes such a claim.
    """
    metadata: Document = {"name": claim.metadata.name}
    if claim.metadata.namespace:
        metadata["namespace"] = claim.metadata.namespace
    if claim.metadata.labels:
        metadata["labels"] = claim.metadata.labels
    return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": metadata}


def unchanged_claim(claim: ClaimObject) -> Document:
    """Returns the response that changes no field of a claim with the update strategy `InPlace`.

    If Metacontroller has never applied the claim, the response has only the claim's identity and
    labels. Metacontroller then adds its annotation, and writes nothing in later syncs.
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
    # Only labels that Metacontroller has applied may appear: any other label would be new in its
    # annotation, and so change the claim.
    identity = {key: value for key, value in kept["metadata"].items() if key != "labels"}
    return {**result, **kept, "metadata": {**metadata, **identity}}


def _document(claim: ClaimObject, annotations: Document) -> Document:
    """Returns a claim as JSON with the fields that `project` reads, without empty fields.

    `annotations` are the claim's annotations without Metacontroller's copy.
    """
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
    """Returns the owner references for a response, so that Metacontroller's merge removes no owner.

    Metacontroller distinguishes owners by name. A TApp and its Namespace may have the same name:
    one reference would then replace the other, and the claim would lose the Namespace, which
    protects it. Metacontroller does not merge by name if an item lacks the name. So a reference
    that Metacontroller has not applied is returned with its uid alone, which changes nothing.

    If a user has written all owners into Metacontroller's annotation, every response changes them.
    The API server then refuses the owner without a name, so no owner is lost.

    Args:
        projected: the owner references of the response so far.
        observed: the owner references of the claim.
        applied: the owner references that Metacontroller has applied last, of any shape.
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
