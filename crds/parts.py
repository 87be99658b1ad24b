"""What schemas are made of."""

from typing import Any

from crds.kubernetes_schema import Schema


def text(description: str, **more: Any) -> Schema:
    """A text."""
    return {"type": "string", "description": description, **more}


def flag(description: str) -> Schema:
    """True or false."""
    return {"type": "boolean", "description": description}


def count(description: str, **more: Any) -> Schema:
    """A number from 0 on."""
    return {"type": "integer", "format": "int32", "description": description, "minimum": 0, **more}


def object_of(description: str, properties: dict[str, Schema], **more: Any) -> Schema:
    """An object with these fields."""
    return {"type": "object", "description": description, "properties": properties, **more}


def map_of(description: str, values: Schema, **more: Any) -> Schema:
    """A map to such values."""
    return {
        "type": "object", "description": description, "additionalProperties": values, **more
    }  # fmt: skip


def texts(description: str) -> Schema:
    """A map to texts."""
    return map_of(description, {"type": "string"})
