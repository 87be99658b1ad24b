"""Checks a TApp from a file against the CRD's schema, and its pods against some API rules.

`mistakes` is the entry point, for plans without a cluster. It checks the schema's types, required
fields, enums, patterns and bounds. Of the API server's rules for pods it checks those that the
service knows (`tapp/kube/limits.py`). It does not check rules between fields (CEL) and other rules
of the API server. The sentence `UNCHECKED` tells the user so.
"""

import re
from collections.abc import Iterator
from typing import Any

from kubectl_tapp.base import shipped
from kubectl_tapp.base.observed import Document
from tapp.kube.limits import limit_problems

UNCHECKED = (
    "no API server was asked: the CRD's rules between fields, most of Kubernetes' rules for pods, "
    "quotas, admission and your rights were not checked; plan with a cluster checks them"
)
_MAX_MISTAKES = 10  # The largest number of mistakes that are listed
_TYPES: dict[str, tuple[type, ...]] = {
    "object": (dict,), "array": (list,), "string": (str,), "boolean": (bool,), "integer": (int,),
    "number": (int, float),
}  # fmt: skip


def mistakes(tapp: Document) -> tuple[str, ...]:
    """Returns sentences about mistakes for which an API server would refuse the TApp.

    If there are more than `_MAX_MISTAKES`, the last sentence says how many are not listed.
    """
    versions = shipped.manifest(shipped.DEFINITION)["spec"]["versions"]
    schema = versions[0]["schema"]["openAPIV3Schema"]["properties"]["spec"]
    found: list[str] = list(_value_mistakes("spec", tapp.get("spec"), schema))
    spec = tapp.get("spec")
    if isinstance(spec, dict):
        pool = spec.get("templatePool")
        bodies = {"spec.template": spec.get("template")}
        if isinstance(pool, dict):
            bodies |= {f"spec.templatePool.{name}": body for name, body in pool.items()}
        for path, body in bodies.items():
            if isinstance(body, dict):
                wrong = limit_problems("Pod", body, is_known=_has_no_placeholder)
                found += [f"{path}.{each}" for each in wrong]
    more = [f"and {len(found) - _MAX_MISTAKES} more"] if len(found) > _MAX_MISTAKES else []
    return (*found[:_MAX_MISTAKES], *more)


def _value_mistakes(path: str, value: Any, schema: Document) -> Iterator[str]:
    """Yields a sentence, with the field's path, for each violation of the OpenAPI schema in a
    value.

    A null is ignored, because the API server drops most nulls.
    """
    if value is None:
        return
    if schema.get("x-kubernetes-int-or-string"):
        if isinstance(value, bool) or not isinstance(value, int | str):
            yield f"{path}: Invalid value: must be an integer or a string"
        return
    kind = schema.get("type")
    if kind in _TYPES and not _has_type(value, kind):
        yield f"{path}: Invalid value: must be of type {kind}"
        return
    yield from _bound_mistakes(path, value, schema)
    if isinstance(value, dict):
        properties, rest = schema.get("properties") or {}, schema.get("additionalProperties")
        for key in schema.get("required") or ():
            if value.get(key) is None:
                yield f"{path}.{key}: Required value"
        for key, item in value.items():
            inner = properties.get(key, rest)
            if isinstance(inner, dict):
                yield from _value_mistakes(f"{path}.{key}", item, inner)
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _value_mistakes(f"{path}[{index}]", item, schema.get("items") or {})


def _has_type(value: Any, kind: str) -> bool:
    if isinstance(value, bool) or kind == "boolean":
        return isinstance(value, bool) and kind == "boolean"
    return isinstance(value, _TYPES[kind])


def _bound_mistakes(path: str, value: Any, schema: Document) -> Iterator[str]:
    if (enum := schema.get("enum")) and value not in enum:
        yield f"{path}: Unsupported value: {value!r}: supported values: {', '.join(map(str, enum))}"
    if isinstance(value, str) and not re.search(schema.get("pattern") or "", value):
        yield f"{path}: Invalid value: {value!r}: must match {schema['pattern']}"
    if isinstance(value, int | float) and not isinstance(value, bool):
        least, most = schema.get("minimum"), schema.get("maximum")
        if least is not None and value < least:
            yield f"{path}: Invalid value: {value}: must be at least {least}"
        if most is not None and value > most:
            yield f"{path}: Invalid value: {value}: must be at most {most}"
    for key, kind, less in _SIZES:
        limit = schema.get(key)
        if limit is not None and isinstance(value, kind) and (len(value) - limit) * less > 0:
            yield f"{path}: Invalid value: {key} is {limit}, and it has {len(value)}"


_SIZES = (
    ("maxLength", str, 1), ("minLength", str, -1), ("maxItems", list, 1), ("minItems", list, -1),
    ("maxProperties", dict, 1),
)  # fmt: skip


def _has_no_placeholder(value: Any) -> bool:
    """Returns True if a value contains no placeholder such as `$(tapp.name)`, at any depth."""
    return "$(tapp." not in str(value)
