"""The hook protocol: request bytes, and what may stand in an answer.

Requests are put together from the JSON that the cache keeps per object, so a thousand children are
not encoded again at every sync. Source: Metacontroller's pkg/controller/composite/api and
pkg/hooks; in strict mode an answer with unknown keys is refused. (Metacontroller refuses
duplicate ones, too, which no encoder writes.)
"""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache

import msgspec

from simulator.metacontroller.cache import Entry
from simulator.metacontroller.composite import Hook
from simulator.metacontroller.hook_client import TOO_MANY, Answer, HookError
from simulator.objects.kinds import Kind
from simulator.objects.objects import Json, Object, namespace_of

SYNC_FIELDS = ("status", "children", "resyncAfterSeconds", "finalized")
DECORATE_FIELDS = (
    "labels", "annotations", "status", "attachments", "resyncAfterSeconds", "finalized",
)  # fmt: skip

_STRINGS = dict[str, str | None] | None

Group = Mapping[Kind, Iterable[Entry]]


class TooManyRequestsError(HookError):
    """429: the hook asks to be left alone for a while."""

    def __init__(self, seconds: float) -> None:
        super().__init__(f"too many requests, retry after {seconds:g} s")
        self.seconds = seconds


class _HeadMeta(msgspec.Struct):
    name: str = ""
    namespace: str = ""
    labels: dict[str, str] | None = None


class _Head(msgspec.Struct):
    apiVersion: str  # noqa: N815
    kind: str
    metadata: _HeadMeta | None = None


@dataclass(frozen=True, slots=True)
class Desired:
    """One child as the hook wants it; `raw` is its JSON, byte for byte."""

    api_version: str
    kind: str
    name: str
    namespace: str
    labels: dict[str, str]
    raw: bytes

    @property
    def key(self) -> str:
        """Return the name that identifies the child among those of its kind."""
        return f"{self.namespace}/{self.name}" if self.namespace else self.name

    def decode(self) -> Object:
        """Return the whole object, with its namespace."""
        obj: Object = msgspec.json.decode(self.raw)
        if self.namespace and namespace_of(obj) != self.namespace:
            obj["metadata"] = {**(obj.get("metadata") or {}), "namespace": self.namespace}
        return obj


@dataclass(frozen=True, slots=True)
class SyncAnswer:
    """A decoded answer of the sync or finalize hook."""

    status: Object
    children: list[Desired]
    resync_after: float
    finalized: bool


@dataclass(frozen=True, slots=True)
class Decoration:
    """A decoded answer of a DecoratorController's sync hook.

    A label or annotation that is None is to be removed; a status that is None stays as it is.
    """

    labels: dict[str, str | None]
    annotations: dict[str, str | None]
    status: Object | None
    resync_after: float


def _group(name: str, group: Group, parent: Object, version: str) -> Iterable[bytes]:
    yield b',"%s":{' % name.encode()
    home = namespace_of(parent)
    separator = b""
    for kind in sorted(group, key=lambda kind: kind.hook_key):
        yield separator + b'"%s":{' % kind.hook_key.encode()
        separator, comma = b",", b""
        for entry in group[kind]:
            key = entry.key
            if version != "v2" and home:
                if namespace_of(entry.obj) != home:
                    continue
                key = key.partition("/")[2]
            yield comma + b'"%s":' % key.encode()
            yield entry.json
            comma = b","
        yield b"}"
    yield b"}"


def sync_request(
    hook: Hook, controller: bytes, parent: Entry, groups: tuple[Group, Group], *, finalizing: bool
) -> list[bytes]:
    """Build the body for sync and finalize, in parts; `groups` are children and related."""
    children, related = groups
    return [
        b'{"controller":' + controller + b',"parent":',
        parent.json,
        *_group("children", children, parent.obj, hook.version),
        *_group("related", related, parent.obj, hook.version),
        b',"finalizing":true}' if finalizing else b',"finalizing":false}',
    ]


def customize_request(controller: bytes, parent: Entry) -> list[bytes]:
    """Build the body for customize."""
    return [b'{"controller":' + controller + b',"parent":', parent.json, b"}"]


def decorate_request(controller: bytes, decorated: Entry) -> list[bytes]:
    """Build the body for a decorator that has no attachments, customize or finalize hook."""
    return [
        b'{"controller":' + controller + b',"object":',
        decorated.json,
        b',"attachments":{},"related":{},"finalizing":false}',
    ]


def check_status(answer: Answer) -> None:
    """Raise unless the hook answered 200."""
    if answer.status == TOO_MANY:
        after = answer.headers.get("retry-after", "")
        raise TooManyRequestsError(float(after) if after.isascii() and after.isdigit() else 0.0)
    if answer.status != 200:  # noqa: PLR2004
        text = answer.body.decode(errors="replace")
        raise HookError(f"unsupported status code: {answer.status} body: {text}")


def decode_object(body: bytes, known: tuple[str, ...], *, strict: bool) -> dict[str, msgspec.Raw]:
    """Split a JSON object into its fields; refuse what strict mode refuses."""
    with _unmarshalling():
        fields = msgspec.json.decode(body, type=dict[str, msgspec.Raw] | None) or {}
    unknown = sorted(set(fields) - set(known))
    if strict and unknown:
        raise HookError(f'strict validation failed: unknown field "{unknown[0]}"')
    return fields


@contextmanager
def _unmarshalling() -> Iterator[None]:
    """An answer that is none of a hook, told in Metacontroller's words."""
    try:
        yield
    except (msgspec.DecodeError, ValueError) as error:
        raise HookError(f"can't unmarshal webhookResponse: {error}") from error


def decode_sync(body: bytes, hook: Hook, home: str) -> SyncAnswer:
    """Decode an answer of sync or finalize; children without a namespace get `home`."""
    fields = decode_object(body, SYNC_FIELDS, strict=hook.strict)
    with _unmarshalling():
        status: Object | None = _field(fields, "status", dict[str, Json] | None)
        items: list[msgspec.Raw] | None = _field(fields, "children", list[msgspec.Raw] | None)
        resync: float | None = _field(fields, "resyncAfterSeconds", float | None)
        finalized: bool | None = _field(fields, "finalized", bool | None)
        children = [_child(bytes(raw), home) for raw in items or []]
    return SyncAnswer(status or {}, children, resync or 0.0, bool(finalized))


def _field(fields: Mapping[str, msgspec.Raw], name: str, shape: Json) -> Json:
    raw = fields.get(name)
    return None if raw is None else msgspec.json.decode(raw, type=shape)


@lru_cache(maxsize=4096)
def _child(raw: bytes, home: str) -> Desired:
    """Read a child's head; the same texts come again with every sync."""
    if raw == b"null":
        raise HookError("null in children: the real Metacontroller panics")
    head = msgspec.json.decode(raw, type=_Head)
    metadata = head.metadata or _HeadMeta()
    namespace = metadata.namespace or home
    labels = metadata.labels or {}
    return Desired(head.apiVersion, head.kind, metadata.name, namespace, labels, raw)


def decode_decorate(body: bytes, hook: Hook) -> Decoration:
    """Decode an answer of a decorator's sync hook; attachments are not modelled."""
    fields = decode_object(body, DECORATE_FIELDS, strict=hook.strict)
    with _unmarshalling():
        labels: dict[str, str | None] | None = _field(fields, "labels", _STRINGS)
        annotations: dict[str, str | None] | None = _field(fields, "annotations", _STRINGS)
        status: Object | None = _field(fields, "status", dict[str, Json] | None)
        attachments: list[Json] | None = _field(fields, "attachments", list[Json] | None)
        resync: float | None = _field(fields, "resyncAfterSeconds", float | None)
        _field(fields, "finalized", bool | None)  # means nothing without a finalize hook
    if attachments:
        raise HookError("attachments are not modelled")
    return Decoration(labels or {}, annotations or {}, status, resync or 0.0)


def decode_customize(body: bytes, hook: Hook) -> list[Object]:
    """Decode an answer of customize: its rules."""
    fields = decode_object(body, ("relatedResources",), strict=hook.strict)
    with _unmarshalling():
        return _field(fields, "relatedResources", list[dict[str, Json]] | None) or []
