"""The manifests in a response, for existing pods and Services, and for ControllerRevisions.

Metacontroller applies the response immediately. The manifest of an existing pod in the response
never comes from its template. Admission has changed the pod, and the API server would refuse most
differences to the template. So the manifest repeats the one that Metacontroller applied last
(`Manifest.projected`), and has only the intended changes.

If the admission policy `tapp-lean-pods` is installed, Metacontroller's copy of a pod has no spec.
The manifest then consists of metadata, and an update in place adds the containers whose image
changes.

The manifests share parts with the observed objects, so no function here changes its arguments.
"""

from collections.abc import Container, Mapping
from typing import Any

import msgspec
from msgspec import Raw

from tapp.decide.changes import HoldMarkers, Mark
from tapp.decide.new_pod import labels_of, own_annotations
from tapp.declared.metadata import (
    Metadata,
    authors_metadata,
    guessed_before,
    held_annotations,
    written,
)
from tapp.declared.model import TApp
from tapp.declared.templates import Template, has_served_gate
from tapp.kube.objects import RevisionObject
from tapp.kube.parts import map_in
from tapp.kube.tolerations import without_limit
from tapp.kube.writers import metadata_writers
from tapp.pod.hold import NO_HOLD, hold_of
from tapp.pod.manifest import Manifest, read_annotation
from tapp.pod.pod import Pod
from tapp.storage.history import NewRecord
from tapp.words.vocabulary import (
    AUTOSCALER_ANNOTATIONS,
    CHANGE_CAUSE,
    CONTROLLER_UID,
    DRAIN,
    FAILURES,
    HELD,
    HELD_ANNOTATIONS,
    IN_PLACE_UPDATE,
    INSTANCE,
    LAST_APPLIED,
    LOST_NODE,
    POD_INDEX,
    POD_STATUS,
    TEMPLATE,
    TEMPLATE_HASH,
    TEMPLATE_IMAGES,
    UNIQ_HASH,
    VALUES,
    WANTED,
    WANTED_SINCE,
    WRITTEN,
)

Document = dict[str, Any]

# Most characters of a change-cause that is copied, because every later request contains the copy.
_LONGEST_CAUSE = 1_000


def unchanged_pod(
    pod: Pod, manifests: Mapping[str, Manifest], template: Template | None = None
) -> Document | Raw:
    """Returns the manifest for the response that leaves a pod unchanged.

    Args:
        pod: the pod.
        manifests: pod name -> labels, annotations and spec of the pod.
        template: the template whose revision the pod has; None if the pod has another revision, or
            if no template is known (see `kept_pod`).
    """
    return kept_pod(manifests[pod.name], template) if pod.unchanged is None else pod.unchanged


def kept_pod(manifest: Manifest, template: Template | None) -> Document:
    """Returns the manifest for the response that leaves a pod unchanged, built from its metadata.

    This is the manifest that Metacontroller applied last. If it is not known, the manifest has only
    labels and annotations that this service writes.

    Args:
        manifest: labels, annotations and spec of the observed pod.
        template: the template whose revision the pod has, because this service has written the
            labels and annotations of that template. None if the pod has another revision.
    """
    projected = manifest.projected
    if projected is not None:
        return projected
    # Metacontroller has not applied the pod, or somebody has removed its last-applied annotation.
    # The response then has only labels and annotations of this service. Metacontroller would become
    # the owner of any others, and remove them later.
    document, labels, annotations = manifest.document, manifest.labels, manifest.annotations
    owned = {CONTROLLER_UID, HELD, INSTANCE, POD_INDEX, POD_STATUS, TEMPLATE_HASH, UNIQ_HASH}
    known = {DRAIN, FAILURES, IN_PLACE_UPDATE, LOST_NODE, TEMPLATE_IMAGES, WRITTEN}
    known |= {WANTED, WANTED_SINCE, HELD_ANNOTATIONS, *held_annotations(annotations)}
    if template is not None:
        owned |= template.labels.keys()
        known |= template.annotations.keys()
    metadata: Document = {
        **document["metadata"],
        "labels": {key: value for key, value in labels.items() if key in owned},
    }
    del metadata["annotations"]
    ours = {key: value for key, value in annotations.items() if key in known}
    if ours:
        metadata["annotations"] = ours
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata}


def kept_plain(child: Manifest) -> Document:
    """Returns the manifest for the response that leaves a Service or a PodDisruptionBudget
    unchanged.
    """
    if child.projected is not None:
        return child.projected
    # Metacontroller has not applied the object. A manifest with only a name changes nothing.
    found = child.document["metadata"]
    metadata = {key: found[key] for key in ("name", "namespace") if key in found}
    return {**child.kind.type_meta, "metadata": metadata}


def overlaid_pod(  # noqa: PLR0913, PLR0917 - what is known of the update
    manifest: Manifest,
    instance: int,
    template: Template,
    images: Mapping[str, str],
    record: str | None,
    before: Metadata | None,
) -> Document:
    """Returns the manifest for the response that updates a pod in place.

    The update changes images, labels and annotations. It writes a label or annotation whose value
    differs between the old and the new template. It leaves out a label or annotation that the new
    template no longer has, so Metacontroller removes it from the pod.

    Args:
        manifest: labels, annotations and spec of the observed pod.
        instance: the number of the instance.
        template: the new template, to which the pod is updated.
        images: container name -> new image.
        record: the text of the pod's annotation about its last update in place
            (`update.record_of`). If it is None, the annotation stays as it is.
        before: labels and annotations of the template that the pod was created from; None if
            unknown.
    """
    kept = kept_pod(manifest, None)
    metadata = dict(kept.get("metadata") or {})
    uid = {key: value for key, value in map_in(metadata, "labels").items() if key == CONTROLLER_UID}
    if record is None:
        record = map_in(metadata, "annotations").get(IN_PLACE_UPDATE)
    labels = _written(manifest, template, "labels", before)
    own = {key: text for key, text in labels_of(template, instance).items() if key in _OUR_LABELS}
    metadata["labels"] = {**labels, **own, **uid}
    if (images or POD_STATUS in manifest.labels) and has_served_gate(manifest.spec):
        # Without this label the pod-status hook would not open the gate again.
        metadata["labels"][POD_STATUS] = "true"
    annotations = _written(manifest, template, "annotations", before)
    metadata["annotations"] = {**annotations, **own_annotations(template)}
    if record is not None:
        metadata["annotations"][IN_PLACE_UPDATE] = record
    _set(metadata, manifest, "annotations", **{DRAIN: "", LOST_NODE: ""})
    hold = hold_of(manifest.labels, manifest.annotations) or NO_HOLD
    # An annotation for autoscalers that the new template has belongs to its author.
    autoscalers = tuple(key for key in hold.desired_autoscalers if key not in template.annotations)
    markers = HoldMarkers(hold.desired_label, autoscalers=autoscalers)
    _set_hold_markers(metadata, manifest, markers, template.annotations)
    document = {**kept, "metadata": metadata}
    if images:
        document["spec"] = _with_images(kept.get("spec") or {}, images, manifest)
    return document


_OUR_LABELS = frozenset({INSTANCE, POD_INDEX, POD_STATUS, TEMPLATE_HASH, UNIQ_HASH})


def _written(
    manifest: Manifest, template: Template, part: str, before: Metadata | None
) -> dict[str, str]:
    """Returns the labels or annotations for the response that updates a pod in place.

    Labels and annotations that this service adds to every pod are left out.

    Args:
        manifest: labels, annotations and spec of the observed pod.
        template: the new template, to which the pod is updated.
        part: `labels` or `annotations`.
        before: labels and annotations of the template that the pod was created from. If it is None,
            they are guessed from Metacontroller's copy of the pod.
    """
    observed = manifest.labels if part == "labels" else manifest.annotations
    wanted = Metadata(template.labels, template.annotations).of(part)
    applied = authors_metadata(map_in(manifest.projected, "metadata")).of(part)
    if before is None:
        copy = read_annotation(msgspec.json.decode, manifest.annotations.get(LAST_APPLIED))
        last = authors_metadata(map_in(copy, "metadata")).of(part) if copy is not None else None
        edited = metadata_writers(manifest.managed_fields, part) if last is not None else {}
        known = guessed_before(last, observed, wanted, edited)
    else:
        known = before.of(part)
    return dict(written(observed, applied, wanted, known))


def marked_pod(manifest: Manifest, mark: Mark) -> Document:
    """Returns the manifest for the response that writes markers on a pod.

    A marker is a label, annotation or toleration that asks for an action and restarts nothing. The
    response removes markers that `mark` does not have. It changes nothing else of the pod.
    """
    kept = kept_pod(manifest, None)
    metadata = dict(kept["metadata"])
    labels = {key: value for key, value in map_in(metadata, "labels").items() if key != POD_STATUS}
    metadata["labels"] = labels | ({POD_STATUS: "true"} if mark.watched else {})
    metadata["annotations"] = dict(map_in(metadata, "annotations"))
    _set(metadata, manifest, "annotations", **{DRAIN: mark.drain, LOST_NODE: mark.lost})
    _set_hold_markers(metadata, manifest, mark.hold)
    if mark.forget:
        _set(metadata, manifest, "annotations", **{IN_PLACE_UPDATE: ""})
    document = {**kept, "metadata": metadata}
    if mark.tolerate:
        tolerations = without_limit(manifest.spec.get("tolerations") or [])
        document["spec"] = {**(kept.get("spec") or {}), "tolerations": tolerations}
    return document


def _set_hold_markers(
    metadata: Document, manifest: Manifest, hold: HoldMarkers, authored: Container[str] = ()
) -> None:
    """Writes the label and the annotations about a hold into the metadata of the response.

    Args:
        metadata: the metadata of the response, which the function changes.
        manifest: labels, annotations and spec of the observed pod.
        hold: the label and the annotations. An empty value removes the key from the pod.
        authored: annotation keys that the response has from the template; their values stay.
    """
    _set(metadata, manifest, "labels", **{HELD: hold.label})
    markers = {WANTED: hold.wanted, WANTED_SINCE: hold.since}
    markers[HELD_ANNOTATIONS] = ",".join(hold.autoscalers)
    on_pod = hold_of(manifest.labels, manifest.annotations) or NO_HOLD
    for key, value in AUTOSCALER_ANNOTATIONS.items():
        if key in hold.autoscalers:
            markers[key] = value
        elif key in on_pod.autoscalers and key not in authored:
            markers[key] = ""
    _set(metadata, manifest, "annotations", **markers)


def _set(metadata: Document, manifest: Manifest, part: str, **markers: str) -> None:
    """Sets labels or annotations in the response; an empty value removes the key from the pod.

    Metacontroller removes a key only if it has applied the key before. If Metacontroller has not
    applied the key, the response contains the key with an empty value. The pod would keep its value
    if the response left the key out.

    Args:
        metadata: the metadata of the response, which the function changes.
        manifest: labels, annotations and spec of the observed pod.
        part: `labels` or `annotations`.
        markers: key -> value.
    """
    applied = map_in(map_in(manifest.projected, "metadata"), part)
    observed = manifest.labels if part == "labels" else manifest.annotations
    for key, value in markers.items():
        if value:
            metadata[part][key] = value
        elif key not in applied and observed.get(key):
            metadata[part][key] = ""
        else:
            metadata[part].pop(key, None)


def _with_images(spec: Document, images: Mapping[str, str], manifest: Manifest) -> Document:
    """Returns a pod spec with new images.

    If `spec` lacks a container, the container is added with only its name and image, because
    Metacontroller merges containers by name.

    Args:
        spec: the spec in Metacontroller's last-applied copy of the pod; empty if an admission
            policy has removed the spec from the copy.
        images: container name -> new image.
        manifest: the observed pod, which shows which containers are init containers.
    """
    result = dict(spec)
    init = {item.get("name") for item in manifest.spec.get("initContainers") or []}
    for section in ("containers", "initContainers"):
        mine = {
            name: image for name, image in images.items() if (name in init) == (section[0] == "i")
        }
        if not mine:
            continue
        items = result.get(section) or []
        result[section] = [
            {**item, "image": mine.pop(item["name"])} if item.get("name") in mine else item
            for item in items
        ] + [{"name": name, "image": image} for name, image in mine.items()]
    return result


def new_revision(tapp: TApp, record: NewRecord) -> Document:
    """Returns a new ControllerRevision as JSON.

    If a user has set the annotation `change-cause` on the TApp, the ControllerRevision gets it,
    too. `record` has the template and the values to record.
    """
    annotations = {TEMPLATE: record.template}
    if record.values.digest:
        annotations[VALUES] = record.values.digest
    cause = tapp.metadata.annotations.get(CHANGE_CAUSE)
    if isinstance(cause, str) and cause:
        annotations[CHANGE_CAUSE] = cause[:_LONGEST_CAUSE]
    return {
        "apiVersion": "apps/v1",
        "kind": "ControllerRevision",
        "metadata": {
            "name": record.name,
            "namespace": tapp.metadata.namespace,
            "labels": {TEMPLATE_HASH: record.revision},
            "annotations": annotations,
        },
        "data": {"template": record.body, **record.values.kept, **record.other_parts.as_kept},
        "revision": record.number,
    }


def kept_revision(revision: RevisionObject) -> Document:
    """Returns the manifest for the response that keeps a ControllerRevision as it is.

    A manifest with only the name is enough, because Metacontroller never updates a
    ControllerRevision (`OnDelete`).
    """
    metadata = {"name": revision.metadata.name}
    return {"apiVersion": "apps/v1", "kind": "ControllerRevision", "metadata": metadata}
