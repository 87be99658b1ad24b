"""Creates claims, and checks them against limits of the API server."""

from dataclasses import dataclass
from typing import Any

from tapp.declared.model import TApp
from tapp.declared.revision import own_annotations, own_labels
from tapp.kube.limits import MOST_ANNOTATIONS, bytes_of, length_in_go, limit_problem
from tapp.kube.names import MAX_NAME
from tapp.kube.parts import map_in
from tapp.words.quoted import short
from tapp.words.vocabulary import CONTROLLER_UID, INSTANCE, LAST_APPLIED

Document = dict[str, Any]


@dataclass(frozen=True)
class NewClaim:
    """A claim to create, with its name, the number of its instance and its claim template.

    `template` has no placeholders left.
    """

    name: str
    instance: int
    template: dict[str, Any]


def claim_document(tapp: TApp, claim: NewClaim, spec: Any, namespace_uid: str) -> Document:
    """Returns the manifest of a claim to create.

    The claim has two owners: the Namespace, and the TApp, which Metacontroller adds. The garbage
    collector deletes an object only when all of its owners are gone, so the claim and its data
    survive the deletion of the TApp (docs/claims.md).

    Args:
        tapp: the TApp.
        claim: the claim.
        spec: the spec of the manifest.
        namespace_uid: the uid of the Namespace.
    """
    metadata = claim.template.get("metadata") or {}
    document: Document = {
        "name": claim.name,
        "namespace": tapp.metadata.namespace,
        "labels": {**own_labels(metadata), INSTANCE: str(claim.instance)},
        "ownerReferences": [
            {
                "apiVersion": "v1",
                "kind": "Namespace",
                "name": tapp.metadata.namespace,
                "uid": namespace_uid,
            }
        ],
    }
    annotations = own_annotations(metadata)
    if annotations:
        document["annotations"] = annotations
    return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": document, "spec": spec}


def name_problem(name: str) -> str:
    """Returns why a claim cannot have this name, or an empty string if it can."""
    if len(name) <= MAX_NAME:
        return ""
    return (
        f"its claim would be named {short(name, 40)} with {len(name)} characters, and the API "
        f"server accepts at most {MAX_NAME}: use a shorter name for the claim template"
    )


def claim_problem(tapp: TApp, claim: NewClaim, namespace_uid: str) -> str:
    """Returns why the API server would refuse a claim, or an empty string if it would not.

    `namespace_uid` is the uid of the Namespace; it may be empty if it is unknown.
    """
    document = claim_document(tapp, claim, claim.template.get("spec"), namespace_uid)
    return limit_problem("PersistentVolumeClaim", document) or annotations_problem(
        document, tapp.metadata.uid
    )


def annotations_problem(document: Document, uid: str) -> str:
    """Returns why the annotations of a claim or Service would be too large, or an empty string.

    Metacontroller adds an annotation with a copy of the object, so the copy counts.

    Args:
        document: the manifest of the claim or Service.
        uid: the uid of the TApp, which Metacontroller adds as a label.
    """
    metadata = document["metadata"]
    labels = {**map_in(metadata, "labels"), CONTROLLER_UID: uid}
    # The API server limits the total of an object's annotations (ValidateAnnotationsSize).
    copy = length_in_go({**document, "metadata": {**metadata, "labels": labels}})
    found = bytes_of(map_in(metadata, "annotations")) + len(LAST_APPLIED) + copy
    if found <= MOST_ANNOTATIONS:
        return ""
    return (
        f"its annotations would have {found} bytes, with Metacontroller's copy of the object, and "
        f"the API server accepts at most {MOST_ANNOTATIONS}: make the annotations shorter"
    )
