"""Decodes the JSON of a request into typed values; every failure is a `WireError`."""

import re
from collections.abc import Callable, Mapping
from typing import Any, Final, NoReturn, TypeVar

import msgspec
from msgspec import Raw

from tapp.words.kinds import Kind

LEVELS: Final = 200
"""Levels of nesting that are decoded; deeper values become null.

The API server accepts 10,000 levels wherever an object may have any content: in a TApp's status, in
an unknown field of a template, in a ControllerRevision. A decoder needs a frame of the stack for
each level. The limit is far above that of templates (`DEEPEST` in `tapp/kube/depth.py`), so a
template that was cut is never used."""

_BRACKET = re.compile(rb'[^][{}"]*+(?:"(?:[^"\\]++|\\.)*+"?[^][{}"]*+)*+(?:([][{}])|\Z)', re.DOTALL)
"""Matches text and whole strings up to the next bracket outside of strings, or up to the end.

The pattern always matches: a pattern that may fail would be tried again at each character."""


def shallow(text: bytes) -> bytes:
    """Returns a JSON text in which everything nested deeper than `LEVELS` is replaced by null.

    The time is linear in the length of the text. An invalid text stays invalid, unless the error is
    in a replaced part.
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
    """A request that Metacontroller would not send, with the path of the error."""

    def __init__(self, path: str, message: str) -> None:
        """Stores the path and the message of the error.

        Args:
            path: the path of the invalid field, such as `parent.metadata.uid`; empty for the whole
                request.
            message: the mistake, and what to do about it.
        """
        super().__init__(f"{path}: {message}" if path else message)
        self.path = path
        self.message = message


def decoded(decode: Callable[[Any], T], raw: bytes | Raw, path: str) -> T:
    """Returns decoded JSON; parts that are nested too deeply are replaced by null.

    Raises WireError with the path of the error.

    Args:
        decode: decodes the text and raises msgspec.DecodeError if it is not valid.
        raw: the JSON text.
        path: the path of the text in the request, for an error.
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
    """Returns decoded JSON; if the text is nested too deeply, its `shallow` form is decoded.

    `decode` decodes the text, and its exceptions are not caught.
    """
    try:
        return decode(raw)
    except RecursionError:
        return decode(shallow(bytes(raw)))


def child_path(kind: Kind, key: str) -> str:
    """Returns the path of a child in the request, for an error.

    `key` is the key of the child among the children of its kind.
    """
    return f"children[{kind.key!r}][{key!r}]"


def check_identity(path: str, name: str, namespace: str | None, expected: str) -> None:
    """Raises WireError if a child has no name, or another namespace than its parent.

    Args:
        path: the path of the child in the request.
        name: the name of the child.
        namespace: the namespace of the child; None if it has none.
        expected: the namespace of the parent.
    """
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
    """Reads the children of a kind, and returns them by name.

    Raises WireError if a child has no name, has the name of another child, or cannot be read.

    Args:
        kind: the kind.
        texts: the JSON of the children, by their keys in the request.
        namespace: the namespace of the parent.
        read: returns name, namespace and value of a child, from its JSON and its path in the
            request.
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
    """Raises WireError for a child that has the same name as another child.

    `path` is the path of the child in the request.
    """
    raise WireError(f"{path}.metadata.name", f"{name!r} is in the request twice")
