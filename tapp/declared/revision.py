"""Two hashes per template: has anything changed, and has more than an image changed?

The old controller's label names. The output is frozen by test vectors: another
hash for the same template would restart every pod of every user. `PREFIX` names the algorithm; pods
whose labels carry another prefix (the old controller wrote decimal numbers) are adopted by
comparison instead (`adopt.py`).
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
    """True if a hash label was written by this algorithm."""
    return label is not None and label.startswith(PREFIX)


def own_labels(metadata: dict[str, Any]) -> dict[str, str]:
    """The template author's labels, without those that a controller wrote into the template.

    The old controller stored its hash labels in the TApp's own templates, and a template that was
    copied from a Job has the Job's `controller-uid`.
    """
    labels = metadata.get("labels") or {}
    return {key: value for key, value in labels.items() if key not in _OURS and value is not None}


def own_annotations(metadata: dict[str, Any]) -> dict[str, str]:
    """The template author's annotations."""
    annotations = metadata.get("annotations") or {}
    return {key: value for key, value in annotations.items() if value is not None}


class Revisions(NamedTuple):
    """Two hashes of a template."""

    whole: str  # of all of it
    uniq: str  # of its spec, without the images of running containers


def revisions(template: dict[str, Any]) -> Revisions:
    """The hashes of a pod template: `{"metadata": {...}, "spec": {...}}`."""
    return revisions_of(template.get("metadata") or {}, comparable(template.get("spec") or {}))


def revisions_of(metadata: dict[str, Any], spec: dict[str, Any]) -> Revisions:
    """The same of a template's metadata and its spec as `canonical.comparable` has it."""
    whole = {"annotations": own_annotations(metadata), "labels": own_labels(metadata), "spec": spec}
    return Revisions(digest(whole), digest(without_images(spec)))


def without_images(spec: dict[str, Any]) -> dict[str, Any]:
    """The spec with the images blanked that a kubelet swaps in place: containers and sidecars."""
    blanked = dict(spec)
    for field in ("containers", "initContainers"):
        if field in spec:
            blanked[field] = [
                {**item, "image": ""} if runs_on(field, item) else item for item in spec[field]
            ]
    return blanked


def without_resources(spec: dict[str, Any]) -> dict[str, Any]:
    """The spec without what pods/resize may change; the same object where it has no resources."""
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
    """True if a container keeps running: a plain init container has ended and is never restarted.

    kubelet, kuberuntime_container.go: an image change restarts only what runs.
    """
    return field == "containers" or container.get("restartPolicy") == "Always"


def digest(value: Any) -> str:
    """A hash of what is written as JSON, with the prefix of this algorithm."""
    return PREFIX + sha256(_encode(value)).hexdigest()[:20]
