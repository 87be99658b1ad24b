"""Reads from a request which kinds of children its CompositeController declares.

The response must not contain an object of a kind that the controller does not declare:
Metacontroller would create the object and never observe it. Services and growing claims are
components that a user may leave out of the installation.
"""

import msgspec
from msgspec import Raw

from hooks.wire.decode import as_deep_as_readable
from tapp.words.kinds import CLAIM, PLAIN, REVISION, Kind
from tapp.world import NOTHING_MORE, Declared

_NEVER_UPDATED = ("", "OnDelete")


class _Strategy(msgspec.Struct, frozen=True, gc=False):
    """The update strategy of a kind of children."""

    method: str | None = None


class _Child(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """A kind of children that a CompositeController declares, an entry of `childResources`."""

    api_version: str | None = None
    resource: str | None = None
    update_strategy: _Strategy | None = None


class _Spec(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """The part of a CompositeController's spec that declares its children."""

    child_resources: list[_Child] | None = None


class _Controller(msgspec.Struct, frozen=True, gc=False):
    """A CompositeController."""

    spec: _Spec | None = None


_decode = msgspec.json.Decoder(_Controller | None).decode


def declared(controller: Raw) -> Declared:
    """Returns the kinds of children that a CompositeController declares, beyond pods and claims.

    `controller` is the JSON of the CompositeController, or null. If it cannot be read, no further
    kinds count as declared.
    """
    try:
        found = as_deep_as_readable(_decode, controller)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return NOTHING_MORE
    if found is None or found.spec is None:
        return NOTHING_MORE
    methods = {
        (child.api_version, child.resource): (child.update_strategy or _Strategy()).method or ""
        for child in found.spec.child_resources or ()
    }

    def method(kind: Kind) -> str | None:
        return methods.get((kind.api_version, kind.resource))

    return Declared(
        plain=frozenset(kind for kind in PLAIN if method(kind) == "InPlace"),
        revisions=method(REVISION) in _NEVER_UPDATED,
        growing_claims=method(CLAIM) == "InPlace",
    )
