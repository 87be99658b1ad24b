"""The cache of this service: decoded specs and pods of each TApp, from sync to sync.

At the next sync of a TApp, its spec and all but a few of its pods are byte for byte the same. So a
worker keeps what it has made of each text, under the length and the hash of that text (Python's,
with another key in each process). Nothing else is an input to a cached value, so an answer is the
same with the cache and without it. `Memo.of` looks a TApp up, `Memo.keep` remembers it.

A worker cannot ask how much memory a value takes. It estimates that from the length of the text
that the value was made from (`pod_bytes`, `spec_bytes`), and forgets the TApps that it has not seen
for the longest time when the sum is above the limit. The factors were measured
(tests/unit/hooks/test_memo_size.py), as the most that a spec takes, and what pods usually take.

Cached values never change, so threads share them without a lock. The lock is for the table.
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

T = TypeVar("T")


def pod_bytes(text: bytes) -> int:
    """Estimates the memory of a cached pod, in bytes, from its JSON."""
    return 2_000 + len(text)


def spec_bytes(text: bytes, filled_in: Iterable[tuple[Template, Template]]) -> int:
    """Estimates the memory of a cached spec, in bytes, from its JSON and its filled in templates.

    `filled_in` is the result of `Templates.filled_templates`. Of a filled-in template, only its
    hashes, its labels, annotations and images are kept: its pod spec is made again when a pod is.
    """
    own = sum([_own_bytes(*pair) for pair in filled_in])
    return 10_000 + 40 * len(text) + own


def _own_bytes(written: Template, own: Template) -> int:
    """Estimates the memory of what a filled in template does not share with the written one."""
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
    """A value that was made from a text, of which only the length and the hash are kept.

    `size` is the memory that the value takes, in bytes, as estimated.
    """

    __slots__ = ("hash", "length", "size", "value")

    def __init__(self, text: bytes, value: T, size: int) -> None:
        """Remembers the text by its length and hash."""
        self.length, self.hash, self.value, self.size = len(text), hash(text), value, size

    def is_of(self, text: bytes) -> bool:
        """Returns True if the value was made from exactly this text."""
        return self.length == len(text) and self.hash == hash(text)


class CachedSpec(Cached[Templates]):
    """The templates of a spec, filled in for all its instances."""

    __slots__ = ()

    def __init__(self, text: bytes, value: Templates) -> None:
        """Fills in the templates of all instances."""
        value = value.with_own_templates()
        super().__init__(text, value, spec_bytes(text, value.filled_templates()))


class CachedApp:
    """The cached values of one TApp.

    `pods` are by their keys in the request. `spec` is None if it is not known. `size` is the memory
    that all of them take, in bytes, as estimated.
    """

    __slots__ = ("app", "pods", "size", "spec")

    def __init__(
        self, app: AppName, spec: CachedSpec | None, pods: Mapping[str, Cached[ObservedPod]]
    ) -> None:
        """Puts together what one request has shown of a TApp."""
        self.app, self.spec, self.pods = app, spec, pods
        self.size = sum([cached.size for cached in pods.values()])
        self.size += 0 if spec is None else spec.size


class Memo:
    """The cached TApps of one worker, up to a limit."""

    def __init__(self, limit: int) -> None:
        """Starts empty. `limit` is in bytes, for the whole process; with 0 nothing is cached."""
        self._limit = limit
        self._size = 0
        self._apps: OrderedDict[AppName, CachedApp] = OrderedDict()
        self._lock = threading.Lock()

    @property
    def size(self) -> int:
        """The memory that all cached values take, in bytes, as estimated."""
        return self._size

    def of(self, parent: Mapping[str, Raw]) -> CachedApp:
        """Returns the cached values of a TApp, found by its name; without any if it is new."""
        try:
            app = as_deep_as_readable(_decode_name, parent.get("metadata", b"{}"))
        except (msgspec.DecodeError, UnicodeDecodeError):
            app = UNNAMED  # The error of the metadata is reported when the parent is read.
        with self._lock:
            found = self._apps.get(app)
            if found is not None:
                self._apps.move_to_end(app)
        return found or CachedApp(app, None, {})

    def keep(self, cached: CachedApp) -> None:
        """Replaces the cached values of a TApp, and forgets other TApps if there is no room."""
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
