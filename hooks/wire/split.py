"""Splits a request into the fields of the parent, the JSON of each child, and the other fields.

Children are not parsed here. Between two requests most pods keep the same JSON, and JSON that the
memo knows need not be parsed again (`memo.py`).
"""

from typing import Any, Generic, TypeVar

import msgspec
from msgspec import Raw

from hooks.wire.decode import WireError, decoded
from hooks.wire.memo import CachedApp, Memo
from tapp.words.kinds import EVERY, PLAIN, Kind

_FIELDS = [
    (kind.resource, dict[str, Raw] | None, msgspec.field(name=kind.key, default=None))
    for kind in EVERY
]
_Children = msgspec.defstruct("_Children", _FIELDS, frozen=True)
_OnlyChildren = msgspec.defstruct("_OnlyChildren", _FIELDS, frozen=True, forbid_unknown_fields=True)

C = TypeVar("C")


class _Request(msgspec.Struct, Generic[C], frozen=True):
    """A sync or finalize request whose parts are not decoded yet.

    `children` has the children by kind, or the JSON of all children.
    """

    parent: dict[str, Raw]
    children: C
    related: dict[str, dict[str, Raw]] | None = None
    controller: Raw = Raw(b"null")


_decode_request = msgspec.json.Decoder(_Request[Raw]).decode
_decode_whole = msgspec.json.Decoder(_Request[_OnlyChildren]).decode  # type: ignore[valid-type]
_decode_children = msgspec.json.Decoder(_Children).decode
_decode_kinds = msgspec.json.Decoder(dict[str, Raw]).decode


class Pieces(msgspec.Struct, frozen=True):
    """The parts of a request, most of them as JSON that is not parsed yet."""

    parent: dict[str, Raw]  # field of the parent -> JSON
    children: dict[Kind, dict[str, Raw]]  # each kind of `EVERY` -> key in the request -> JSON
    related: dict[str, dict[str, Raw]] | None  # kind -> key -> JSON
    cached: CachedApp  # the cached values of this parent's TApp
    controller: Raw  # JSON of the CompositeController that asks


def split(body: bytes, memo: Memo) -> Pieces:
    """Splits a request into its parts, and looks up the cached values of its TApp.

    Raises WireError if the body is no request of Metacontroller.
    """
    request, children = _read(body)
    return Pieces(
        parent=request.parent,
        children={kind: getattr(children, kind.resource) or {} for kind in EVERY},
        related=request.related,
        cached=memo.of(request.parent),
        controller=request.controller,
    )


def _read(body: bytes) -> tuple[_Request[Any], Any]:
    """Returns a request, and its children by kind.

    Raises WireError if the body is no request of Metacontroller.
    """
    try:
        # The scan of a large request takes a quarter of a sync, so usually there is only one.
        whole = _decode_whole(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        # The children are read by themselves, so that an error names its place in the request.
        request = decoded(_decode_request, body, "")
        _refuse_other_kinds(request.children)
        return request, decoded(_decode_children, request.children, "children")
    return whole, whole.children


_KEYS = [kind.key for kind in EVERY]
_OTHERS = " and ".join(f"{kind.name}s" for kind in PLAIN)


def _refuse_other_kinds(children: Raw) -> None:
    """Raises WireError if a request has children of a kind that this service does not manage.

    The response would leave these children out, and Metacontroller would delete them.
    """
    for kind, objects in decoded(_decode_kinds, children, "children").items():
        if kind not in _KEYS and bytes(objects).strip() not in (b"{}", b"null"):
            raise WireError(
                f"children[{kind!r}]",
                f"this hook manages pods, claims, revisions and {_OTHERS} alone, and would delete "
                "these; remove the kind from the CompositeController's childResources",
            )
