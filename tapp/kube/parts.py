"""Parts of JSON that anybody may have written: what is of another type reads as empty."""

from typing import Any


def map_of(value: Any) -> dict[str, Any]:
    """The map that a value is."""
    return value if isinstance(value, dict) else {}


def map_in(value: Any, key: str) -> dict[str, Any]:
    """The map under a key of a map."""
    found = value.get(key) if isinstance(value, dict) else None
    return found if isinstance(found, dict) else {}


def maps_of(value: Any) -> list[dict[str, Any]]:
    """The maps in the list that a value is."""
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def text_of(value: Any) -> str:
    """The text that a value is."""
    return value if isinstance(value, str) else ""


def texts_of(value: Any) -> tuple[str, ...]:
    """Returns the texts of a list, without its other items; empty if the value is no list."""
    return tuple(item for item in value if isinstance(item, str)) if isinstance(value, list) else ()
