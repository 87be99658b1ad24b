"""Objects with the names of a TApp's pods and claims that are not seen as its own.

Metacontroller finds children by the label `controller-uid` and takes what has no controller. So
the label is all that is written; and a controller that is gone is taken off, which the garbage
collector would do for claims, while it would delete pods. A claim that its Namespace does not own,
as after a restore, gets that owner as well: else it would go with the TApp. ControllerRevisions
stay as they are: their numbers are those of another TApp.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from kubectl_tapp.base.observed import Document
from kubectl_tapp.base.words import instances, plural
from kubectl_tapp.cluster.access import CLAIMS, PODS
from kubectl_tapp.cluster.belonging import belonging
from kubectl_tapp.edit.edits import spec_of
from tapp.declared.beside import claim_templates
from tapp.kube.owners import controller_of, controller_ref
from tapp.storage.claims import instance_number
from tapp.words.ranges import name_list
from tapp.words.vocabulary import CONTROLLER_UID, GROUP

OF_STATEFULSETS = {
    "statefulset.kubernetes.io/pod-name": "$(tapp.name)",
    "apps.kubernetes.io/pod-index": "$(tapp.index)",
}
"""A label that the StatefulSet controller writes on each pod -> the placeholder for its value."""


@dataclass(frozen=True)
class Stray:
    """An object with the name of a pod or claim of an instance."""

    resource: str  # its plural
    prefix: str  # its name up to the instance's number
    id: int  # that number
    item: Document  # the object
    whose: str  # in half a sentence
    why_not: str = ""  # why it is not taken over; "" if it is


def strays(
    tapp: Document,
    pods: Iterable[Document],
    claims: Iterable[Document],
    living: dict[str, str],
    namespace: Document | None,
) -> list[Stray]:
    """All of such a name that is not the TApp's, sorted; `living` are all TApps, uid -> name."""
    spec, name = spec_of(tapp), tapp["metadata"]["name"]
    prefixes = [(PODS, f"{name}-", pods)]
    prefixes += [(CLAIMS, f"{claim}-{name}-", claims) for claim in claim_templates(spec)]
    found = []
    for resource, prefix, items in prefixes:
        for item in items:
            id = instance_number(item["metadata"]["name"], prefix)
            if id is None or not (whose := belonging(item, tapp).text):
                continue
            label = (item["metadata"].get("labels") or {}).get(CONTROLLER_UID)
            if label in living and label != tapp["metadata"]["uid"]:
                whose = f"has the label of TApp {living[label]}"
                found.append(Stray(resource, prefix, id, item, whose, "that TApp is there"))
                continue
            why_not = _why_not(item, tapp, beyond=id >= spec.replicas)
            if resource == CLAIMS and not why_not and namespace is None and unprotected(item, None):
                why_not = "it needs its Namespace as an owner, which you may not read"
            found.append(Stray(resource, prefix, id, item, whose, why_not))
    return sorted(found, key=lambda each: (each.resource, each.prefix, each.id))


def _why_not(item: Document, tapp: Document, *, beyond: bool) -> str:
    if item["metadata"].get("deletionTimestamp"):
        return "it is being deleted"
    if not belonging(item, tapp).can_be_adopted:
        return "it has another owner"
    if beyond:
        return "its number is not below spec.replicas, and it would go"
    return ""


def _living(item: Document, tapp: Document) -> list[dict[str, Any]]:
    """The owners but for an earlier TApp of this name: there is one of a name at a time."""
    return [
        owner
        for owner in item["metadata"].get("ownerReferences") or []
        if not (
            owner.get("kind") == "TApp"
            and str(owner.get("apiVersion", "")).startswith(f"{GROUP}/")
            and owner.get("name") == tapp["metadata"]["name"]
            and owner.get("uid") != tapp["metadata"]["uid"]
        )
    ]


def unprotected(claim: Document, namespace: Document | None) -> bool:
    """True if a claim would go with its TApp; an unreadable Namespace is believed to own it."""
    owners = claim["metadata"].get("ownerReferences") or []
    uids = {owner.get("uid") for owner in owners if owner.get("kind") == "Namespace"}
    return namespace["metadata"]["uid"] not in uids if namespace else not uids


def _protecting(item: Document, namespace: Document | None) -> list[Document]:
    """The owner that a claim lacks, if it does; of a pod no Namespace is given."""
    if namespace is None or not unprotected(item, namespace):
        return []
    metadata = namespace["metadata"]
    owner = {"name": metadata["name"], "uid": metadata["uid"]}
    return [{"apiVersion": "v1", "kind": "Namespace", **owner}]


def adopting_patch(item: Document, tapp: Document, namespace: Document | None = None) -> Document:
    """The patch that gives an object to a TApp: its label, without an owner that is gone.

    A merge patch, as `migration` writes; it names the uid and the version that were read, and is a
    Conflict with any other. A claim's `namespace` is to own it as well.
    """
    metadata = item["metadata"]
    owners = [*_living(item, tapp), *_protecting(item, namespace)]
    patch = {field: metadata[field] for field in ("uid", "resourceVersion")}
    patch["labels"] = {CONTROLLER_UID: tapp["metadata"]["uid"]}
    if owners != (metadata.get("ownerReferences") or []):
        patch["ownerReferences"] = owners
    return {"metadata": patch}


def as_adopted(item: Document, tapp: Document) -> Document:
    """The object as Metacontroller will show it to the service."""
    metadata, owners = item["metadata"], _living(item, tapp)
    if controller_of(owners) is None:
        owners.append(controller_ref(tapp))
    labels = {**(metadata.get("labels") or {}), CONTROLLER_UID: tapp["metadata"]["uid"]}
    return {**item, "metadata": {**metadata, "labels": labels, "ownerReferences": owners}}


def lost_labels(tapp: Document, taken: Iterable[Stray], services: Iterable[Document]) -> list[str]:
    """A sentence for each label of a StatefulSet that pods have and their templates have not.

    A pod that takes the place of such a pod lacks the label, and no Service that selects by it has
    that pod as an endpoint. `services` are those of the namespace, as far as they may be read.
    """
    spec = spec_of(tapp)
    pods = {each.id: each.item["metadata"] for each in taken if each.resource == PODS}
    known, result = [*services], []
    for key, placeholder in OF_STATEFULSETS.items():
        ids = [
            id
            for id, metadata in sorted(pods.items())
            if key in (metadata.get("labels") or {})
            and key not in _labels_of(spec.find_template(spec.template_name(id)))
        ]
        if not ids:
            continue
        names = [
            each["metadata"]["name"]
            for each in known
            if key in ((each.get("spec") or {}).get("selector") or {})
        ]
        lost = "a Service that selects by it loses them"
        if names:
            lose = "loses" if len(names) == 1 else "lose"
            lost = f"the {plural(len(names), 'Service')} {name_list(names)} {lose} them"
        result.append(
            f"{instances(ids)}: the pods have the label {key}, and their template has not. Pods "
            f"that take their place lack it, and {lost}. To keep it, put it into the labels of "
            f'the template: {key}: "{placeholder}"'
        )
    return result


def _labels_of(template: Document | None) -> Document:
    metadata = (template or {}).get("metadata")
    labels = metadata.get("labels") if isinstance(metadata, dict) else None
    return labels if isinstance(labels, dict) else {}
