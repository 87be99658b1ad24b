"""Finds entries that a pod spec may have only once, and mounts without a volume.

Examples of such entries are names, mount paths and ports. Source: pkg/apis/core/validation of
Kubernetes 1.37 (ValidateVolumeMounts, ValidateVolumeDevices, validateContainerPorts,
checkHostPortConflicts). Only errors that admission cannot correct are reported. Parts of a wrong
type are skipped, because the API server reports them.
"""

from collections.abc import Iterator
from typing import Any

from tapp.kube.parts import maps_of
from tapp.words.quoted import quoted

Document = dict[str, Any]

_Lists = tuple[tuple[str, tuple[str, ...]], ...]
# Pairs of a list in a pod spec and the fields whose combination must differ in all of its entries.
# An entry that lacks one of the fields is not compared.
_OF_A_POD: _Lists = (
    ("resourceClaims", ("name",)),
    ("schedulingGates", ("name",)),
    ("topologySpreadConstraints", ("topologyKey", "whenUnsatisfiable")),
)
# Pairs of the same kind for the lists in `spec.securityContext`.
_OF_SECURITY: _Lists = (("sysctls", ("name",)),)
# Pairs of the same kind for the lists in a container.
_OF_A_CONTAINER: _Lists = (
    ("ports", ("name",)), ("volumeMounts", ("mountPath",)), ("volumeDevices", ("name",)),
    ("volumeDevices", ("devicePath",)), ("resizePolicy", ("resourceName",)),
)  # fmt: skip
# Kinds of volumes that a container may use as a block device.
_FOR_CLAIMS = {"persistentVolumeClaim", "ephemeral"}


def repetition(spec: Document) -> str:
    """Returns a text about an entry of a pod spec that repeats or contradicts an earlier entry.

    Returns an empty string if there is no such entry. `spec` is in canonical form.
    """
    if found := _twice(spec, _OF_A_POD):
        return f"spec.{found}"
    security = spec.get("securityContext")
    if isinstance(security, dict) and (found := _twice(security, _OF_SECURITY)):
        return f"spec.securityContext.{found}"
    for section, container in _containers(spec):
        found = _twice(container, _OF_A_CONTAINER)
        if "volumeDevices" in container:
            found = found or _mounted_and_device(container) or _no_device(spec, container)
        if found:
            return f"spec.{section}[{quoted(str(container.get('name')))}].{found}"
    return _host_ports(spec)


def mounts_without_volume(spec: Document) -> dict[str, str]:
    """Returns volume name -> first container that mounts the volume, for volumes that the spec
    lacks.

    `spec` is a pod spec.
    """
    volumes = {*_texts(spec, "volumes", "name")}
    found: dict[str, str] = {}
    for _, container in _containers(spec):
        for field in ("volumeMounts", "volumeDevices"):
            for name in _texts(container, field, "name"):
                if name not in volumes:
                    found.setdefault(name, str(container.get("name")))
    return found


def _containers(spec: Document) -> Iterator[tuple[str, Document]]:
    """Yields each container of a pod spec, and the name of the list that has the container."""
    for section in ("containers", "initContainers"):
        for container in maps_of(spec.get(section)):
            yield section, container


def _twice(holder: Document, lists: _Lists) -> str:
    """Returns a text about the first entry that repeats an earlier entry, or an empty string.

    Args:
        holder: the object that has the lists, such as a container.
        lists: pairs of the name of a list and the fields whose combination must differ in all of
            its entries.
    """
    for field, keys in lists:
        if field not in holder:
            continue
        seen = set[tuple[str, ...]]()
        for entry in maps_of(holder.get(field)):
            values = tuple([v for key in keys if (v := entry.get(key)) and isinstance(v, str)])
            if len(values) < len(keys):
                continue
            if values in seen:
                twice = ", ".join(map(quoted, values))
                return f"{field} has the {' and '.join(keys)} {twice} twice"
            seen.add(values)
    return ""


def _texts(holder: Document, field: str, key: str) -> list[str]:
    """Returns the texts that the entries of a list have at a key.

    Entries without such a text are left out.

    Args:
        holder: the object that has the list.
        field: the name of the list in `holder`.
        key: the key in each entry.
    """
    values = [entry.get(key) for entry in maps_of(holder.get(field))]
    return [value for value in values if value and isinstance(value, str)]


def _mounted_and_device(container: Document) -> str:
    """Returns a text about a volume or path that a container uses both as a mount and as a device.

    Returns an empty string if no volume and no path is used in both ways.
    """
    for of_mount, of_device in (("name", "name"), ("mountPath", "devicePath")):
        mounts = {*_texts(container, "volumeMounts", of_mount)}
        for text in _texts(container, "volumeDevices", of_device):
            if text in mounts:
                return f"volumeMounts has {quoted(text)}, and so has volumeDevices"
    return ""


def _no_device(spec: Document, container: Document) -> str:
    """Returns a text about a block device of a container whose volume is no claim.

    Returns an empty string if there is no such device. `spec` is the pod spec, which has the
    volumes.
    """
    devices = {*_texts(container, "volumeDevices", "name")}
    for volume in maps_of(spec.get("volumes")) if devices else ():
        name = volume.get("name")
        if isinstance(name, str) and name in devices and not _FOR_CLAIMS & volume.keys():
            return f"volumeDevices has {quoted(name)}, and that volume is not a claim"
    return ""


def _host_ports(spec: Document) -> str:
    """Returns a text about a node port number (`hostPort`) that two containers need, or an empty
    string.

    Only containers that run at the same time are compared. Init containers run one after another.
    """
    groups = [maps_of(spec.get("containers"))]
    groups += [[container] for container in maps_of(spec.get("initContainers"))]
    of_node = bool(spec.get("hostNetwork"))
    for group in groups:
        seen = set[tuple[str, str, str]]()
        for container in group:
            for port in maps_of(container.get("ports")):
                number = port.get("hostPort") or (of_node and port.get("containerPort"))
                if not number:
                    continue
                protocol, ip = str(port.get("protocol") or "TCP"), str(port.get("hostIP") or "")
                key = (protocol, ip, str(number))
                if key in seen:
                    name, what = quoted(str(container.get("name"))), quoted(f"{number}/{protocol}")
                    return f"hostPort {what} of container {name} is requested twice"
                seen.add(key)
    return ""
