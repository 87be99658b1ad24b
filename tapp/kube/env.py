"""Removes repeated environment variables from containers without changing their meaning.

Metacontroller merges `env` by name, and cannot apply a list with the same name twice. In Kubernetes
the last entry of a name wins, and a value may refer to entries before it: in `[A=-a, A=$(A) -b]`
the second `A` is `-a -b`. So an entry that is not the last of its name is removed, and references
to it are replaced by its value.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tapp.words.quoted import quoted

Document = dict[str, Any]

# Most characters that may replace references in all containers of a pod. Linux starts no process
# with a longer variable, and a few entries that double a value could otherwise fill the memory.
LONGEST = 128 << 10
_PARTS = re.compile(r"\$\$|\$\(([^)]*)\)")


class RepeatedEnvError(ValueError):
    """A repeated variable cannot be removed; the message says which one and why."""


def without_repeats(containers: Sequence[Document]) -> list[Document]:
    """Returns the containers with every variable once.

    Containers without repeated variables are returned as they are, and so is an `env` that is no
    list of named entries. The time is proportional to the length of the input and to `LONGEST`.

    Raises RepeatedEnvError if the value of a removed entry is needed and is not in the template, or
    if the replaced values are too long.
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
    """The value of an environment variable at one position in a container's `env`.

    A later entry of the same name may define the variable again.
    """

    value: Any  # Value; None if the entry has a `valueFrom`.
    stays: bool  # True if this entry is the last of its name, so that it is kept.
    undefined: set[str]  # Variables that the value refers to and that no earlier entry defines.


class _Folding:
    """Removes the repeated variables of several containers, with a common limit of characters."""

    def __init__(self) -> None:
        self._left = LONGEST

    def folded(self, container: Document) -> Document:
        """Returns a container in whose `env` every variable has one entry.

        Raises RepeatedEnvError if a repeated variable cannot be removed.
        """
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
        """Returns an entry in which references to removed entries are replaced by their values.

        Raises RepeatedEnvError if the value of a removed entry cannot be used.

        Args:
            item: the entry of `env`.
            defined: name -> the variable that the entries before this one define.
        """

        def replaced(match: re.Match[str]) -> str:
            before = defined.get(match[1] or "")
            if before is None or before.stays:
                return match[0]
            where = f"environment variable {quoted(match[1])} is listed twice"
            if not isinstance(before.value, str):
                raise RepeatedEnvError(
                    f"{where}, and {quoted(item['name'])} needs the valueFrom of the first entry"
                )
            self._left -= len(before.value)
            if self._left < 0:
                raise RepeatedEnvError(
                    f"{where}, and {quoted(item['name'])} with all references replaced by their "
                    f"values is too long: together these may be {LONGEST} characters"
                )
            # The removed value left this reference as text. In its new place Kubernetes would
            # expand it.
            for other in sorted(before.undefined):
                if other in defined and defined[other].stays:
                    raise RepeatedEnvError(
                        f"{where}, and its first value refers to {quoted(other)}, which is defined "
                        "only later"
                    )
            return before.value

        value = item.get("value")
        if not isinstance(value, str):
            return item
        end = _end_of_references(value)
        return {**item, "value": _PARTS.sub(replaced, value[:end]) + value[end:]}


def _references(item: Document) -> set[str]:
    """Returns the names of the variables to which the value of an entry refers."""
    value = item.get("value")
    text = value[: _end_of_references(value)] if isinstance(value, str) else ""
    return {match[1] for match in _PARTS.finditer(text) if match[1] is not None}


def _end_of_references(value: str) -> int:
    """Returns the position after the last reference in a value.

    The regular expression is not applied to the text after that position: it would search for the
    end of each `$(` there, which takes quadratic time.
    """
    return value.rfind(")") + 1
