"""The limit for the depth of JSON, because functions that recurse need one call for each level."""

from typing import Any, Final

# Most levels of nesting in a template. Kubernetes' own types have fewer than twenty.
DEEPEST: Final = 100


def is_too_deep(value: Any) -> bool:
    """Returns True if objects and lists are nested more than `DEEPEST` levels deep.

    The function itself does not recurse.
    """
    level: list[Any] = [[value]]
    for _ in range(DEEPEST + 1):
        level = [
            item
            for each in level
            for item in (each.values() if isinstance(each, dict) else each)
            if isinstance(item, dict | list)
        ]
        if not level:
            return False
    return True
