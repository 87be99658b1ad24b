"""JSON of a request into typed values, and every way in which that can fail as one error."""

import re
from collections.abc import Callable, Mapping
from typing import Any, Final, NoReturn, TypeVar

import msgspec
from msgspec import Raw

from tapp.words.kinds import Kind

LEVELS: Final = 200
"""Levels of a text that are read, many more than of a template (`DEEPEST` in
`tapp/kube/depth.py`), so that what is cut off is never taken for the whole. The API server takes
10,000 wherever an object may hold anything: in a TApp's status, in a template's unknown field, in a
ControllerRevision. No decoder here does, because each level takes a frame of the stack."""

_BRACKET = re.compile(rb'[^][{}"]*+(?:"(?:[^"\\]++|\\.)*+"?[^][{}"]*+)*+(?:([][{}])|\Z)', re.DOTALL)
"""Text, with its strings, up to the next bracket that is in none, or to the end: where a search
finds nothing, it begins again at each character."""


def shallow(text: bytes) -> bytes:
    """The JSON with null for each object and list that lies more than `LEVELS` deep.

    Takes time in proportion to the text. What is no JSON stays none, but within what is cut off.
    """
    kept, level, end = list[bytes](), 0, 0
    for found in _BRACKET.finditer(text):
        if found[1] is None:
            break
        if found[1] in b"{[":
            level += 1
            if level == LEVELS + 1:
                kept += (text[end : found.start(1)], b"null")
                end = len(text)
        else:
            level -= 1
            if level == LEVELS:
                end = found.end()
    kept.append(text[end:])
    return b"".join(kept)


T = TypeVar("T")

_MISSING = re.compile(r"Object missing required field `(.+)`")


class WireError(ValueError):
    """A request that is not one of Metacontroller's."""

    def __init__(self, path: str, message: str) -> None:
        """`path` is where (`parent.metadata.uid`), `message` what is wrong, and what to do."""
        super().__init__(f"{path}: {message}" if path else message)
        self.path = path
        self.message = message


def decoded(decode: Callable[[Any], T], raw: bytes | Raw, path: str) -> T:
    """Decodes, and turns every way in which that can fail into one error with a path.

    Of what is nested too deeply to be read, the rest is. Raises WireError: it cannot be decoded.
    """
    try:
        return as_deep_as_readable(decode, raw)
    except msgspec.ValidationError as error:
        what, _, where = str(error).partition(" - at `$")
        where = path + where.rstrip("`")
        if missing := _MISSING.fullmatch(what):
            where, what = f"{where}.{missing[1]}", "is missing"
        raise WireError(where.lstrip("."), what) from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise WireError(path, f"is not JSON: {error}") from None


def as_deep_as_readable(decode: Callable[[Any], T], raw: bytes | Raw) -> T:
    """The result of `decode` for a text, or for its `shallow` form where it is too deep."""
    try:
        return decode(raw)
    except RecursionError:
        return decode(shallow(bytes(raw)))


def child_path(kind: Kind, key: str) -> str:
    """The path of a child in the request."""
    return f"children[{kind.key!r}][{key!r}]"


def check_identity(path: str, name: str, namespace: str | None, expected: str) -> None:
    """Raises a WireError for a child without a name, or of another namespace than its parent's."""
    if not name:
        raise WireError(f"{path}.metadata.name", "is empty")
    if namespace not in (expected, None):
        message = f"is {namespace!r}, but the parent is in {expected!r}"
        raise WireError(f"{path}.metadata.namespace", message)


def by_name(
    kind: Kind,
    texts: Mapping[str, Raw],
    namespace: str,
    read: Callable[[Raw, str], tuple[str, str | None, T]],
) -> dict[str, T]:
    """The children of a kind, by name.

    `texts` are by their keys in the request; `read` makes of a child's JSON and its path its name,
    its namespace, and what is to be kept of it. Raises WireError: one has no name, the name of
    another, or cannot be read.
    """
    found: dict[str, T] = {}
    for key, raw in texts.items():
        path = child_path(kind, key)
        name, place, item = read(raw, path)
        check_identity(path, name, place, namespace)
        if name in found:
            refuse_twice(path, name)
        found[name] = item
    return found


def refuse_twice(path: str, name: str) -> NoReturn:
    """Refuses a child whose name another one has."""
    raise WireError(f"{path}.metadata.name", f"{name!r} stands in the request twice")
