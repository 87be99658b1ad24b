"""A variable that stands twice in a container's `env`: made one, with the meaning kept.

Metacontroller merges `env` by name and cannot apply a list that has a name twice. Kubernetes takes
the last one, and lets a value refer to what stands before it: in `[A=-a, A=$(A) -b]` the second `A`
is `-a -b`. So what referred to a variable that is left out gets its value instead.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tapp.words.quoted import quoted

Document = dict[str, Any]

LONGEST = 128 << 10
"""Characters that all values of a pod's containers may get in place of references: Linux starts no
process with a longer variable, and doubling one forty times takes little to write."""
_PARTS = re.compile(r"\$\$|\$\(([^)]*)\)")


class RepeatedEnvError(ValueError):
    """A variable stands twice, and cannot be made one; the text says which and why."""


def without_repeats(containers: Sequence[Document]) -> list[Document]:
    """Containers in which every variable stands once, the last one of each name.

    The same objects where nothing stands twice. What is no list of named entries is left alone.
    Takes time in proportion to what is written, and to `LONGEST`.

    Raises RepeatedEnvError: the value of one that is left out is needed, and is not in the
    template; or such values are too long.
    """
    folding, result = _Folding(), []
    for container in containers:
        try:
            result.append(folding.folded(container))
        except RepeatedEnvError as error:
            raise RepeatedEnvError(f"container {quoted(container.get('name'))}: {error}") from None
    return result


@dataclass(frozen=True)
class _Variable:
    """The value that a name stands for at some place of the list."""

    value: Any  # its value, None where it has a valueFrom
    stays: bool  # whether this entry is the last one of its name
    undefined: set[str]  # what its value refers to and no entry before it defines


class _Folding:
    """Makes the variables of some containers one each."""

    def __init__(self) -> None:
        self._left = LONGEST

    def folded(self, container: Document) -> Document:
        """A container in which every variable stands once."""
        env = container.get("env")
        if not isinstance(env, list) or not all(
            isinstance(item, dict) and isinstance(item.get("name"), str) for item in env
        ):
            return container
        last = {item["name"]: item for item in env}
        if len(last) == len(env):
            return container
        defined: dict[str, _Variable] = {}
        kept: list[Document] = []
        for item in env:
            name = item["name"]
            entry = self._entry(item, defined)
            stays = last[name] is item
            value = entry.get("value", None if "valueFrom" in entry else "")
            unknown = {other for other in _references(entry) if other not in defined}
            defined[name] = _Variable(value, stays, unknown)
            if stays:
                kept.append(entry)
        return {**container, "env": kept}

    def _entry(self, item: Document, defined: dict[str, _Variable]) -> Document:
        """An entry whose value refers to nothing that is left out."""

        def replaced(match: re.Match[str]) -> str:
            before = defined.get(match[1] or "")
            if before is None or before.stays:
                return match[0]
            where = f"env {quoted(match[1])} stands twice"
            if not isinstance(before.value, str):
                raise RepeatedEnvError(
                    f"{where}, and {quoted(item['name'])} needs the first one's valueFrom"
                )
            self._left -= len(before.value)
            if self._left < 0:
                raise RepeatedEnvError(
                    f"{where}, and {quoted(item['name'])} with all references replaced by their "
                    f"values is too long: together these may be {LONGEST} characters"
                )
            for other in sorted(before.undefined):
                if other in defined and defined[other].stays:
                    raise RepeatedEnvError(f"{where}, and its first value knew no {quoted(other)}")
            return before.value

        value = item.get("value")
        if not isinstance(value, str):
            return item
        end = _end_of_references(value)
        return {**item, "value": _PARTS.sub(replaced, value[:end]) + value[end:]}


def _references(item: Document) -> set[str]:
    value = item.get("value")
    text = value[: _end_of_references(value)] if isinstance(value, str) else ""
    return {match[1] for match in _PARTS.finditer(text) if match[1] is not None}


def _end_of_references(value: str) -> int:
    """End of the last reference: behind it, each `$(` would be looked for an end."""
    return value.rfind(")") + 1
