"""The memory from request to request: the one cache of this service.

The pods of a TApp come again at its next sync, byte for byte, all but a few. For each pod the memo
holds what was made of its text, under the text's length and hash (Python's, keyed anew in each
process unless PYTHONHASHSEED is set); for each TApp its validated spec with its templates, in the
same way. Nothing else is an input to what is held, so an answer is the same with and without it.

What is held never changes once it is in here, so threads share it without a lock; the lock is for
the table of TApps.
"""

import threading
from collections import OrderedDict
from collections.abc import Mapping
from typing import Final, Generic, TypeVar

import msgspec
from msgspec import Raw

from hooks.wire.decode import as_deep_as_readable
from hooks.wire.observe import ObservedPod
from hooks.wire.weight import weight
from tapp.declared.lookup import Templates

T = TypeVar("T")

ENTRY_BYTES: Final = 400  # Of a table's entry with its place and its key, but for the texts


class Whose(msgspec.Struct, frozen=True):
    """Whose something is: a TApp's metadata, empty where they do not tell."""

    namespace: str = ""
    name: str = ""


NOBODYS: Final = Whose()
_decode_whose = msgspec.json.Decoder(Whose).decode


class Cached(Generic[T]):
    """A value that was made of a text, of which only length and hash are kept.

    `size` is what the value takes in memory, in bytes.
    """

    __slots__ = ("hash", "length", "size", "value")

    def __init__(self, text: bytes, value: T, size: int) -> None:
        """Takes note of the text."""
        self.length, self.hash, self.value, self.size = len(text), hash(text), value, size

    def is_of(self, text: bytes) -> bool:
        """True if this was made of exactly this text."""
        return self.length == len(text) and self.hash == hash(text)


class CachedSpec(Cached[Templates]):
    """A spec's templates; `size` is that of what had been looked up when it was last weighed."""

    __slots__ = ("_made",)

    def __init__(self, text: bytes, value: Templates) -> None:
        """Takes note of the text, and weighs the spec."""
        super().__init__(text, value, weight(value))
        self._made = 0

    def grew(self) -> bool:
        """True if more has been looked up since it was last weighed; then it is weighed again."""
        made = self.value.made
        if made == self._made:
            return False
        self._made, self.size = made, weight(self.value)
        return True


class CachedApp:
    """The values that are remembered of one TApp; `size` is what they take in memory, in bytes.

    `pods` are by their keys in the request, `spec` is None where it is not known.
    """

    __slots__ = ("app", "pods", "size", "spec")

    def __init__(
        self, app: Whose, spec: CachedSpec | None, pods: Mapping[str, Cached[ObservedPod]]
    ) -> None:
        """All of one request."""
        self.app, self.spec, self.pods = app, spec, pods
        self.size = sum([ENTRY_BYTES + cached.size for cached in pods.values()])
        self.size += 0 if spec is None else spec.size


class Memo:
    """The memory of the TApps that came last, as far as it fits."""

    def __init__(self, limit: int) -> None:
        """`limit` is in bytes, for the whole process; 0 remembers nothing."""
        self._limit = limit
        self._size = 0
        self._held: OrderedDict[Whose, CachedApp] = OrderedDict()
        self._lock = threading.Lock()

    @property
    def size(self) -> int:
        """Bytes that it takes in memory."""
        return self._size

    def of(self, parent: Mapping[str, Raw]) -> CachedApp:
        """The memory of a parent, by its name and namespace."""
        try:
            app = as_deep_as_readable(_decode_whose, parent.get("metadata", b"{}"))
        except (msgspec.DecodeError, UnicodeDecodeError):
            app = NOBODYS  # whoever reads the parent will say what is wrong with it
        with self._lock:
            found = self._held.get(app)
            if found is not None:
                self._held.move_to_end(app)
        return found or CachedApp(app, None, {})

    def keep(self, app: CachedApp) -> None:
        """Remembers this of a TApp, if not too large; forgets TApps that did not come for long."""
        with self._lock:
            self._keep(app)

    def weigh(self, app: Whose, spec: CachedSpec) -> None:
        """Takes note that a TApp's spec takes more memory than before, if it is remembered."""
        with self._lock:
            held = self._held.get(app)
            if held is not None and held.spec is spec:
                self._keep(CachedApp(app, spec, held.pods))

    def _keep(self, cached: CachedApp) -> None:
        before = self._held.pop(cached.app, None)
        self._size -= 0 if before is None else before.size
        if cached.size > self._limit or not self._limit:
            return
        self._held[cached.app] = cached
        self._size += cached.size
        while self._size > self._limit:
            _, oldest = self._held.popitem(last=False)
            self._size -= oldest.size
