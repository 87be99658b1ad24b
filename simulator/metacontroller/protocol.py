"""The hook protocol: builds request bodies and decodes responses.

Request bodies are joined from the JSON that the cache has of each object, so a sync need not encode
a thousand children again. Of a child in a response, only the metadata is decoded. The complete
child is decoded if its text differs from the text that was applied last. Source: Metacontroller
4.17.2, pkg/controller/composite/api and pkg/hooks. In strict mode, a response with unknown keys is
refused. (Metacontroller also refuses duplicate keys; the simulator does not, because no JSON
encoder writes them.)
"""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache

import msgspec

from simulator.metacontroller.cache import Entry
from simulator.metacontroller.composite import Hook
from simulator.metacontroller.hook_client import TOO_MANY_REQUESTS, HookError, HttpResponse
from simulator.objects.kinds import Kind
from simulator.objects.objects import Json, Object, namespace_of

SYNC_FIELDS = ("status", "children", "resyncAfterSeconds", "finalized")
DECORATE_FIELDS = (
    "labels", "annotations", "status", "attachments", "resyncAfterSeconds", "finalized",
)  # fmt: skip

_OPTIONAL_STRINGS = dict[str, str | None] | None

Group = Mapping[Kind, Iterable[Entry]]


class TooManyRequestsError(HookError):
    """429: the hook asks Metacontroller to retry the sync after `retry_after` seconds."""

    def __init__(self, retry_after: float) -> None:
        super().__init__(f"too many requests, retry after {retry_after:g} s")
        self.retry_after = retry_after


class _ChildMetadata(msgspec.Struct):
    name: str = ""
    namespace: str = ""
    labels: dict[str, str] | None = None


class _ChildHead(msgspec.Struct):
    apiVersion: str  # noqa: N815
    kind: str
    metadata: _ChildMetadata | None = None


@dataclass(frozen=True, slots=True)
class DesiredChild:
    """One child in a hook's response; only its metadata is decoded.

    `raw` is the JSON of the complete child, byte for byte as in the response.
    """

    api_version: str
    kind: str
    name: str
    namespace: str
    labels: dict[str, str]
    raw: bytes

    @property
    def key(self) -> str:
        """The key of the child among children of its kind: `NAMESPACE/NAME`, or the name alone."""
        return f"{self.namespace}/{self.name}" if self.namespace else self.name

    def decode(self) -> Object:
        """Returns the complete child as an object, with its namespace filled in."""
        obj: Object = msgspec.json.decode(self.raw)
        if self.namespace and namespace_of(obj) != self.namespace:
            obj["metadata"] = {**(obj.get("metadata") or {}), "namespace": self.namespace}
        return obj


@dataclass(frozen=True, slots=True)
class SyncResponse:
    """A decoded response of the sync or finalize hook.

    Attributes:
        status: the new status of the parent.
        children: the desired children.
        resync_after: seconds until the next sync that the hook asks for; 0 for none.
        finalized: True if the finalizer can be removed.
    """

    status: Object
    children: list[DesiredChild]
    resync_after: float
    finalized: bool


@dataclass(frozen=True, slots=True)
class Decoration:
    """A decoded response of a DecoratorController's sync hook.

    Attributes: labels, annotations: the entries to set in the object; an entry with the value None
    is removed.
        status: the new status of the object; None leaves the status as it is.
        resync_after: seconds until the next sync that the hook asks for; 0 for none.
    """

    labels: dict[str, str | None]
    annotations: dict[str, str | None]
    status: Object | None
    resync_after: float


def _group(name: str, group: Group, parent: Object, version: str) -> Iterable[bytes]:
    yield b',"%s":{' % name.encode()
    parent_namespace = namespace_of(parent)
    separator = b""
    for kind in sorted(group, key=lambda kind: kind.hook_key):
        yield separator + b'"%s":{' % kind.hook_key.encode()
        separator, comma = b",", b""
        for entry in group[kind]:
            key = entry.key
            # Version v1 of the protocol drops objects outside the parent's namespace (Convert in
            # pkg/controller/common/api/v2/common.go) and uses bare names as keys.
            if version != "v2" and parent_namespace:
                if namespace_of(entry.obj) != parent_namespace:
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
    """Returns the body of a request to the sync or finalize hook, in parts that the caller joins.

    Args:
        hook: the hook; its version decides the keys of the objects in the request.
        controller: the JSON of the CompositeController.
        parent: the parent.
        groups: two mappings from kind to objects: the children, and the related objects.
        finalizing: True for the finalize hook, False for the sync hook.
    """
    children, related = groups
    return [
        b'{"controller":' + controller + b',"parent":',
        parent.json,
        *_group("children", children, parent.obj, hook.version),
        *_group("related", related, parent.obj, hook.version),
        b',"finalizing":true}' if finalizing else b',"finalizing":false}',
    ]


def customize_request(controller: bytes, parent: Entry) -> list[bytes]:
    """Returns the body of a request to the customize hook, in parts that the caller joins.

    `controller` is the JSON of the CompositeController.
    """
    return [b'{"controller":' + controller + b',"parent":', parent.json, b"}"]


def decorate_request(controller: bytes, decorated: Entry) -> list[bytes]:
    """Returns the body of a request to a DecoratorController's sync hook, in parts for joining.

    `controller` is the JSON of the DecoratorController, and `decorated` is the object to sync.
    """
    return [
        b'{"controller":' + controller + b',"object":',
        decorated.json,
        b',"attachments":{},"related":{},"finalizing":false}',
    ]


def check_status(response: HttpResponse) -> None:
    """Raises HookError if the HTTP status of a response is not 200.

    For 429, the error is a TooManyRequestsError with the seconds of the Retry-After header; 0 if
    the response lacks the header.
    """
    if response.status == TOO_MANY_REQUESTS:
        after = response.headers.get("retry-after", "")
        raise TooManyRequestsError(float(after) if after.isascii() and after.isdigit() else 0.0)
    if response.status != 200:  # noqa: PLR2004
        text = response.body.decode(errors="replace")
        raise HookError(f"unsupported status code: {response.status} body: {text}")


def decode_object(body: bytes, known: tuple[str, ...], *, strict: bool) -> dict[str, msgspec.Raw]:
    """Splits a JSON object into its fields, which stay encoded.

    `known` are the fields that the protocol has. In strict mode, an unknown field raises HookError.
    """
    with _unmarshalling():
        fields = msgspec.json.decode(body, type=dict[str, msgspec.Raw] | None) or {}
    unknown = sorted(set(fields) - set(known))
    if strict and unknown:
        raise HookError(f'strict validation failed: unknown field "{unknown[0]}"')
    return fields


@contextmanager
def _unmarshalling() -> Iterator[None]:
    """Turns a decoding error in the `with` block into a HookError with Metacontroller's message."""
    try:
        yield
    except (msgspec.DecodeError, ValueError) as error:
        raise HookError(f"can't unmarshal webhookResponse: {error}") from error


def decode_sync(body: bytes, hook: Hook, parent_namespace: str) -> SyncResponse:
    """Decodes the body of a response of the sync or finalize hook.

    Children without a namespace get `parent_namespace`. Raises HookError if the body is malformed.
    """
    fields = decode_object(body, SYNC_FIELDS, strict=hook.strict)
    with _unmarshalling():
        status: Object | None = _field(fields, "status", dict[str, Json] | None)
        items: list[msgspec.Raw] | None = _field(fields, "children", list[msgspec.Raw] | None)
        resync_after: float | None = _field(fields, "resyncAfterSeconds", float | None)
        finalized: bool | None = _field(fields, "finalized", bool | None)
        children = [_decode_child(bytes(raw), parent_namespace) for raw in items or []]
    return SyncResponse(status or {}, children, resync_after or 0.0, bool(finalized))


def _field(fields: Mapping[str, msgspec.Raw], name: str, shape: Json) -> Json:
    raw = fields.get(name)
    return None if raw is None else msgspec.json.decode(raw, type=shape)


@lru_cache(maxsize=4096)
def _decode_child(raw: bytes, parent_namespace: str) -> DesiredChild:
    """Decodes the metadata of a desired child.

    A child without a namespace gets `parent_namespace`. Results are cached, because the responses
    of later syncs contain the same texts again.
    """
    if raw == b"null":
        raise HookError("null in children: the real Metacontroller panics")
    head = msgspec.json.decode(raw, type=_ChildHead)
    metadata = head.metadata or _ChildMetadata()
    namespace = metadata.namespace or parent_namespace
    labels = metadata.labels or {}
    return DesiredChild(head.apiVersion, head.kind, metadata.name, namespace, labels, raw)


def decode_decorate(body: bytes, hook: Hook) -> Decoration:
    """Decodes the body of a response of a DecoratorController's sync hook.

    Raises HookError if the body is malformed, or if it has attachments, which are not modeled.
    """
    fields = decode_object(body, DECORATE_FIELDS, strict=hook.strict)
    with _unmarshalling():
        labels: dict[str, str | None] | None = _field(fields, "labels", _OPTIONAL_STRINGS)
        annotations: dict[str, str | None] | None = _field(fields, "annotations", _OPTIONAL_STRINGS)
        status: Object | None = _field(fields, "status", dict[str, Json] | None)
        attachments: list[Json] | None = _field(fields, "attachments", list[Json] | None)
        resync_after: float | None = _field(fields, "resyncAfterSeconds", float | None)
        _field(fields, "finalized", bool | None)  # checked only: no finalize hook
    if attachments:
        raise HookError("attachments are not modelled")
    return Decoration(labels or {}, annotations or {}, status, resync_after or 0.0)


def decode_customize(body: bytes, hook: Hook) -> list[Object]:
    """Decodes the body of a response of the customize hook and returns the rules in it.

    Each rule selects related objects. Raises HookError if the body is malformed.
    """
    fields = decode_object(body, ("relatedResources",), strict=hook.strict)
    with _unmarshalling():
        return _field(fields, "relatedResources", list[dict[str, Json]] | None) or []
