"""Placeholders: where a template says `$(tapp.index)` and its like, and what it becomes.

`$(tapp.index)`, `$(tapp.name)`, `$(tapp.namespace)` and `$(tapp.values.KEY)` stand for an
instance's own; `$$(tapp.` is the text `$(tapp.` itself. What is filled in is not looked at again.
Kubernetes' own `$(VAR)` is none of this.
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import msgspec

from tapp.kube.depth import DEEPEST, is_too_deep
from tapp.kube.names import is_label_value
from tapp.words.digits import is_whole
from tapp.words.quoted import quoted, short
from tapp.words.vocabulary import VALUE_KEY

BEGIN: Final = "$(tapp."
VALUES: Final = "values."  # The prefix of the names of values
WHOLE: Final = rf"\$\(tapp\.(index|values\.{VALUE_KEY})\)"
"""A text that is nothing but one placeholder that may be a number, as a regular expression."""
ANY: Final = rf"\$\(tapp\.(index|name|namespace|values\.{VALUE_KEY})\)"  # Any placeholder, likewise

_FOUND = re.compile(r"\$\$\(tapp\.|\$\(tapp\.([^()]*)\)|\$\(tapp\.")
_NAME = re.compile(rf"index|name|namespace|values\.{VALUE_KEY}")
_NUMBER = re.compile(r"0|[1-9][0-9]{0,9}")

Path = tuple[str | int, ...]


class Numbers(NamedTuple):
    """The numbers that a field takes."""

    least: int  # the least of them
    most: int  # the largest
    named: bool = False  # whether it takes a name as well
    mixed: bool = False  # whether there may be text around a placeholder (`3000$(tapp.index)`)


_PORT, _ID, _SECONDS = Numbers(1, 65_535), Numbers(0, 2**31 - 1), Numbers(0, 2**31 - 1)
_NAMED_PORT = Numbers(1, 65_535, named=True, mixed=True)
_HANDLERS = {"httpGet.port": _NAMED_PORT, "tcpSocket.port": _NAMED_PORT}
_OF_A_CONTAINER = {
    "ports[].containerPort": _PORT,
    "ports[].hostPort": Numbers(0, 65_535),
    "securityContext.runAsUser": _ID,
    "securityContext.runAsGroup": _ID,
    **{
        f"{probe}.{field}": numbers
        for probe in ("livenessProbe", "readinessProbe", "startupProbe")
        for field, numbers in {**_HANDLERS, "grpc.port": _PORT}.items()
    },
    **{
        f"lifecycle.{hook}.{field}": numbers
        for hook in ("postStart", "preStop")
        for field, numbers in _HANDLERS.items()
    },
}
NUMBERS: Final[Mapping[str, Numbers]] = {
    "spec.securityContext.runAsUser": _ID,
    "spec.securityContext.runAsGroup": _ID,
    "spec.securityContext.fsGroup": _ID,
    "spec.terminationGracePeriodSeconds": _SECONDS,
    **{
        f"spec.{section}[].{path}": numbers
        for section in ("containers", "initContainers")
        for path, numbers in _OF_A_CONTAINER.items()
    },
}
"""The fields of a pod template in which a placeholder becomes a number."""
SERVICE_NUMBERS: Final[Mapping[str, Numbers]] = {
    "spec.ports[].port": Numbers(1, 65_535, mixed=True),
    "spec.ports[].nodePort": Numbers(1, 65_535, mixed=True),
    "spec.ports[].targetPort": _NAMED_PORT,
}
"""Placeholders of the template of Services; no pod template has a field of these names."""
_NUMBERS = {**NUMBERS, **SERVICE_NUMBERS}

_NAMES: Final = frozenset(
    {"spec.containers[].name", "spec.initContainers[].name", "spec.volumes[].name"}
)
"""By these names pods and templates are compared: they are no instance's own."""


class UnfilledError(ValueError):
    """A placeholder that cannot be filled in, in words for the TApp's author."""


@dataclass(frozen=True)
class Slot:
    """A text with placeholders."""

    path: Path  # where it stands
    texts: tuple[str, ...]  # what is around the placeholders; one more than there are of these
    names: tuple[str, ...]  # the placeholders, without `$(tapp.` and `)`
    numbers: Numbers | None = None  # what the field takes, where it takes numbers

    def filled(self, own: Mapping[str, str]) -> str | int:
        """The text with an instance's own values. UnfilledError: the field takes no such value."""
        parts = [self.texts[0]]
        for name, text in zip(self.names, self.texts[1:], strict=True):
            parts += (own[name], text)
        found = "".join(parts)
        if self.numbers is not None:
            return self._number(found, self.numbers)
        if self.path[:2] == ("metadata", "labels") and not is_label_value(found):
            wrong = f"{written(self.path)} becomes {_shown(found)}"
            raise UnfilledError(f"{wrong}: a label takes at most 63 letters, digits, '-_.'")
        return found

    def _number(self, found: str, numbers: Numbers) -> str | int:
        if _NUMBER.fullmatch(found) and numbers.least <= int(found) <= numbers.most:
            return int(found)
        if numbers.named and found.isascii() and not is_whole(found):
            return found
        range_ = f"a whole number from {numbers.least} to {numbers.most}"
        raise UnfilledError(f"{written(self.path)} becomes {_shown(found)}: it takes {range_}")


def _shown(text: str) -> str:
    return quoted(text, 40)


@dataclass(frozen=True)
class Slots:
    """All texts with placeholders in a template; false where it has none."""

    names: tuple[str, ...]  # what they stand for, each once, in a fixed order
    tree: Mapping[str | int, Any]  # the slots by the parts of their paths
    where: Mapping[str, str]  # name -> the first field that has it
    counts: Mapping[str, int]  # name -> how often it stands there
    size: int = 0  # bytes of the template as JSON

    def __bool__(self) -> bool:
        return bool(self.tree)

    @property
    def bytes(self) -> int:
        """Bytes that filling in this template once counts as.

        These are the length of the template and `PLACEHOLDER_BYTES` for each placeholder.
        """
        return self.size + PLACEHOLDER_BYTES * sum(self.counts.values())

    @property
    def keys(self) -> set[str]:
        """The keys of the values that it reads."""
        return {name.removeprefix(VALUES) for name in self.names if name.startswith(VALUES)}

    def filled(self, body: Any, own: Mapping[str, str]) -> Any:
        """The template with what an instance has; it shares with `body` what has no placeholders.

        Args:
            body: the template in which these were found.
            own: name -> text, for all `names`.

        Raises:
            UnfilledError: a field takes no such value, or they are too long.
        """
        if sum([count * len(own[name]) for name, count in self.counts.items()]) > MOST:
            raise UnfilledError(f"its placeholders become more than {MOST} characters")
        return _filled(body, self.tree, own)


NO_SLOTS: Final = Slots((), {}, {}, {})
PLACEHOLDER_BYTES: Final = 100  # Filling in one placeholder takes as long as 100 bytes of text
MOST: Final = 32 << 10  # Characters that placeholders may become in one template
LARGEST: Final = 64 << 10  # Bytes with placeholders: thousands of instances may have one each


def _filled(value: Any, tree: Any, own: Mapping[str, str]) -> Any:
    if isinstance(tree, Slot):
        return tree.filled(own)
    copy = value.copy()
    for key, branch in tree.items():
        copy[key] = _filled(copy[key], branch, own)
    return copy


def placeholders_in(body: Any) -> Slots:
    """The placeholders of a pod template, or of a claim template.

    Raises UnfilledError: one is none that there is, or stands where none may; or nothing can be
    made of the template, because it is nested too deeply.
    """
    if is_too_deep(body):
        raise UnfilledError(f"it is nested more than {DEEPEST} levels deep")
    text = msgspec.json.encode(body)
    if BEGIN.encode() not in text:
        return NO_SLOTS
    if len(text) > LARGEST:
        raise UnfilledError(
            f"it has placeholders, and {len(text)} bytes: each instance would have its own; "
            f"at most {LARGEST} may be filled in (put the rest into a ConfigMap)"
        )
    tree: dict[str | int, Any] = {}
    where: dict[str, str] = {}
    counts = Counter[str]()
    for slot in _slots(body, ()):
        branch = tree
        for part in slot.path[:-1]:
            branch = branch.setdefault(part, {})
        branch[slot.path[-1]] = slot
        counts.update(slot.names)
        for name in slot.names:
            if name not in where:
                where[name] = written(slot.path)
    return Slots(tuple(sorted(where)), tree, where, counts, len(text)) if tree else NO_SLOTS


def length_of(body: Any) -> int:
    """Returns the length of a template as JSON, in bytes."""
    return len(msgspec.json.encode(body))


def _slots(value: Any, path: Path) -> Iterator[Slot]:
    if isinstance(value, str):
        if BEGIN in value:
            yield _slot(value, path)
    elif isinstance(value, dict):
        for key, item in value.items():
            if BEGIN in key:
                raise UnfilledError(f"{written(path)}: the key {_shown(key)} is never filled in")
            yield from _slots(item, (*path, key))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _slots(item, (*path, index))


def _slot(text: str, path: Path) -> Slot:
    kind = "".join("[]" if isinstance(part, int) else f".{part}" for part in path)[1:]
    if kind in _NAMES or path == ("metadata", "name"):
        raise UnfilledError(f"{written(path)} is {_shown(text)}: this name is never filled in")
    texts, names, end = [""], list[str](), 0
    for found in _FOUND.finditer(text):
        texts[-1] += text[end : found.start()]
        end, name = found.end(), found[1]
        if name is None and found[0].startswith("$$"):
            texts[-1] += BEGIN
        elif name is None:
            raise UnfilledError(f"{written(path)}: a placeholder is not closed: {_shown(text)}")
        elif not _NAME.fullmatch(name):
            raise UnfilledError(f"{written(path)}: there is no placeholder {_shown(found[0])}")
        else:
            names.append(name)
            texts.append("")
    texts[-1] += text[end:]
    numbers = _NUMBERS.get(kind)
    if numbers is not None and not numbers.mixed and texts != ["", ""]:
        said = f"it takes a number, so write nothing but one placeholder, not {_shown(text)}"
        raise UnfilledError(f"{written(path)}: {said}")
    return Slot(path, tuple(texts), tuple(names), numbers)


def written(path: Path) -> str:
    """A path for a person: `spec.containers[0].image`."""
    parts = [f"[{part}]" if isinstance(part, int) else f".{short(part)}" for part in path]
    return short("".join(parts)[1:])
