"""Metadata of its pod that a container has from its start on: with another value it must restart.

Two things: what its environment reads by `fieldRef` (core/v1 ObjectFieldSelector), and the
annotations by which a template asks for restarts in place. A downward API volume is no part of it:
the kubelet brings it up to date by itself.
"""

import re
from collections.abc import Iterable, Mapping
from hashlib import sha256
from typing import Any

from tapp.kube.parts import map_in, maps_of, text_of
from tapp.words.quoted import quoted
from tapp.words.vocabulary import (
    CONTROLLER_UID,
    INSTANCE,
    NEVER_IN_TEMPLATES,
    POD_INDEX,
    RESTART_IN_PLACE,
    UNIQ_HASH,
)

_FIELD = re.compile(r"metadata\.(labels|annotations)\['([^']+)'\]")

_OF_THE_POD = NEVER_IN_TEMPLATES | {CONTROLLER_UID, INSTANCE, POD_INDEX, UNIQ_HASH}
"""Metadata that no template says, or no update in place changes."""

Reads = Mapping[str, Mapping[str, str]]  # Container -> entry (`labels/app`) -> its value's digest


def _field_of(variable: Mapping[str, Any]) -> str:
    """The entry of the metadata that a variable of the environment reads (`labels/app`), or ""."""
    if "valueFrom" not in variable:
        return ""
    field = map_in(variable["valueFrom"], "fieldRef")
    match = _FIELD.fullmatch(text_of(field.get("fieldPath")))
    return f"{match[1]}/{match[2]}" if match and match[2] not in _OF_THE_POD else ""


def read_by(
    containers: Iterable[Mapping[str, Any]],
    labels: Mapping[str, Any],
    annotations: Mapping[str, Any],
) -> dict[str, dict[str, str]]:
    """Metadata that each of these running containers has from its start on, if it reads any."""
    metadata, requests = {"labels": labels, "annotations": annotations}, requests_of(annotations)
    found = {}
    for container in containers:
        name, read = container["name"], {}
        for entry in filter(None, map(_field_of, maps_of(container.get("env")))):
            part, _, key = entry.partition("/")
            read[entry] = digest(metadata[part].get(key))
        for asked in ("", name):
            if asked in requests:
                read[f"annotations/{RESTART_IN_PLACE}.{asked}".removesuffix(".")] = requests[asked]
        if read:
            found[name] = read
    return found


def digest(value: Any) -> str:
    """A short word for a value of any length; "" for none."""
    if not isinstance(value, str) or not value:
        return ""
    return sha256(value.encode("utf-8", "surrogatepass")).hexdigest()[:20]


def restarting(before: Reads, after: Reads) -> dict[str, list[str]]:
    """The containers that have to restart for other metadata, each with the entries that change.

    A request for a restart that is taken back restarts nothing.
    """
    found = {}
    for name, entries in after.items():
        old = before.get(name, {})
        if changed := [entry for entry, value in entries.items() if old.get(entry, "") != value]:
            found[name] = changed
    return found


def problem_of(annotations: Mapping[str, Any]) -> str:
    """The mistake in a template's requests for restarts, "" if there is none."""
    for key, text in annotations.items():
        if key.startswith(RESTART_IN_PLACE) and isinstance(text, str) and len(text) > _LONGEST:
            long = f"is longer than {_LONGEST} characters: write a checksum"
            return f"metadata.annotations[{quoted(key)}] {long}"
    return ""


_LONGEST = 1024  # Characters of a request: pods have it twice, and 256 KiB for all annotations


def requests_of(annotations: Mapping[str, Any], key: str = RESTART_IN_PLACE) -> dict[str, str]:
    """Requests to restart in annotations: container, "" for all -> digest of the text."""
    return {
        name.removeprefix(key).removeprefix("."): digest(text)
        for name, text in annotations.items()
        if (name == key or name.startswith(f"{key}.")) and text
    }
