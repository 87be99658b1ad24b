"""Removes repeated environment variables from containers without changing the resulting values.

Metacontroller merges `env` by name, so it cannot apply a list that has the same name twice. In
Kubernetes, the last entry of a name counts. A value may refer to entries before it: in `[A=-a,
A=$(A) -b]` the second `A` has the value `-a -b`. So this module keeps the last entry of each name,
and removes the others. It replaces references to removed entries by the values of these entries.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tapp.words.quoted import quoted

Document = dict[str, Any]

# Most characters of the values that replace references in all containers of a pod. Linux starts no
# process with a longer variable. Without a limit, a few entries that each double a value could fill
# the memory.
LONGEST = 128 << 10
_PARTS = re.compile(r"\$\$|\$\(([^)]*)\)")


class RepeatedEnvError(ValueError):
    """A repeated environment variable cannot be removed; the message says which one and why."""


def without_repeats(containers: Sequence[Document]) -> list[Document]:
    """Returns the containers, each with one entry for each environment variable.

    A container without repeated variables is returned unchanged. An `env` that is not a list of
    entries with names is also returned unchanged. The time is proportional to the length of the
    input plus `LONGEST`.

    Raises RepeatedEnvError if the value of a removed entry is needed and is not in the template, or
    if the replacing values have more than `LONGEST` characters.
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
    stays: bool  # True if this entry is the last one of its name, and so is not removed.
    # Names of variables that the value refers to and that no earlier entry defines.
    undefined: set[str]


class _Folding:
    """Removes the repeated variables of several containers, which share one limit of characters."""

    def __init__(self) -> None:
        self._left = LONGEST

    def folded(self, container: Document) -> Document:
        """Returns a container whose `env` has one entry for each variable.

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
        """Returns an entry of `env` without references to removed entries.

        The values of the removed entries replace the references. Raises RepeatedEnvError if the
        value of a removed entry cannot be used.

        Args:
            item: the entry of `env`.
            defined: name -> variable, as defined by the entries before this one.
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
            # The removed value contains a reference to a variable that was not defined there, so
            # Kubernetes would have left the reference as text. In its new place Kubernetes would
            # replace the reference.
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

    The regular expression is not applied to the text after that position. For each `$(` in this
    text, it would search for an end, which takes quadratic time.
    """
    return value.rfind(")") + 1
