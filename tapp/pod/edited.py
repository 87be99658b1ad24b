"""Images that somebody else has set in a pod that runs its template: said, and never reverted.

An image that differs from the template's may also be the work of admission (a mirror). The API
server tells the two apart: what admission changes belongs to whoever sent the request, and what
somebody else writes, to him (`metadata.managedFields`). A pod without these says nothing.
"""

from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import msgspec

from tapp.kube import objects
from tapp.kube.objects import ManagedField
from tapp.words.vocabulary import TEMPLATE_HASH

_SECTIONS = ("f:containers", "f:initContainers")


def edited(
    images: Mapping[str, str], template_images: Mapping[str, str], managed_fields: msgspec.Raw
) -> str:
    """What somebody has set by hand, in a sentence; "" if nothing is known of it.

    Args:
        images: container name -> image in the pod's spec.
        template_images: the same as its template had it.
        managed_fields: `metadata.managedFields` of the pod; looked at only where images differ.
    """
    differing = [
        name for name, image in template_images.items() if images.get(name, image) != image
    ]
    if not differing:
        return ""
    with suppress(msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        writers = _writers(objects.decode_managers(managed_fields) or [])
        return ", ".join(
            f"container {name} has image {images[name]}, set by {writers[name]}, and its template "
            f"{template_images[name]}"
            for name in differing
            if name in writers
        )
    return ""


def _writers(entries: list[ManagedField]) -> dict[str, str]:
    """Container -> who set its image, where that is not whoever wrote our labels."""
    found: dict[str, str] = {}
    for entry in entries:
        if entry.subresource:
            continue
        fields = msgspec.json.decode(entry.fields)
        if f"f:{TEMPLATE_HASH}" in _at(fields, "f:metadata", "f:labels"):
            continue
        for section in _SECTIONS:
            for key, part in _at(fields, "f:spec", section).items():
                if key.startswith("k:") and isinstance(part, dict) and "f:image" in part:
                    name = msgspec.json.decode(key[2:])
                    if isinstance(name, dict) and isinstance(name.get("name"), str):
                        found[name["name"]] = entry.manager or "somebody"
    return found


def _at(fields: Any, *path: str) -> dict[str, Any]:
    for key in path:
        fields = fields.get(key) if isinstance(fields, dict) else None
    return fields if isinstance(fields, dict) else {}
