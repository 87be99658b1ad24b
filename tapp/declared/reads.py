"""What a container has from its start on: with another value of it, the container must restart.

Three things: metadata that its environment reads by `fieldRef` (core/v1 ObjectFieldSelector),
resources that it reads by `resourceFieldRef` (ResourceFieldSelector), and the annotations by which
a template asks for restarts in place. A downward API volume is no part of it: the kubelet brings it
up to date by itself.
"""

import re
from collections.abc import Iterable, Mapping
from hashlib import sha256
from typing import Any

from tapp.kube.canonical import nano
from tapp.kube.parts import map_in, maps_of, text_of
from tapp.kube.resources import RESIZABLE, Sizes, sizes_of, with_requests
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


def sizes_read_by(
    containers: Iterable[Mapping[str, Any]], all_containers: Iterable[Mapping[str, Any]]
) -> dict[str, dict[str, str]]:
    """Returns the resources that each of these containers reads by `resourceFieldRef`, if any.

    Container -> resource of which container, with the divisor -> the text that the kubelet makes of
    it; "" where the resource is not set. Only resources that a resize can change are there.
    `all_containers` are those of the pod: a container may read another one's resources.
    """
    found: dict[str, dict[str, str]] = {}
    sizes: dict[str, Sizes] | None = None
    for container in containers:
        for variable in maps_of(container.get("env")):
            reference = map_in(variable.get("valueFrom"), "resourceFieldRef")
            kind, _, resource = text_of(reference.get("resource")).partition(".")
            if resource not in RESIZABLE:
                continue
            if sizes is None:
                sizes = {
                    text_of(each.get("name")): sizes_of(with_requests(each.get("resources")))
                    for each in all_containers
                }
            of = text_of(reference.get("containerName")) or container["name"]
            divisor = str(reference.get("divisor") or "1")
            size = sizes.get(of, {}).get((kind, resource))
            entry = f"{kind}.{resource} of {of} by {divisor}"
            found.setdefault(container["name"], {})[entry] = _in_units(resource, size, divisor)
    return found


def _in_units(resource: str, size: int | None, divisor: str) -> str:
    """Returns the text of a resource in an environment (ExtractContainerResourceValue)."""
    if size is None:
        return ""  # the kubelet takes what the node has
    unit = 10**6 if resource == "cpu" else 10**9
    return str(_up(_up(size, unit), _up(nano(divisor) or 10**9, unit)))


def _up(size: int, unit: int) -> int:
    """Returns how many units a size takes, the last one perhaps in part."""
    return (size + unit - 1) // unit


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
