"""Placeholders in templates: finds them, checks the fields that have them, and fills them in.

A placeholder stands for a text of the instance:

- `$(tapp.index)`: the number of the instance.
- `$(tapp.name)`: the name of its pod.
- `$(tapp.namespace)`: the namespace.
- `$(tapp.values.KEY)`: the instance's value with this key.

`$$(tapp.` stands for the text `$(tapp.`. A filled-in text is not searched for placeholders again.
Kubernetes' own `$(VAR)` stays unchanged.

`placeholders_in` finds the placeholders of a template once, as a tree of paths. For each instance,
`Slots.filled` then copies only the parts of the template on these paths.
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
# Beginning of the names of placeholders that read a value.
VALUES: Final = "values."
# Regular expression of a text that consists of one placeholder, which may stand for a number.
WHOLE: Final = rf"\$\(tapp\.(index|values\.{VALUE_KEY})\)"
# Regular expression of any placeholder.
ANY: Final = rf"\$\(tapp\.(index|name|namespace|values\.{VALUE_KEY})\)"

_FOUND = re.compile(r"\$\$\(tapp\.|\$\(tapp\.([^()]*)\)|\$\(tapp\.")
_NAME = re.compile(rf"index|name|namespace|values\.{VALUE_KEY}")
_NUMBER = re.compile(r"0|[1-9][0-9]{0,9}")

Path = tuple[str | int, ...]


class Numbers(NamedTuple):
    """The values that a field accepts if it needs a number.

    `least` and `most` are the smallest and the largest number.
    """

    least: int  # Smallest number.
    most: int  # Largest number.
    named: bool = False  # True if the field also accepts a name.
    mixed: bool = False  # True if a placeholder may have text around it (`3000$(tapp.index)`).


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
# Path of each field of a pod template that needs a number -> the numbers that the field accepts. A
# text that fills such a field is converted to a number.
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
# Path of each field of a Service template that needs a number -> the numbers that the field
# accepts. No pod template has fields with these paths.
SERVICE_NUMBERS: Final[Mapping[str, Numbers]] = {
    "spec.ports[].port": Numbers(1, 65_535, mixed=True),
    "spec.ports[].nodePort": Numbers(1, 65_535, mixed=True),
    "spec.ports[].targetPort": _NAMED_PORT,
}
_NUMBERS = {**NUMBERS, **SERVICE_NUMBERS}

# Fields with names by which the service compares templates and pods. They must be equal in all
# instances, so they may not have placeholders.
_NAMES: Final = frozenset(
    {"spec.containers[].name", "spec.initContainers[].name", "spec.volumes[].name"}
)


class UnfilledError(ValueError):
    """A placeholder is invalid or cannot be filled in; the message is for the TApp's author."""


@dataclass(frozen=True)
class Slot:
    """A field of a template whose text contains placeholders."""

    path: Path  # Path of the field in the template.
    # The parts of the text before, between and after the placeholders. There is one part more than
    # there are placeholders, and a part may be empty.
    texts: tuple[str, ...]
    names: tuple[str, ...]  # Names of the placeholders, without `$(tapp.` and `)`.
    # The numbers that the field accepts; None if it accepts any text.
    numbers: Numbers | None = None

    def filled(self, own: Mapping[str, str]) -> str | int:
        """Returns the value of the field, with the texts of an instance in place of the
        placeholders.

        The value is a number if the field needs a number. Raises UnfilledError if the field does
        not accept the value. `own` maps the name of a placeholder to the text of the instance.
        """
        parts = [self.texts[0]]
        for name, text in zip(self.names, self.texts[1:], strict=True):
            parts += (own[name], text)
        found = "".join(parts)
        if self.numbers is not None:
            return self._number(found, self.numbers)
        if self.path[:2] == ("metadata", "labels") and not is_label_value(found):
            wrong = f"{written(self.path)} becomes {_shown(found)}"
            allowed = "at most 63 letters, digits, '-', '_' and '.'"
            raise UnfilledError(f"{wrong}, and a label value has {allowed}")
        return found

    def _number(self, found: str, numbers: Numbers) -> str | int:
        """Returns the value of a field that needs a number: the number, or a name if names are
        accepted.

        Raises UnfilledError if the field does not accept the value.

        Args:
            found: the filled-in text.
            numbers: the numbers that the field accepts.
        """
        if _NUMBER.fullmatch(found) and numbers.least <= int(found) <= numbers.most:
            return int(found)
        if numbers.named and found.isascii() and not is_whole(found):
            return found
        range_ = f"a whole number from {numbers.least} to {numbers.most}"
        raise UnfilledError(f"{written(self.path)} becomes {_shown(found)}, and has to be {range_}")


def _shown(text: str) -> str:
    """Returns a text in quotation marks for a message; a long text is shortened."""
    return quoted(text, 40)


@dataclass(frozen=True)
class Slots:
    """All placeholders of a template, with the fields that have them.

    `bool(slots)` is False if the template has no placeholders.
    """

    names: tuple[str, ...]  # Names of the placeholders, each once, sorted.
    # Nested mappings whose keys are the parts of the paths, and whose leaves are `Slot` objects.
    tree: Mapping[str | int, Any]
    where: Mapping[str, str]  # Placeholder name -> path of the first field that has it, as text.
    counts: Mapping[str, int]  # Placeholder name -> how often the template has it.
    size: int = 0  # Length of the template as JSON, in bytes.

    def __bool__(self) -> bool:
        return bool(self.tree)

    @property
    def bytes(self) -> int:
        """The size of the filled-in template of one instance, in bytes, which stands for the work.

        It is the length of the template plus `PLACEHOLDER_BYTES` for each placeholder.
        """
        return self.size + PLACEHOLDER_BYTES * sum(self.counts.values())

    @property
    def keys(self) -> set[str]:
        """The keys of `spec.values` and `spec.defaultValues` that the template reads."""
        return {name.removeprefix(VALUES) for name in self.names if name.startswith(VALUES)}

    def filled(self, body: Any, own: Mapping[str, str]) -> Any:
        """Returns a copy of a template with the texts of an instance in place of the placeholders.

        The copy shares all parts without placeholders with `body`.

        Args:
            body: the template in which these placeholders were found.
            own: placeholder name -> text of the instance, for all `names`.

        Raises:
            UnfilledError: if a field does not accept its text, or if the texts are longer than
                `MOST` characters in total.
        """
        if sum([count * len(own[name]) for name, count in self.counts.items()]) > MOST:
            raise UnfilledError(
                f"its placeholders are filled in with more than {MOST} characters; use shorter "
                "texts"
            )
        return _filled(body, self.tree, own)


NO_SLOTS: Final = Slots((), {}, {}, {})
# Bytes that count for each placeholder in `Slots.bytes`, because filling in one placeholder takes
# as long as copying this many bytes of text.
PLACEHOLDER_BYTES: Final = 100
# Most characters of all texts that fill the placeholders of one template for one instance.
MOST: Final = 32 << 10
# Most bytes of a template with placeholders, because thousands of instances may each get a copy.
LARGEST: Final = 64 << 10


def _filled(value: Any, tree: Any, own: Mapping[str, str]) -> Any:
    """Returns a copy of a part of a template, with its placeholders filled in.

    Args:
        value: the part of the template.
        tree: the placeholders in this part: a branch of `Slots.tree`.
        own: placeholder name -> text of the instance.
    """
    if isinstance(tree, Slot):
        return tree.filled(own)
    copy = value.copy()
    for key, branch in tree.items():
        copy[key] = _filled(copy[key], branch, own)
    return copy


def placeholders_in(body: Any) -> Slots:
    """Finds the placeholders of a pod template, claim template or Service template.

    Raises UnfilledError if a placeholder is unknown or in a field that may have none. It is also
    raised if a template with placeholders has more than `LARGEST` bytes, or if a template is nested
    too deeply. `body` is the template as its author wrote it.
    """
    if is_too_deep(body):
        raise UnfilledError(f"it is nested more than {DEEPEST} levels deep")
    text = msgspec.json.encode(body)
    if BEGIN.encode() not in text:
        return NO_SLOTS
    if len(text) > LARGEST:
        raise UnfilledError(
            f"it has placeholders and {len(text)} bytes, and each instance gets a copy; "
            f"at most {LARGEST} bytes may be filled in (put the rest into a ConfigMap)"
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
    """Yields the fields with placeholders in a part of a template.

    Raises UnfilledError if a placeholder is unknown, is in the key of a mapping, or is in a field
    that may have none.

    Args:
        value: the part of the template.
        path: the path of the part in the template.
    """
    if isinstance(value, str):
        if BEGIN in value:
            yield _slot(value, path)
    elif isinstance(value, dict):
        for key, item in value.items():
            if BEGIN in key:
                raise UnfilledError(
                    f"{written(path)}: placeholders in keys are not filled in, as in {_shown(key)}"
                )
            yield from _slots(item, (*path, key))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _slots(item, (*path, index))


def _slot(text: str, path: Path) -> Slot:
    """Splits the text of a field into its placeholders and the text around them.

    Raises UnfilledError if a placeholder is unknown or in a field that may have none.

    Args:
        text: the text of the field.
        path: the path of the field in the template.
    """
    kind = "".join("[]" if isinstance(part, int) else f".{part}" for part in path)[1:]
    if kind in _NAMES or path == ("metadata", "name"):
        raise UnfilledError(
            f"{written(path)} is {_shown(text)}: placeholders in this name are not filled in"
        )
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
        said = f"a number is required: write one placeholder and nothing else, not {_shown(text)}"
        raise UnfilledError(f"{written(path)}: {said}")
    return Slot(path, tuple(texts), tuple(names), numbers)


def written(path: Path) -> str:
    """Returns a path as text, such as `spec.containers[0].image`."""
    parts = [f"[{part}]" if isinstance(part, int) else f".{short(part)}" for part in path]
    return short("".join(parts)[1:])
