"""Builds pod specs from Kubernetes' published schema: one for each field, or with random fields.

`every_field` yields specs with one optional field each, `at_random` returns a random spec.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from itertools import count
from random import Random
from typing import Any

from kubernetes_validate import utils

Document = dict[str, Any]

KUBERNETES = "1.37"
_FILE = f"kubernetes-json-schema/v{KUBERNETES}.0-local-strict/_definitions.json"
_CORE = "io.k8s.api.core.v1."
_REF = "#/$defs/"
_DEEPEST = 12
_TOMORROW: Document = {
    "tomorrow": {"image": {"reference": "r"}, "name": ["n"], "labels": ["l"], "ports": "p"},
    "next": [["a"], {"name": 7, "image": [1]}],
}
"""Unknown fields of a later Kubernetes, with names that have a meaning elsewhere."""
_NEVER = {"ephemeralContainers"}
"""Fields that no new pod may have."""


@cache
def definitions() -> Document:
    """Returns type name -> JSON schema, for all types of Kubernetes' published schema."""
    found: Document = utils.schema_contents(_FILE, KUBERNETES)["$defs"]
    return found


def _resolved(schema: Document) -> Document:
    reference = schema.get("$ref")
    return schema if reference is None else definitions()[reference.rpartition("/")[2]]


def every_field() -> Iterator[tuple[str, Document]]:
    """Yields each field of a pod spec at any depth: its path, and a minimal spec that has the
    field.
    """
    names = count()
    yield from _fields({"$ref": f"{_REF}{_CORE}PodSpec"}, "spec", names, 0)


def _fields(
    schema: Document, path: str, names: Iterator[int], depth: int
) -> Iterator[tuple[str, Any]]:
    """Yields paths of fields below `path`, each with a minimal value of the schema that has the
    field.

    `names` yields numbers that make texts unique. `depth` is the depth of `path`; deeper fields
    than `_DEEPEST` are left out.
    """
    schema = _resolved(schema)
    if depth > _DEEPEST:
        return
    if "properties" in schema:
        for key, inner in schema["properties"].items():
            if key not in _NEVER:
                for deeper, value in _fields(inner, f"{path}.{key}", names, depth + 1):
                    yield deeper, {**least(schema, names), key: value}
    elif "array" in _types(schema):
        for deeper, value in _fields(schema["items"], f"{path}[]", names, depth + 1):
            yield deeper, [value]
    else:
        for value in _scalars(schema, names):
            yield path, value


def least(schema: Document, names: Iterator[int]) -> Document:
    """Returns a value of an object schema that has the required fields only.

    `names` yields numbers that make texts unique.
    """
    schema = _resolved(schema)
    return {key: _any(schema["properties"][key], names) for key in schema.get("required") or ()}


def _any(schema: Document, names: Iterator[int]) -> Any:
    schema = _resolved(schema)
    if "properties" in schema:
        return least(schema, names)
    if "array" in _types(schema):
        return [_any(schema["items"], names)]
    return next(_scalars(schema, names))


def _types(schema: Document) -> list[str]:
    choices = schema.get("oneOf") or [schema]
    found = [each.get("type") or [] for each in choices]
    return [type for each in found for type in (each if isinstance(each, list) else [each])]


def _scalars(schema: Document, names: Iterator[int]) -> Iterator[Any]:
    """Yields a value of each type that a schema allows.

    No value is zero, and no text repeats, because `names` yields a new number for each. Quantities
    are strings, because the API server stores numbers as strings.
    """
    types, text = _types(schema), f"x{next(names)}"
    if "boolean" in types:
        yield True
    if "integer" in types:
        yield 7 + next(names)
    if "string" in types:
        yield "7" if "number" in types else text
    if "object" in types or not types:
        inner = schema.get("additionalProperties")
        yield {text: _any(inner, names) if isinstance(inner, dict) else "y"}


def at_random(rng: Random) -> Document:
    """Returns a random pod spec with several fields of the schema, and some unknown ones."""
    return _drawn({"$ref": f"{_REF}{_CORE}PodSpec"}, rng, count(), 0)  # type: ignore[no-any-return]


def _drawn(schema: Document, rng: Random, names: Iterator[int], depth: int) -> Any:
    schema = _resolved(schema)
    if "properties" in schema:
        required = {*(schema.get("required") or ())}
        share = 0.3 if depth else 0.6
        found = {
            key: _drawn(inner, rng, names, depth + 1)
            for key, inner in schema["properties"].items()
            if key not in _NEVER and (key in required or rng.random() < share)
        }
        return {**found, **(_TOMORROW if rng.random() < share else {})}
    if "array" in _types(schema):
        return [_drawn(schema["items"], rng, names, depth + 1) for _ in range(rng.randint(1, 2))]
    return rng.choice([*_scalars(schema, names)])
