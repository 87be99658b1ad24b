"""Inputs that a container reads only when it starts: if one changes, the container has to restart.

There are three kinds of inputs:

- Labels and annotations that an environment variable reads by `fieldRef` (core/v1
  ObjectFieldSelector).
- Resources that an environment variable reads by `resourceFieldRef` (core/v1
  ResourceFieldSelector).
- Annotations with which a template requests a restart in place.

A downward API volume is not an input, because the kubelet updates its files while the container
runs.
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

# Labels and annotations that belong to one pod, or that an update in place never changes.
_OF_THE_POD = NEVER_IN_TEMPLATES | {CONTROLLER_UID, INSTANCE, POD_INDEX, UNIQ_HASH}

# Container name -> inputs that the container reads when it starts. Labels and annotations have the
# form `labels/app` -> digest of the value; `sizes_read_by` describes the form of resources.
Reads = Mapping[str, Mapping[str, str]]


def _field_of(variable: Mapping[str, Any]) -> str:
    """Returns the label or annotation that an environment variable reads, such as `labels/app`.

    Returns an empty string if the variable reads neither, or one that belongs to a single pod.
    `variable` is an entry of a container's `env`.
    """
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
    """Returns container name -> labels and annotations that the container reads when it starts.

    The labels and annotations of a container are a map such as `labels/app` -> digest of the value.
    Containers that read none are left out. An annotation that requests a restart of a container
    counts as read by the container.

    Args:
        containers: the containers that are examined.
        labels: all labels of the pod or template.
        annotations: all annotations of the pod or template.
    """
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
    """Returns the resources that the given containers read by `resourceFieldRef`.

    The result maps the name of a container to a map from resource to text:

    - The key has the resource, the container that has the resource, and the divisor.
    - The value is the text that the kubelet puts into the environment. It is empty if the resource
      is not set.

    Only resources that a resize can change are included.

    Args:
        containers: the containers that read resources.
        all_containers: all containers of the pod, because a container may read the resources of
            another container.
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
    """Returns the text that the kubelet puts into an environment variable for a resource.

    The text is the quantity divided by the divisor, rounded like in the kubelet
    (pkg/api/v1/resource, ExtractContainerResourceValue). It is empty if the resource is not set.

    Args:
        resource: `cpu` or `memory`.
        size: the quantity in billionths of a core or byte; None if the resource is not set.
        divisor: the divisor of the variable, such as `1Mi`.
    """
    if size is None:
        # The kubelet then takes the allocatable resources of the node, which a resize of the pod
        # does not change.
        return ""
    unit = 10**6 if resource == "cpu" else 10**9
    return str(_round_up(_round_up(size, unit), _round_up(nano(divisor) or 10**9, unit)))


def _round_up(size: int, unit: int) -> int:
    """Returns `size / unit`, rounded up."""
    return (size + unit - 1) // unit


def digest(value: Any) -> str:
    """Returns a short hash of a text. Returns an empty string if `value` is empty or not a text."""
    if not isinstance(value, str) or not value:
        return ""
    return sha256(value.encode("utf-8", "surrogatepass")).hexdigest()[:20]


def restarting(before: Reads, after: Reads) -> dict[str, list[str]]:
    """Returns container name -> changed inputs, for the containers that have to restart.

    An input is, for example, the label `labels/app`, which the container reads when it starts. A
    removed input restarts nothing, so a user can take back a request for a restart.

    Args:
        before: the inputs of the old template or pod.
        after: the inputs of the new template.
    """
    found = {}
    for name, entries in after.items():
        old = before.get(name, {})
        if changed := [entry for entry, value in entries.items() if old.get(entry, "") != value]:
            found[name] = changed
    return found


def request_problem(annotations: Mapping[str, Any]) -> str:
    """Returns why an annotation that requests a restart is invalid, or an empty string.

    `annotations` are all annotations of a template.
    """
    for key, text in annotations.items():
        if key.startswith(RESTART_IN_PLACE) and isinstance(text, str) and len(text) > _LONGEST:
            long = f"is longer than {_LONGEST} characters: write a checksum"
            return f"metadata.annotations[{quoted(key)}] {long}"
    return ""


# Most characters of an annotation that requests a restart. A pod has the annotation twice, because
# Metacontroller stores a copy, and all annotations of a pod together may have 256 KiB.
_LONGEST = 1024


def requests_of(annotations: Mapping[str, Any], key: str = RESTART_IN_PLACE) -> dict[str, str]:
    """Returns the requested restarts: container name -> digest of the annotation's text.

    The name is empty if the annotation requests a restart of all containers.

    Args:
        annotations: the annotations of a pod or template.
        key: the key of the annotation. The annotation `KEY` is for all containers, and `KEY.NAME`
            is for the container called NAME.
    """
    return {
        name.removeprefix(key).removeprefix("."): digest(text)
        for name, text in annotations.items()
        if (name == key or name.startswith(f"{key}.")) and text
    }
