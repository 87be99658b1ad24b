"""Nesting of a value: rules go through templates by calls, one for each level."""

from typing import Any, Final

DEEPEST: Final = 100  # Levels of a template: nothing of Kubernetes has as many as twenty


def is_too_deep(value: Any) -> bool:
    """True if objects and lists are nested more deeply than `DEEPEST`, without using the stack."""
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
