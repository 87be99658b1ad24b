"""Adoption: finds pods and claims that have the names of a TApp's children and are not its
children, and computes the patches that adopt them.

`find_strays` finds the objects, and `adopting_patch` makes the patch of one object. Metacontroller
finds children by the label `controller-uid`, and adopts objects that have this label and no
controller. So an adoption writes this label and removes an owner that has been deleted. The garbage
collector deletes a pod whose only owner has been deleted. From a claim with further owners it only
removes the deleted owner. A claim that its Namespace does not own, as after a restore from a
backup, gets the Namespace as a second owner. Otherwise the claim would be deleted with the TApp.
ControllerRevisions are not adopted, because their revision numbers belong to another TApp's
history.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from kubectl_tapp.base.observed import Document
from kubectl_tapp.base.words import instances_phrase, plural
from kubectl_tapp.cluster.access import CLAIMS, PODS
from kubectl_tapp.cluster.belonging import ownership_of
from kubectl_tapp.edit.edits import spec_of
from tapp.declared.claims_and_service import claim_templates
from tapp.kube.owners import controller_of, controller_ref
from tapp.storage.claims import instance_number
from tapp.words.ranges import name_list
from tapp.words.vocabulary import (
    CONTROLLER_UID,
    GROUP,
    INSTANCE,
    POD_INDEX,
    TEMPLATE_HASH,
    UNIQ_HASH,
)

POD_NAME = "statefulset.kubernetes.io/pod-name"
"""A label that the StatefulSet controller sets on each pod, but the TApp service does not.

The other label that the StatefulSet controller sets for a single pod, apps.kubernetes.io/pod-index,
is set by the service, too.
"""


@dataclass(frozen=True)
class Stray:
    """A pod or claim that has the name of an instance's child but is not a child of the TApp.

    A deleted TApp has left it behind, for example. `kubectl tapp adopt` shows such objects, and
    makes the adoptable ones children of the TApp.
    """

    resource: str  # `pods` or `persistentvolumeclaims`
    prefix: str  # the name of the object without the instance number
    id: int  # the instance number in the object's name
    item: Document  # the object
    owner_phrase: str  # a phrase that says who owns the object
    obstacle: str = ""  # the reason why the TApp cannot adopt the object; "" if it can


def find_strays(
    tapp: Document,
    pods: Iterable[Document],
    claims: Iterable[Document],
    tapp_names: dict[str, str],
    namespace: Document | None,
) -> list[Stray]:
    """Returns all pods and claims that have names of the TApp's children but are not its children,
    sorted.

    Args:
        tapp: the TApp.
        pods: all pods in its namespace.
        claims: all claims in its namespace.
        tapp_names: uid -> name of all TApps in the namespace.
        namespace: the Namespace, which has to own adopted claims; None if the user may not read it.
    """
    spec, name = spec_of(tapp), tapp["metadata"]["name"]
    prefixes = [(PODS, f"{name}-", pods)]
    prefixes += [(CLAIMS, f"{claim}-{name}-", claims) for claim in claim_templates(spec)]
    found = []
    for resource, prefix, items in prefixes:
        for item in items:
            id = instance_number(item["metadata"]["name"], prefix)
            if id is None or not (owner := ownership_of(item, tapp).text):
                continue
            label = (item["metadata"].get("labels") or {}).get(CONTROLLER_UID)
            if label in tapp_names and label != tapp["metadata"]["uid"]:
                owner = f"has the label of TApp {tapp_names[label]}"
                found.append(Stray(resource, prefix, id, item, owner, "that TApp still exists"))
                continue
            obstacle = _adoption_obstacle(item, tapp, beyond=id >= spec.replicas)
            if (
                resource == CLAIMS
                and not obstacle
                and namespace is None
                and lacks_namespace_owner(item, None)
            ):
                obstacle = (
                    "the claim needs its Namespace as an owner, and you may not read Namespaces"
                )
            found.append(Stray(resource, prefix, id, item, owner, obstacle))
    return sorted(found, key=lambda each: (each.resource, each.prefix, each.id))


def _adoption_obstacle(item: Document, tapp: Document, *, beyond: bool) -> str:
    if item["metadata"].get("deletionTimestamp"):
        return "it is being deleted"
    if not ownership_of(item, tapp).can_be_adopted:
        return "only objects without an owner can be adopted"
    if beyond:
        return "its instance is outside spec.replicas, so the TApp service would delete it"
    return ""


def _existing_owners(item: Document, tapp: Document) -> list[dict[str, Any]]:
    """Returns the owner references of an object, except for those to a deleted TApp of the same
    name.

    TApp names are unique in a namespace, so an owner with this name and another uid is deleted.
    """
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


def lacks_namespace_owner(claim: Document, namespace: Document | None) -> bool:
    """Returns True if the Namespace of a claim is not among its owners, so that the claim would be
    deleted with its TApp.

    If `namespace` is None, because the user may not read the Namespace, any Namespace among the
    owners counts.
    """
    owners = claim["metadata"].get("ownerReferences") or []
    uids = {owner.get("uid") for owner in owners if owner.get("kind") == "Namespace"}
    return namespace["metadata"]["uid"] not in uids if namespace else not uids


def _missing_namespace_owner(item: Document, namespace: Document | None) -> list[Document]:
    """Returns a list with the owner reference to the Namespace, if a claim lacks this reference.

    The list is empty if the claim has this owner. For pods, which need no second owner, the caller
    passes None as `namespace`, and the list is empty, too.
    """
    if namespace is None or not lacks_namespace_owner(item, namespace):
        return []
    metadata = namespace["metadata"]
    owner = {"name": metadata["name"], "uid": metadata["uid"]}
    return [{"apiVersion": "v1", "kind": "Namespace", **owner}]


def adopting_patch(item: Document, tapp: Document, namespace: Document | None = None) -> Document:
    """Returns the merge patch that makes an object a child of a TApp.

    The patch sets the label by which Metacontroller finds children, and removes an owner that has
    been deleted. If `namespace` is not None, the patch also makes the Namespace an owner of the
    object, which has to be a claim. The patch contains the uid and the resourceVersion that were
    read, so the API server answers Conflict if the object has changed since.
    """
    metadata = item["metadata"]
    owners = [*_existing_owners(item, tapp), *_missing_namespace_owner(item, namespace)]
    patch = {field: metadata[field] for field in ("uid", "resourceVersion")}
    patch["labels"] = {CONTROLLER_UID: tapp["metadata"]["uid"]}
    if owners != (metadata.get("ownerReferences") or []):
        patch["ownerReferences"] = owners
    return {"metadata": patch}


def as_adopted(item: Document, tapp: Document) -> Document:
    """Returns an object as Metacontroller will send it to the service after the adoption."""
    metadata, owners = item["metadata"], _existing_owners(item, tapp)
    if controller_of(owners) is None:
        owners.append(controller_ref(tapp))
    labels = {**(metadata.get("labels") or {}), CONTROLLER_UID: tapp["metadata"]["uid"]}
    return {**item, "metadata": {**metadata, "labels": labels, "ownerReferences": owners}}


def lost_label(tapp: Document, pods: Iterable[Document], services: Iterable[Document] = ()) -> str:
    """Returns a sentence if pods will lose the label POD_NAME when they are replaced, or "".

    Pods lose the label if they have it and their templates lack it. A Service that selects by this
    label then no longer routes requests to the pods. `services` are the Services of the namespace
    that were read. The sentence names the affected ones.
    """
    spec, prefix = spec_of(tapp), f"{tapp['metadata']['name']}-"
    numbered = [(instance_number(pod["metadata"]["name"], prefix), pod) for pod in pods]
    ids = sorted(
        id
        for id, pod in numbered
        if id is not None
        and POD_NAME in _labels_of(pod)
        and POD_NAME not in _labels_of(spec.find_template(spec.template_name(id)))
    )
    if not ids:
        return ""
    names = [
        each["metadata"]["name"]
        for each in services
        if POD_NAME in _selector_of(each)
        and any(
            _selector_of(each).items() <= _labels_of(pod).items()
            for id, pod in numbered
            if id in ids
        )
    ]
    lost = "each Service that selects by the label loses these pods"
    if names:
        lose = "loses" if len(names) == 1 else "lose"
        lost = f"the {plural(len(names), 'Service')} {name_list(names)} {lose} these pods"
    return (
        f"{instances_phrase(ids)}: the pods have the label {POD_NAME}, which their template lacks. "
        f"New pods of these instances will lack the label, and {lost}. To keep it, add it to the "
        f'labels of the template: {POD_NAME}: "$(tapp.name)"'
    )


def lost_selectors(
    tapp: Document, pods: Iterable[Document], services: Iterable[Document]
) -> list[str]:
    """Returns a sentence about each Service that will not select the pods that replace `pods`.

    Such a Service selects by a label that neither the template nor the service sets, for example
    `controller-revision-hash`, which the StatefulSet controller has set. POD_NAME is left out:
    `lost_label` has a sentence about that label.
    """
    spec, prefix, found = spec_of(tapp), f"{tapp['metadata']['name']}-", list[str]()
    known = {POD_NAME, CONTROLLER_UID, INSTANCE, POD_INDEX, TEMPLATE_HASH, UNIQ_HASH}
    for service in services:
        selector, lacking = _selector_of(service), dict[int, list[str]]()
        for pod in pods:
            id = instance_number(pod["metadata"]["name"], prefix)
            if id is None or not selector or not selector.items() <= _labels_of(pod).items():
                continue
            own = _labels_of(spec.find_template(spec.template_name(id)))
            if missing := sorted(selector.keys() - own.keys() - known):
                lacking[id] = missing
        if lacking:
            keys = name_list(sorted({key for each in lacking.values() for key in each}))
            found.append(
                f"Service {service['metadata']['name']} selects by {keys}. The template of "
                f"{instances_phrase(sorted(lacking))} lacks that, so the Service loses these pods "
                "when they are replaced: change its selector, or add the label to the template"
            )
    return found


def _selector_of(service: Document) -> dict[str, str]:
    """Returns the selector of a Service; empty if it has none."""
    return (service.get("spec") or {}).get("selector") or {}


def _labels_of(item: Document | None) -> dict[str, str]:
    """Returns the labels of an object or of a template; empty if there are none."""
    metadata = (item or {}).get("metadata")
    labels = metadata.get("labels") if isinstance(metadata, dict) else None
    return labels if isinstance(labels, dict) else {}
