"""The field managers of a pod, and the times of their writes (`metadata.managedFields`)."""

from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import msgspec
from msgspec import Raw

from tapp.kube import objects
from tapp.kube.parts import map_in
from tapp.words.vocabulary import IN_PLACE_UPDATE, TEMPLATE_HASH

_SECTIONS = ("f:containers", "f:initContainers")
# Fields that only an update in place writes. This service may write labels and other annotations at
# any time, so they do not show an update.
_UPDATES = (b'"f:image"', f'"f:{IN_PLACE_UPDATE}"'.encode())
# The value of `fieldsV1` in an entry that lacks the field.
_UNKNOWN_FIELDS = bytes(objects.NOTHING)


def write_times(managed_fields: Raw) -> tuple[str, str]:
    """Returns the time of the kubelet's last write of the status, and of the last update in place.

    Both times are RFC 3339. A time is empty if there was no such write.
    """
    kubelet = spec = ""
    with suppress(msgspec.DecodeError, UnicodeDecodeError):
        for item in objects.decode_managers(managed_fields) or ():
            time = item.time or ""
            if not item.subresource:
                fields = bytes(item.fields)
                if fields == _UNKNOWN_FIELDS or any(part in fields for part in _UPDATES):
                    spec = max(spec, time)
            elif item.subresource == "status" and item.manager == "kubelet":
                kubelet = max(kubelet, time)
    return kubelet, spec


def image_writers(managed_fields: Raw) -> dict[str, str]:
    """Returns container name -> field manager that has set its image, other than this service.

    Managed fields attribute changes by admission to the sender of the request. The entry of this
    service is the one that has the labels of this service. Returns an empty map if the managed
    fields cannot be read.
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
    """Returns key -> field manager, for labels or annotations that others than this service have
    set.

    Returns an empty map if the managed fields cannot be read. `part` is `labels` or `annotations`.
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
    """Yields the field manager and the fields of each entry that is not of this service.

    `managed_fields` is the JSON of `metadata.managedFields`. The entry of this service is the one
    that has the labels of this service.
    """
    for entry in objects.decode_managers(managed_fields) or ():
        if entry.subresource:
            continue
        fields = msgspec.json.decode(entry.fields)
        if f"f:{TEMPLATE_HASH}" not in map_in(map_in(fields, "f:metadata"), "f:labels"):
            yield entry.manager or "somebody", fields
