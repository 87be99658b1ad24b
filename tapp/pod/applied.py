"""The template that a pod was made of, as its own text has it: Metacontroller's annotation.

That has the fields of the template, with the values that the pod has: what admission has changed,
or a resize, is another value there. So it tells of this pod only, and no revision.
"""

from typing import Any

import msgspec

from tapp.declared.revision import runs_on
from tapp.kube import objects
from tapp.kube.parts import map_in, maps_of
from tapp.pod.manifest import Manifest, read_annotation
from tapp.words.vocabulary import LAST_APPLIED, NEVER_IN_TEMPLATES, TEMPLATE_IMAGES

Document = dict[str, Any]


def applied_body(manifest: Manifest) -> Document | None:
    """The template of a pod, as far as that tells; None where nothing does."""
    applied = read_annotation(msgspec.json.decode, manifest.annotations.get(LAST_APPLIED))
    spec = map_in(applied, "spec")
    if not spec:
        return None
    metadata = map_in(applied, "metadata")
    own = {
        part: {
            key: text
            for key, text in map_in(metadata, part).items()
            if key not in NEVER_IN_TEMPLATES
        }
        for part in ("labels", "annotations")
    }
    images = read_annotation(objects.decode_images, manifest.annotations.get(TEMPLATE_IMAGES)) or {}
    spec = {**spec, **_sections(spec, images), "volumes": _volumes(spec, manifest.name)}
    if spec.get("hostname") == manifest.name and "subdomain" in spec:
        spec = {key: part for key, part in spec.items() if key not in ("hostname", "subdomain")}
    return {"metadata": own, "spec": spec}


def _sections(spec: Document, images: dict[str, str]) -> Document:
    """The containers with the images of the template: restarts in place spell them otherwise."""
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
    """The volumes that are not of the instance's claims, whose names end as the pod's."""
    return [
        item
        for item in maps_of(spec.get("volumes"))
        if map_in(item, "persistentVolumeClaim").get("claimName") != f"{item.get('name')}-{pod}"
    ]
