"""The cache of this service: the decoded specs, pods and claims of each TApp, between syncs.

In the next sync of a TApp, its spec and most of its pods and claims have the same JSON as before.
So a worker keeps the decoded values, under the length and the hash of their JSON (Python's hash,
which has another key in each process). A cached value depends on nothing else, so a response is the
same with and without the cache. `Memo.of` returns the values of a TApp, `Memo.keep` stores them.

A worker cannot measure how much memory a value takes. It estimates the memory from the length of
the JSON (`pod_bytes`, `claim_bytes`, `spec_bytes`). If the sum exceeds the limit, the worker drops
the TApps whose last sync is the longest ago. The factors of the estimate were measured
(tests/unit/hooks/test_memo_size.py): the maximum for a spec, and the usual value for a pod.

Cached values never change, so threads share them without a lock. The lock protects the table.
"""

import threading
from collections import OrderedDict
from collections.abc import Iterable, Mapping
from typing import Final, Generic, TypeVar

import msgspec
from msgspec import Raw

from hooks.wire.decode import as_deep_as_readable
from hooks.wire.observe import ObservedPod
from tapp.declared.lookup import Templates
from tapp.declared.templates import Template
from tapp.kube.objects import ClaimObject

T = TypeVar("T")


def pod_bytes(text: bytes) -> int:
    """Estimates the memory of a cached pod, in bytes, from the length of its JSON."""
    return 2_000 + len(text)


def claim_bytes(text: bytes) -> int:
    """Estimates the memory of a cached claim and its response, from the length of its JSON."""
    return 2_000 + 2 * len(text)


def spec_bytes(text: bytes, filled_in: Iterable[tuple[Template, Template]]) -> int:
    """Estimates the memory of a cached spec, in bytes.

    The cache keeps only the hashes, labels, annotations and images of a filled-in template. Its pod
    spec is filled in again when a pod is created.

    Args:
        text: the JSON of the spec.
        filled_in: the result of `Templates.filled_templates`.
    """
    own = sum([_own_bytes(*pair) for pair in filled_in])
    return 10_000 + 40 * len(text) + own


def _own_bytes(written: Template, own: Template) -> int:
    """Estimates the memory that the filled-in template of one instance needs, in bytes.

    Args:
        written: the template with placeholders, with which it shares equal parts.
        own: the filled-in template.
    """
    found = 1_500
    for part in ("labels", "annotations", "images"):
        entries, shared = getattr(own, part), getattr(written, part)
        if entries is not shared:
            new = [text for key, text in entries.items() if text != shared.get(key)]
            found += 50 * len(entries) + sum([50 + 2 * len(text.encode()) for text in new])
    return found


class AppName(msgspec.Struct, frozen=True):
    """The namespace and the name of a TApp, empty if its metadata cannot be read."""

    namespace: str = ""
    name: str = ""


UNNAMED: Final = AppName()
_decode_name = msgspec.json.Decoder(AppName).decode


class Cached(Generic[T]):
    """A value that was made from a JSON text, with the length and the hash of that text.

    The text itself is not kept. `size` is the estimated memory of the value in bytes.
    """

    __slots__ = ("hash", "length", "size", "value")

    def __init__(self, text: bytes, value: T, size: int) -> None:
        """Stores a value, with the length and the hash of the text that it was made from.

        `size` is the estimated memory of the value in bytes.
        """
        self.length, self.hash, self.value, self.size = len(text), hash(text), value, size

    def is_of(self, text: bytes) -> bool:
        """Returns True if the value was made from a text with the same length and hash."""
        return self.length == len(text) and self.hash == hash(text)


class ObservedClaim(msgspec.Struct, frozen=True):
    """A claim, and the JSON of the response that leaves the claim unchanged.

    The claim refers to a copy of its own JSON, and not to the request.
    """

    claim: ClaimObject
    unchanged: Raw


class CachedSpec(Cached[Templates]):
    """The cached spec of a TApp: its templates, filled in for all instances."""

    __slots__ = ()

    def __init__(self, text: bytes, value: Templates) -> None:
        """Fills in the templates of all instances; `text` is the JSON of the spec."""
        value = value.with_own_templates()
        super().__init__(text, value, spec_bytes(text, value.filled_templates()))


class CachedApp:
    """The cached values of one TApp.

    `pods` maps the keys of the request to the pods. `claims` maps names to claims; it is empty
    unless Metacontroller updates claims (`InPlace`). `spec` is None if the spec is not cached.
    `size` is the estimated memory of all values in bytes.
    """

    __slots__ = ("app", "claims", "pods", "size", "spec")

    def __init__(
        self,
        app: AppName,
        spec: CachedSpec | None,
        pods: Mapping[str, Cached[ObservedPod]],
        claims: Mapping[str, Cached[ObservedClaim]],
    ) -> None:
        """Stores the values that were decoded from one request.

        Args:
            app: the namespace and the name of the TApp.
            spec: its spec; None if the spec is not cached.
            pods: its pods, by their keys in the request.
            claims: its claims, by name.
        """
        self.app, self.spec, self.pods, self.claims = app, spec, pods, claims
        self.size = sum([cached.size for cached in pods.values()])
        self.size += sum([cached.size for cached in claims.values()])
        self.size += 0 if spec is None else spec.size


class Memo:
    """The cache of one worker: the decoded values of TApps, up to a limit of memory."""

    def __init__(self, limit: int) -> None:
        """Starts with an empty cache.

        `limit` is the maximum memory of this process's cache in bytes; 0 turns the cache off.
        """
        self._limit = limit
        self._size = 0
        self._apps: OrderedDict[AppName, CachedApp] = OrderedDict()
        self._lock = threading.Lock()

    @property
    def size(self) -> int:
        """The estimated memory of all cached values in bytes."""
        return self._size

    def of(self, parent: Mapping[str, Raw]) -> CachedApp:
        """Returns the cached values of a TApp; empty ones if the cache has none.

        `parent` maps the fields of the TApp to their JSON.
        """
        try:
            app = as_deep_as_readable(_decode_name, parent.get("metadata", b"{}"))
        except (msgspec.DecodeError, UnicodeDecodeError):
            app = UNNAMED  # The error of the metadata is reported when the parent is read.
        with self._lock:
            found = self._apps.get(app)
            if found is not None:
                self._apps.move_to_end(app)
        return found or CachedApp(app, None, {}, {})

    def keep(self, cached: CachedApp) -> None:
        """Stores the values of a TApp, and drops those of other TApps if the limit is exceeded.

        Values that alone exceed the limit are not stored.
        """
        with self._lock:
            before = self._apps.pop(cached.app, None)
            self._size -= 0 if before is None else before.size
            if cached.size > self._limit or not self._limit:
                return
            self._apps[cached.app] = cached
            self._size += cached.size
            while self._size > self._limit:
                _, oldest = self._apps.popitem(last=False)
                self._size -= oldest.size
