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
_FOR_CLAIMS = ("persistentVolumeClaim", "ephemeral")
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
    volumes = {volume.get("name") for volume in _entries(spec, "volumes")}
    found: dict[str, str] = {}
    for _, container in _containers(spec):
        for field in ("volumeMounts", "volumeDevices"):
            for mount in _entries(container, field):
                name = mount.get("name")
                if isinstance(name, str) and name and name not in volumes:
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


def _mounted_and_device(container: Document, where: str) -> str:
    """Something that a container has both as a file system and as a device."""
    mounts, devices = _entries(container, "volumeMounts"), _entries(container, "volumeDevices")
    for of_mount, of_device in (("name", "name"), ("mountPath", "devicePath")):
        texts = {str(entry.get(of_mount)) for entry in mounts if entry.get(of_mount)}
        for entry in devices:
            if str(entry.get(of_device)) in texts:
                what = shown(str(entry.get(of_device)))
                return f"{where} has {what} in volumeMounts and in volumeDevices"
    return ""


def _no_device(spec: Document, container: Document, where: str) -> str:
    """A device that is a volume of another kind than a claim."""
    devices = [str(entry.get("name")) for entry in _entries(container, "volumeDevices")]
    if not devices:
        return ""
    others = {
        str(volume.get("name"))
        for volume in _entries(spec, "volumes")
        if not any(kind in volume for kind in _FOR_CLAIMS)
    }
    wrong = next((name for name in devices if name in others), None)
    return f"{where}.volumeDevices has {shown(wrong)}, and that volume is no claim" if wrong else ""


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
