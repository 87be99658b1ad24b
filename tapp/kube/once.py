"""The names, paths and ports that no pod may have twice, and the volumes that containers mount.

Source: pkg/apis/core/validation of Kubernetes 1.36 (ValidateVolumeMounts, ValidateVolumeDevices,
validateContainerPorts, checkHostPortConflicts, ...). Only what is refused whatever admission adds;
all that has another type than Kubernetes wants is passed over: the API server has the words for it.
"""

from collections.abc import Iterator
from typing import Any

Document = dict[str, Any]

_OF_A_POD = (
    ("resourceClaims", ("name",)),
    ("schedulingGates", ("name",)),
    ("topologySpreadConstraints", ("topologyKey", "whenUnsatisfiable")),
    ("securityContext.sysctls", ("name",)),
)
_OF_A_CONTAINER = (
    ("ports", ("name",)),
    ("volumeMounts", ("mountPath",)),
    ("volumeDevices", ("name",)),
    ("volumeDevices", ("devicePath",)),
    ("resizePolicy", ("resourceName",)),
)
"""List -> the fields that make an entry; entries that lack one of them do not count."""
_FOR_CLAIMS = {"persistentVolumeClaim", "ephemeral"}
_LONGEST = 80


def shown(text: str) -> str:
    """A tenant's text for a sentence, cut."""
    return repr(text if len(text) <= _LONGEST else f"{text[:_LONGEST]}...")


def repeated(spec: Document) -> str:
    """The first entry that Kubernetes refuses for an earlier one, in a sentence; "" for none.

    Args:
        spec: a pod's, in canonical form.
    """
    for path, fields in _OF_A_POD:
        if found := _twice(spec, f"spec.{path}", path, fields):
            return found
    for where, container in _containers(spec):
        for path, fields in _OF_A_CONTAINER:
            if found := _twice(container, f"{where}.{path}", path, fields):
                return found
        if found := _mounted_and_device(container, where) or _no_device(spec, container, where):
            return found
    return _host_ports(spec)


def mounted(spec: Document) -> dict[str, str]:
    """Name -> the container that mounts it, of the volumes that a pod spec lacks."""
    volumes = {*_texts(spec, "volumes", "name")}
    found: dict[str, str] = {}
    for _, container in _containers(spec):
        for field in ("volumeMounts", "volumeDevices"):
            for name in _texts(container, field, "name"):
                if name not in volumes:
                    found.setdefault(name, str(container.get("name")))
    return found


def _containers(spec: Document) -> Iterator[tuple[str, Document]]:
    for section in ("containers", "initContainers"):
        for container in _entries(spec, section):
            yield f"spec.{section}[{shown(str(container.get('name')))}]", container


def _entries(holder: Document, path: str) -> list[Document]:
    value: Any = holder
    for key in path.split("."):
        value = value.get(key) if isinstance(value, dict) else None
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def _twice(holder: Document, where: str, path: str, fields: tuple[str, ...]) -> str:
    seen = set[tuple[str, ...]]()
    for entry in _entries(holder, path):
        key = tuple([value for field in fields if (value := entry.get(field))])
        if len(key) < len(fields) or not all(isinstance(part, str) for part in key):
            continue
        if key in seen:
            return f"{where} has the {' and '.join(fields)} {', '.join(map(shown, key))} twice"
        seen.add(key)
    return ""


def _texts(holder: Document, path: str, key: str) -> list[str]:
    """What the entries of a list have under a key, those that have a text."""
    values = [entry.get(key) for entry in _entries(holder, path)]
    return [value for value in values if value and isinstance(value, str)]


def _mounted_and_device(container: Document, where: str) -> str:
    """Something that a container has both as a file system and as a device."""
    for of_mount, of_device in (("name", "name"), ("mountPath", "devicePath")):
        mounts = {*_texts(container, "volumeMounts", of_mount)}
        for text in _texts(container, "volumeDevices", of_device):
            if text in mounts:
                return f"{where} has {shown(text)} in volumeMounts and in volumeDevices"
    return ""


def _no_device(spec: Document, container: Document, where: str) -> str:
    """A device that is a volume of another kind than a claim."""
    devices = {*_texts(container, "volumeDevices", "name")}
    for volume in _entries(spec, "volumes") if devices else ():
        name = volume.get("name")
        if isinstance(name, str) and name in devices and not _FOR_CLAIMS & volume.keys():
            return f"{where}.volumeDevices has {shown(name)}, and that volume is no claim"
    return ""


def _host_ports(spec: Document) -> str:
    """A port of the node that two containers want; init containers run one after another."""
    groups = [_entries(spec, "containers")]
    groups += [[container] for container in _entries(spec, "initContainers")]
    for group in groups:
        seen = set[tuple[str, str, str]]()
        ports = [(each.get("name"), port) for each in group for port in _entries(each, "ports")]
        for of, port in ports:
            number = port.get("hostPort") or (spec.get("hostNetwork") and port.get("containerPort"))
            if not number:
                continue
            key = (str(port.get("protocol") or "TCP"), str(port.get("hostIP") or ""), str(number))
            if key in seen:
                return f"hostPort {key[2]}/{key[0]} of container {shown(str(of))} is wanted twice"
            seen.add(key)
    return ""
