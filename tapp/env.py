"""A variable that stands twice in a container's `env`: made one, with the meaning kept.

Metacontroller merges `env` by name and cannot apply a list that has a name twice. Kubernetes takes
the last one, and lets a value refer to what stands before it: in `[A=-a, A=$(A) -b]` the second `A`
is `-a -b`. So what referred to a variable that is left out gets its value instead.
"""

import re
from dataclasses import dataclass
from typing import Any

Document = dict[str, Any]

_PARTS = re.compile(r"\$\$|\$\(([^)]*)\)")


class RepeatedEnvError(ValueError):
    """A variable stands twice, and cannot be made one; the text says which and why."""


def without_repeats(container: Document) -> Document:
    """A container in which every variable stands once, the last one of each name.

    The same object where nothing stands twice. What is no list of named entries is left alone.

    Raises:
        RepeatedEnvError: the value of one that is left out is needed, and is not in the template.
    """
    env = container.get("env")
    if not isinstance(env, list) or not all(
        isinstance(item, dict) and isinstance(item.get("name"), str) for item in env
    ):
        return container
    last = {item["name"]: item for item in env}
    if len(last) == len(env):
        return container
    seen: dict[str, _Seen] = {}
    kept: list[Document] = []
    for item in env:
        name = item["name"]
        try:
            folded = _folded(item, seen)
        except RepeatedEnvError as error:
            raise RepeatedEnvError(f"container {container.get('name')!r}: {error}") from None
        stays = last[name] is item
        open_references = _references(folded) - seen.keys()
        value = folded.get("value", None if "valueFrom" in folded else "")
        seen[name] = _Seen(value, stays, open_references)
        if stays:
            kept.append(folded)
    return {**container, "env": kept}


@dataclass(frozen=True)
class _Seen:
    """What a name stands for at some place of the list.

    Attributes:
        value: its value, None where it has a valueFrom.
        stays: whether this entry is the last one of its name.
        open_references: what its value refers to and no entry before it defines.
    """

    value: Any
    stays: bool
    open_references: set[str]


def _folded(item: Document, seen: dict[str, _Seen]) -> Document:
    """An entry whose value refers to nothing that is left out."""

    def replaced(match: re.Match[str]) -> str:
        before = seen.get(match[1] or "")
        if before is None or before.stays:
            return match[0]
        where = f"env {match[1]!r} stands twice"
        if not isinstance(before.value, str):
            raise RepeatedEnvError(f"{where}, and {item['name']!r} needs the first one's valueFrom")
        for other in sorted(before.open_references):
            if other in seen and seen[other].stays:
                raise RepeatedEnvError(f"{where}, and its first value knew no {other!r}")
        return before.value

    value = item.get("value")
    return {**item, "value": _PARTS.sub(replaced, value)} if isinstance(value, str) else item


def _references(item: Document) -> set[str]:
    value = item.get("value")
    found = _PARTS.finditer(value) if isinstance(value, str) else ()
    return {match[1] for match in found if match[1] is not None}
