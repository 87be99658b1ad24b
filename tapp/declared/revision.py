"""The two hashes of a template: one of the whole template, and one without images.

If only the first hash of two templates differs, an update in place may be possible. The pod labels
with the hashes have the names that the old tapp-controller used.

Test vectors freeze the hashes (tests/): if the hash of an unchanged template changed, every pod of
every user would restart. `PREFIX` names the hash algorithm. The labels of pods from the old
tapp-controller have decimal numbers without that prefix, so these pods are compared field by field
(`adopt.py`).
"""

from hashlib import sha256
from typing import Any, NamedTuple

import msgspec

from tapp.kube.canonical import comparable
from tapp.words.vocabulary import CONTROLLER_UID, INSTANCE, POD_INDEX, TEMPLATE_HASH, UNIQ_HASH

PREFIX = "v1-"

_OURS = {TEMPLATE_HASH, UNIQ_HASH, INSTANCE, POD_INDEX, CONTROLLER_UID}
_encode = msgspec.json.Encoder(order="sorted").encode


def is_ours(label: str | None) -> bool:
    """Returns True if the value of a revision or hash label has the form that this service writes.

    Returns False if `label` is None, because the pod lacks the label.
    """
    return label is not None and label.startswith(PREFIX)


def own_labels(metadata: dict[str, Any]) -> dict[str, str]:
    """Returns the labels that a user has written into a template, without labels of controllers.

    The old tapp-controller wrote its hash labels into the TApp's templates. A template that a user
    copied from a Job has the Job's `controller-uid`. `metadata` is the metadata of the template.
    """
    labels = metadata.get("labels") or {}
    return {key: value for key, value in labels.items() if key not in _OURS and value is not None}


def own_annotations(metadata: dict[str, Any]) -> dict[str, str]:
    """Returns the annotations that a user has written into a template, without nulls.

    `metadata` is the metadata of the template.
    """
    annotations = metadata.get("annotations") or {}
    return {key: value for key, value in annotations.items() if value is not None}


class Revisions(NamedTuple):
    """The two hashes of a pod template, by which the service detects changes of the template."""

    whole: str  # Hash of labels, annotations and spec.
    uniq: str  # Hash of the spec without the images of containers that keep running.


def revisions(template: dict[str, Any]) -> Revisions:
    """Returns the two hashes of a pod template (`{"metadata": {...}, "spec": {...}}`)."""
    return revisions_of(template.get("metadata") or {}, comparable(template.get("spec") or {}))


def revisions_of(metadata: dict[str, Any], spec: dict[str, Any]) -> Revisions:
    """Returns the two hashes of a pod template.

    Args:
        metadata: the metadata of the template.
        spec: the pod spec of the template, in the form of `canonical.comparable`.
    """
    whole = {"annotations": own_annotations(metadata), "labels": own_labels(metadata), "spec": spec}
    return Revisions(digest(whole), digest(without_images(spec)))


def without_images(spec: dict[str, Any]) -> dict[str, Any]:
    """Returns a copy of a pod spec without the images of containers and native sidecars.

    The kubelet can replace these images in place. Images of other init containers stay.
    """
    blanked = dict(spec)
    for field in ("containers", "initContainers"):
        if field in spec:
            blanked[field] = [
                {**item, "image": ""} if runs_on(field, item) else item for item in spec[field]
            ]
    return blanked


def without_resources(spec: dict[str, Any]) -> dict[str, Any]:
    """Returns a pod spec without the resources of containers and native sidecars.

    A resize of the pod (`pods/resize`) may change these resources. Returns `spec` itself if it has
    no such resources.
    """
    bare = {
        field: [
            {key: part for key, part in item.items() if key != "resources"}
            if runs_on(field, item)
            else item
            for item in spec[field]
        ]
        for field in ("containers", "initContainers")
        if any("resources" in item for item in spec.get(field) or [])
    }
    return {**spec, **bare} if bare else spec


def runs_on(field: str, container: dict[str, Any]) -> bool:
    """Returns True if a container keeps running, and False if it is a plain init container.

    A changed image restarts only containers that keep running
    (pkg/kubelet/kuberuntime/kuberuntime_container.go). `field` is the list that has the container:
    `containers` or `initContainers`.
    """
    return field == "containers" or container.get("restartPolicy") == "Always"


def digest(value: Any) -> str:
    """Returns the hash of a value's JSON, with the prefix of the hash algorithm (`PREFIX`)."""
    return PREFIX + sha256(_encode(value)).hexdigest()[:20]
