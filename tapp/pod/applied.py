"""Recovers the template that a pod was created from, from Metacontroller's copy of the pod.

This is used if the history lacks the pod's revision. Metacontroller keeps the manifest that it
applied last in an annotation. That copy has the fields of the template, but some values of the pod:
a value that admission or a resize has changed differs from the template. So the result describes
this pod alone, and no other pod of the revision.
"""

from typing import Any

import msgspec

from tapp.declared.metadata import for_every_pod
from tapp.declared.revision import runs_on
from tapp.kube import objects
from tapp.kube.parts import map_in, maps_of
from tapp.pod.manifest import Manifest, read_annotation
from tapp.words.vocabulary import LAST_APPLIED, TEMPLATE_IMAGES

Document = dict[str, Any]


def applied_body(manifest: Manifest) -> Document | None:
    """Returns the template that a pod was created from, read from Metacontroller's copy of the pod.

    `manifest` is the pod. Returns None if the copy is missing or has no spec.
    """
    applied = read_annotation(msgspec.json.decode, manifest.annotations.get(LAST_APPLIED))
    # The policy `tapp-lean-pods` removes the spec from the copy.
    spec = map_in(applied, "spec")
    if not spec:
        return None
    metadata = map_in(applied, "metadata")
    own = {part: for_every_pod(map_in(metadata, part)) for part in ("labels", "annotations")}
    images = read_annotation(objects.decode_images, manifest.annotations.get(TEMPLATE_IMAGES)) or {}
    spec = {**spec, **_sections(spec, images), "volumes": _volumes(spec, manifest.name)}
    # The service sets both for `spec.serviceName`; they are not part of the template.
    if spec.get("hostname") == manifest.name and "subdomain" in spec:
        spec = {key: part for key, part in spec.items() if key not in ("hostname", "subdomain")}
    return {"metadata": own, "spec": spec}


def _sections(spec: Document, images: dict[str, str]) -> Document:
    """Returns the lists of containers, with the images of the template.

    A restart in place writes an image in another way (for example with a digest), so the images of
    the copy may differ from those of the template.

    Args:
        spec: the pod spec in Metacontroller's copy.
        images: container name -> image of the template; without an entry, the image in `spec`
            stays.
    """
    return {
        section: [
            {**item, "image": images[str(item["name"])]}
            if str(item.get("name")) in images and runs_on(section, item)
            else item
            for item in maps_of(spec.get(section))
        ]
        for section in ("containers", "initContainers")
        if section in spec
    }


def _volumes(spec: Document, pod: str) -> list[Document]:
    """Returns the volumes of a pod spec, except for the volumes with the instance's own claims.

    The service adds these volumes to the template. The claim of such a volume is named VOLUME-POD.
    `pod` is the name of the pod.
    """
    return [
        item
        for item in maps_of(spec.get("volumes"))
        if map_in(item, "persistentVolumeClaim").get("claimName") != f"{item.get('name')}-{pod}"
    ]
