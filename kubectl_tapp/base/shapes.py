"""Checks that the fields of a TApp manifest which commands read have the right types: objects,
lists and texts.

The entry point is `shape_error`. It checks only types, as the API server does by the CRD's schema.
The values are checked by the API server and the service.
"""

from typing import Any

_OBJECT, _LIST, _TEXT = (dict, "an object"), (list, "a list"), (str, "a text")
_CONTAINERS = ("containers", "initContainers")


def shape_error(tapp: dict[str, Any]) -> str:
    """Returns a sentence about the first field of a TApp with a wrong type, or "" if all types are
    right.
    """
    metadata, spec = tapp.get("metadata"), tapp.get("spec")
    pool = spec.get("templatePool") if isinstance(spec, dict) else None
    bodies = pool if isinstance(pool, dict) else {}
    checks = [
        _type_error("metadata", metadata, _OBJECT),
        *(
            _type_error(f"metadata.{each}", _of(metadata, each), _TEXT)
            for each in ("name", "namespace")
        ),
        *(_type_error(f"metadata.{each}", _of(metadata, each), _OBJECT) for each in _NOTES),
        _type_error("spec", spec, _OBJECT),
        _type_error("spec.templatePool", pool, _OBJECT),
        template_shape_error("spec.template", _of(spec, "template")),
        *(template_shape_error(f"spec.templatePool.{name}", body) for name, body in bodies.items()),
    ]
    return next((found for found in checks if found), "")


_NOTES = ("labels", "annotations")


def template_shape_error(path: str, body: object) -> str:
    """Returns a sentence about the first field of a pod template with a wrong type.

    Returns "" if all types are right. `path` is the path of the template in the TApp, with which
    the sentence begins, and `body` is the template.
    """
    metadata, spec = _of(body, "metadata"), _of(body, "spec")
    checks = [_type_error(path, body, _OBJECT), _type_error(f"{path}.metadata", metadata, _OBJECT)]
    checks += [
        _type_error(f"{path}.metadata.{each}", _of(metadata, each), _OBJECT) for each in _NOTES
    ]
    checks.append(_type_error(f"{path}.spec", spec, _OBJECT))
    for section in _CONTAINERS:
        items = _of(spec, section)
        checks.append(_type_error(f"{path}.spec.{section}", items, _LIST))
        for index, item in enumerate(items if isinstance(items, list) else []):
            place = f"{path}.spec.{section}[{index}]"
            checks.append(_type_error(place, {} if item is None else item, _OBJECT))
            checks.append(_type_error(f"{place}.image", _of(item, "image"), _TEXT))
            named = isinstance(item, dict) and isinstance(item.get("name"), str)
            checks.append("" if named else f"{place} has no name")
    return next((found for found in checks if found), "")


def _of(value: object, key: str) -> Any:
    return value.get(key) if isinstance(value, dict) else None


def _type_error(path: str, value: object, wanted: tuple[type, str]) -> str:
    kind, word = wanted
    return "" if value is None or isinstance(value, kind) else f"{path} is not {word}"
