"""Defines shapes: rules for the value of a field, most of which once made a sync too expensive.

`filled` builds a value of any size, by one of `SHAPES`, for a field with any schema.
"""

from collections.abc import Callable
from typing import Any, Final, NamedTuple

Schema = dict[str, Any]


class Shape(NamedTuple):
    """A rule for the value of a field.

    Attributes:
        text: returns a text of about the given number of characters.
        each: the length of each text if the field can hold many; 0 for one text of full size.
        key: True if the key of an entry has the full size, and not its value.
        own: True if each instance has its own value of the field, so that the template stays small.
        crowd: the factor by which the number of instances is multiplied, because each costs little.
        levels: the depth of nested lists in a field without a schema.
    """

    text: Callable[[int], str]
    each: int = 0
    key: bool = False
    own: bool = False
    crowd: int = 1
    levels: int = 1


MISSING: Final = "$(tapp.values.none)"
SHAPES: Final[dict[str, Shape]] = {
    "long": Shape(lambda size: "x" * size),
    "many": Shape(lambda size: "x" * size, 20),
    "digits": Shape(lambda size: "1" * size, 385),
    "digits and a placeholder": Shape(lambda size: "1" * size + "$(tapp.name)", 385, own=True),
    "a percentage with zeros": Shape(lambda size: "0" * size + "1%"),
    "a quantity with an exponent": Shape(lambda size: "1" * min(size, 300) + "e99", 300),
    "unicode": Shape(lambda size: "\U0001f600" * (size // 4), 40),
    "placeholders": Shape(lambda size: "$(tapp.index)" * (size // 13 or 1), 13, own=True, crowd=4),
    "a placeholder in a long text": Shape(lambda size: "x" * size + "$(tapp.index)", own=True),
    "a missing value": Shape(lambda size: "x" * size + MISSING, own=True, crowd=6),
    "a missing value under a long key": Shape(lambda _: MISSING, key=True, own=True, crowd=6),
    "doubled dollars": Shape(lambda size: "$" * size, 60, own=True),
    "nested": Shape(lambda size: "x" * size, 300, levels=80),
    "brackets": Shape(lambda size: "[" * size, 40),
}
"""Name -> shape. Sizes are in bytes. A text of digits also fits fields for numbers, quantities and
percentages.
"""


def filled(schema: Schema, shape: Shape, size: int) -> Any:
    """Returns a value of about `size` bytes, in the given shape, for a field with this JSON
    schema.
    """
    if "additionalProperties" in schema and isinstance(schema["additionalProperties"], dict):
        inner = schema["additionalProperties"]
        if shape.key:
            return {"k" * size: filled(inner, shape, 20)}
        each = shape.each or size
        return {f"k{number}": filled(inner, shape, each) for number in range(_count(size, each))}
    if schema.get("type") == "array":
        each = max(shape.each or size, _least(schema["items"]))
        items = [filled(schema["items"], shape, each) for _ in range(_count(size, each))]
        return [_named(item, number) for number, item in enumerate(items)]
    if "properties" in schema:
        parts = schema["properties"]
        return {name: filled(part, shape, size // len(parts)) for name, part in parts.items()}
    return _plain(schema, shape, size)


def _plain(schema: Schema, shape: Shape, size: int) -> Any:
    kind = schema.get("type")
    if kind == "boolean":
        return True
    if kind in ("integer", "number"):
        return 1
    if "enum" in schema:
        return schema["enum"][0]
    opaque = "x-kubernetes-preserve-unknown-fields" in schema and "pattern" not in schema
    if kind == "object" or opaque:
        each = shape.each or size
        return {f"k{n}": {"k": _nested(shape, each)} for n in range(_count(size, each))}
    return shape.text(max(size, 1))


def _nested(shape: Shape, size: int) -> Any:
    value: Any = shape.text(size)
    for _ in range(shape.levels):
        value = [value]
    return value


def _count(size: int, each: int) -> int:
    return max(1, size // (each + 8))


def _least(schema: Schema) -> int:
    """Returns the number of bytes that the field names of one list item take."""
    return sum(len(name) + _least(part) for name, part in schema.get("properties", {}).items())


def _named(item: Any, number: int) -> Any:
    return {**item, "name": f"n{number}"} if isinstance(item, dict) and "name" in item else item
