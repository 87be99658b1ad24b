"""Writers of a pod, and their times, as the API server keeps it (`metadata.managedFields`)."""

from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import msgspec
from msgspec import Raw

from tapp.kube import objects
from tapp.kube.parts import map_in
from tapp.words.vocabulary import IN_PLACE_UPDATE, TEMPLATE_HASH

_SECTIONS = ("f:containers", "f:initContainers")
_UPDATES = (b'"f:image"', f'"f:{IN_PLACE_UPDATE}"'.encode())
"""Fields of an update in place; labels and annotations of others are written at any time."""
_UNTOLD = bytes(objects.NOTHING)


def times_of(managed_fields: Raw) -> tuple[str, str]:
    """The times when the kubelet last wrote the status, and anybody an update; "" for never."""
    kubelet = spec = ""
    with suppress(msgspec.DecodeError, UnicodeDecodeError):
        for item in objects.decode_managers(managed_fields) or ():
            time = item.time or ""
            if not item.subresource:
                fields = bytes(item.fields)
                if fields == _UNTOLD or any(part in fields for part in _UPDATES):
                    spec = max(spec, time)
            elif item.subresource == "status" and item.manager == "kubelet":
                kubelet = max(kubelet, time)
    return kubelet, spec


def image_writers(managed_fields: Raw) -> dict[str, str]:
    """Container -> who set its image, where that is not whoever wrote our labels.

    What admission changes belongs to whoever sent the request, and what somebody else writes, to
    him. None where that cannot be read.
    """
    found: dict[str, str] = {}
    try:
        for manager, fields in _of_others(managed_fields):
            for section in _SECTIONS:
                for key, part in map_in(map_in(fields, "f:spec"), section).items():
                    if key.startswith("k:") and isinstance(part, dict) and "f:image" in part:
                        name = msgspec.json.decode(key[2:])
                        if isinstance(name, dict) and isinstance(name.get("name"), str):
                            found[name["name"]] = manager
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return {}
    return found


def metadata_writers(managed_fields: Raw, part: str) -> dict[str, str]:
    """Returns who set each label or annotation that somebody else than this service wrote last.

    `part` is `labels` or `annotations`. Empty if the managed fields cannot be read.
    """
    found: dict[str, str] = {}
    try:
        for manager, fields in _of_others(managed_fields):
            for key in map_in(map_in(fields, "f:metadata"), f"f:{part}"):
                if key.startswith("f:"):
                    found[key[2:]] = manager
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return {}
    return found


def _of_others(managed_fields: Raw) -> Iterator[tuple[str, Any]]:
    """Yields manager and fields of each entry but that of whoever wrote our labels."""
    for entry in objects.decode_managers(managed_fields) or ():
        if entry.subresource:
            continue
        fields = msgspec.json.decode(entry.fields)
        if f"f:{TEMPLATE_HASH}" not in map_in(map_in(fields, "f:metadata"), "f:labels"):
            yield entry.manager or "somebody", fields
