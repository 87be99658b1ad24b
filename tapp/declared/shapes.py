"""Checks the shape of a template: that its parts are the mappings and lists that other code
expects.
"""

from typing import Any

from tapp.declared.reads import request_problem
from tapp.kube.images import LONGEST
from tapp.words.quoted import quoted

_CONTAINERS = ("containers", "initContainers")
_UNNAMED = ("tolerations", "readinessGates")


def shape_problem(body: Any) -> str:
    """Returns why a pod template has the wrong shape, or an empty string.

    The shape is right if the parts that the service reads have the right types and required fields.
    `body` is the template as its author wrote it.
    """
    if not isinstance(body, dict):
        return "it is not an object"
    metadata = body.get("metadata") or {}
    if problem := metadata_problem(metadata) or request_problem(metadata.get("annotations") or {}):
        return problem
    spec = body.get("spec")
    if not isinstance(spec, dict):
        return "spec is missing" if spec is None else "spec is not an object"
    if not spec.get("containers"):
        return "spec.containers is empty"
    for section in (*_CONTAINERS, "volumes", *_UNNAMED):
        items = spec.get(section)
        problem = _list_problem(section, [] if items is None else items)
        if problem:
            return problem
    return ""


def metadata_problem(metadata: Any) -> str:
    """Returns why the metadata of a template has the wrong shape, or an empty string.

    `metadata` is the metadata as the template's author wrote it.
    """
    if not isinstance(metadata, dict):
        return "metadata is not an object"
    for part in ("labels", "annotations"):
        entries = metadata.get(part) or {}
        if not isinstance(entries, dict):
            return f"metadata.{part} is not an object"
        for key, value in entries.items():
            if value is not None and not isinstance(value, str):
                return f"metadata.{part}[{quoted(key)}] is not a string"
    return ""


def _list_problem(section: str, items: Any) -> str:
    """Returns why a list in a template's spec has the wrong shape, or an empty string.

    Args:
        section: the field that has the list, such as `containers`.
        items: the value of the field.
    """
    if not isinstance(items, list):
        return f"spec.{section} is not a list"
    for index, item in enumerate(items):
        where = f"spec.{section}[{index}]"
        if not isinstance(item, dict):
            return f"{where} is not an object"
        if section in _UNNAMED:
            continue
        name = item.get("name")
        if not isinstance(name, str) or not name:
            return f"{where}.name is missing"
        if section in _CONTAINERS and not isinstance(item.get("image") or "", str):
            return f"{where}.image is not a string"
        if section in _CONTAINERS and len(item.get("image") or "") > LONGEST:
            return f"{where}.image is longer than {LONGEST} characters: no image reference is"
    return ""


def repeated_name(spec: dict[str, Any]) -> str:
    """Returns a text that names a container or volume with the name of an earlier one.

    Returns an empty string if all names differ. Kubernetes refuses a pod with repeated names, and
    this service looks up containers by name.
    """
    for sections in (_CONTAINERS, ("volumes",)):
        names = set[str]()
        for section in sections:
            for index, item in enumerate(spec.get(section) or []):
                if item["name"] in names:
                    where = f"spec.{section}[{index}].name"
                    return f"{where} {quoted(item['name'])} is used by an earlier entry"
                names.add(item["name"])
    return ""
