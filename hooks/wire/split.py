"""A request's bytes, split into the parent, each pod's own JSON, the other children and the rest.

What repeats from request to request is the pods, byte for byte, all but a few. `split` therefore
walks through the text pod by pod: where a pod is expected to be the same, the text of that length
is taken and compared by its hash, and only what differs is parsed. JSON is self-delimiting: a text
that begins where a value begins, and is a whole value, is that value. So a walk that starts at a
pod's key goes right as long as each piece is a known key with its pod's text, or parses by itself;
in any doubt the whole request is parsed instead.
"""

import re
from collections.abc import Mapping

import msgspec
from msgspec import Raw

from hooks.wire.decode import CLAIMS, PODS, REVISIONS, WireError, decoded
from hooks.wire.memo import Known, Memo, Recalled
from hooks.wire.observe import Seen

_MARK = b'"Pod.v1":{'
_TRIES = 4
"""How many places are tried as the end of a pod's text that has changed."""
_FEW = 8
"""The walk goes on as long as fewer than one in so many pods have changed."""
_REST = 4
"""What is left behind it is parsed on its own, in a copy, if it is less than such a part of all."""
_SMALL = 1 << 18
"""Bytes whose copy costs nothing."""
_SAID_AGAIN = re.compile(rb'"children"|"Pod\.v1"|\\u00(?:2[eE]|31|[567])').search
"""What must not stand behind the last known pod: Go escapes no letter, digit or dot."""


class _Head(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    parent: dict[str, Raw]
    children: Raw
    controller: Raw = Raw(b"null")


class _Children(msgspec.Struct, frozen=True):
    pods: dict[str, Raw] | None = msgspec.field(name=PODS, default=None)
    claims: dict[str, Raw] | None = msgspec.field(name=CLAIMS, default=None)
    revisions: dict[str, Raw] | None = msgspec.field(name=REVISIONS, default=None)


class _OnlyChildren(_Children, frozen=True, forbid_unknown_fields=True):
    pass


class _Pods(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    pods: dict[str, Raw] = msgspec.field(name=PODS)


class _Tail(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    children: _Pods
    related: dict[str, dict[str, Raw]] | None = None
    finalizing: Raw = Raw(b"null")


class _Request(msgspec.Struct, frozen=True):
    parent: dict[str, Raw]
    children: Raw
    related: dict[str, dict[str, Raw]] | None = None
    controller: Raw = Raw(b"null")


_decode_request = msgspec.json.Decoder(_Request).decode
_decode_head = msgspec.json.Decoder(_Head).decode
_decode_tail = msgspec.json.Decoder(_Tail).decode
_decode_children = msgspec.json.Decoder(_Children).decode
_decode_only_children = msgspec.json.Decoder(_OnlyChildren).decode
_decode_kinds = msgspec.json.Decoder(dict[str, Raw]).decode


class Pieces(msgspec.Struct, frozen=True):
    """A request in pieces.

    Attributes:
        parent: the parent's own JSON, by field.
        same: pods that are known, with the place of their text in the request.
        pods: key in the request -> JSON, of all other pods.
        claims: key in the request -> JSON.
        revisions: key in the request -> JSON.
        related: kind -> key -> JSON.
        recalled: what was known of this parent's TApp.
        controller: JSON of the CompositeController that asks.
    """

    parent: dict[str, Raw]
    same: list[tuple[Known[Seen], int]]
    pods: dict[str, Raw]
    claims: Mapping[str, Raw]
    revisions: Mapping[str, Raw]
    related: dict[str, dict[str, Raw]] | None
    recalled: Recalled
    controller: Raw


def split(body: bytes, memo: Memo) -> Pieces:
    """Splits a request.

    Raises:
        WireError: it is not one of Metacontroller's.
    """
    return _walked(body, memo) or _parsed(body, memo)


def _parsed(body: bytes, memo: Memo) -> Pieces:
    """All of the request, parsed."""
    request = decoded(_decode_request, body, "")
    try:
        children: _Children = _decode_only_children(request.children)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        _refuse_other_kinds(request.children)
        children = decoded(_decode_children, request.children, "children")
    recalled = memo.recall(request.parent)
    return Pieces(
        parent=request.parent,
        same=[],
        pods=children.pods or {},
        claims=children.claims or {},
        revisions=children.revisions or {},
        related=request.related,
        recalled=recalled,
        controller=request.controller,
    )


def _refuse_other_kinds(children: Raw) -> None:
    for kind, objects in decoded(_decode_kinds, children, "children").items():
        if kind not in (PODS, CLAIMS, REVISIONS) and bytes(objects).strip() not in (b"{}", b"null"):
            raise WireError(
                f"children[{kind!r}]",
                "this hook manages only pods, claims and revisions, and would delete these; "
                "remove the kind from the CompositeController's childResources",
            )


def _walked(body: bytes, memo: Memo) -> Pieces | None:
    """The same with a walk over the known pods; None where it does not come to its end."""
    start = body.find(_MARK) + len(_MARK)
    if start < len(_MARK):
        return None
    try:
        head = _decode_head(body[:start] + b"}}}")
        if not bytes(head.children).endswith(_MARK + b"}}"):
            return None  # the mark is part of something else
        recalled = memo.recall(head.parent)
        if not recalled.pods:
            return None
        same, changed, at = _walk(body, start, recalled.pods)
        rest = len(body) - at
        if rest > max(_SMALL, len(body) // _REST) or _SAID_AGAIN(body, at):
            return None
        tail = _decode_tail(b'{"children":{' + _MARK + body[at:])
        children: _OnlyChildren = _decode_only_children(head.children)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    pods = {**changed, **tail.children.pods}
    keys = {known.value.key for known, _ in same}
    if len(keys | pods.keys()) < len(same) + len(changed) + len(tail.children.pods):
        return None  # a key that stands there twice
    return Pieces(
        parent=head.parent,
        same=same,
        pods=pods,
        claims=children.claims or {},
        revisions=children.revisions or {},
        related=tail.related,
        recalled=recalled,
        controller=head.controller,
    )


def _walk(
    body: bytes, at: int, known: Mapping[bytes, Known[Seen]]
) -> tuple[list[tuple[Known[Seen], int]], dict[str, Raw], int]:
    """From the first pod's key on: the known pods, those that changed, and where the walk ended.

    It ends where it does not know how to go on, or where so much has changed that parsing the rest
    at once takes less time.

    Raises:
        msgspec.DecodeError: a piece does not parse.
    """
    same: list[tuple[Known[Seen], int]] = []
    changed: dict[str, Raw] = {}
    stem = b',"' + next(iter(known)).rpartition(b"-")[0] + b"-"
    most = len(known) // _FEW + _FEW
    find = body.find
    while body.startswith(b'"', at):
        colon = find(b'":', at + 1)
        if colon < 0:
            break  # a body that was cut off
        item = known.get(body[at + 1 : colon])
        if item is not None:
            start = colon + 2
            end = start + item.length
            if hash(body[start:end]) == item.hash:
                same.append((item, start))
                if body.startswith(b',"', end):
                    at = end + 1
                    continue
                if not body.startswith(b"}", end):
                    raise msgspec.DecodeError("a pod that is followed by something else")
                return same, changed, end
        end = _end_of_piece(body, at, colon, stem, changed) if len(changed) < most else -1
        if end < 0:
            break
        at = end + 1
    return same, changed, at


def _end_of_piece(body: bytes, at: int, colon: int, stem: bytes, changed: dict[str, Raw]) -> int:
    """Where the comma stands before the next instance's pod; -1 where that is not found.

    What stands there until then is added to `changed`.
    """
    end = colon
    for _ in range(_TRIES):
        end = body.find(stem, end + 1)
        if end < 0:
            return -1
        try:
            found = _decode_kinds(b"{" + body[at:end] + b"}")
        except msgspec.DecodeError:
            continue  # that was inside of the pod
        if changed.keys() & found.keys():
            raise msgspec.DecodeError("a pod that stands there twice")
        changed.update(found)
        return end
    return -1
