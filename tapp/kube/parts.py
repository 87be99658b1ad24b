"""Access to parts of JSON that may have any type; a part of a wrong type counts as empty."""

from typing import Any


def map_of(value: Any) -> dict[str, Any]:
    """Returns `value` if it is a map, or an empty map if it is not."""
    return value if isinstance(value, dict) else {}


def map_in(value: Any, key: str) -> dict[str, Any]:
    """Returns the map at a key of `value`; an empty map if `value` or the entry at the key is no
    map.
    """
    found = value.get(key) if isinstance(value, dict) else None
    return found if isinstance(found, dict) else {}


def maps_of(value: Any) -> list[dict[str, Any]]:
    """Returns those entries of a list that are maps; an empty list if `value` is no list."""
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def text_of(value: Any) -> str:
    """Returns `value` if it is a text, or an empty text if it is not."""
    return value if isinstance(value, str) else ""


def texts_of(value: Any) -> tuple[str, ...]:
    """Returns those entries of a list that are texts; an empty tuple if `value` is no list."""
    return tuple(item for item in value if isinstance(item, str)) if isinstance(value, list) else ()
