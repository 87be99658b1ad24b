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
from tapp.spec.lookup import Templates

T = TypeVar("T")
App = tuple[str, str]

ENTRY_BYTES: Final = 400
"""The bytes of an entry of a table, with its place and its key, but for the texts."""


class Known(Generic[T]):
    """The value that was made of a text, without the text.

    Attributes:
        length: bytes of the text.
        hash: hash of the text.
        value: what was made of it.
    """

    __slots__ = ("hash", "length", "value")

    def __init__(self, text: bytes, value: T) -> None:
        """Takes note of the text."""
        self.length, self.hash, self.value = len(text), hash(text), value

    def is_of(self, text: bytes) -> bool:
        """True if this was made of exactly this text."""
        return self.length == len(text) and self.hash == hash(text)


class KnownSpec(Known[Templates]):
    """A spec's templates, with what they take in memory.

    Attributes:
        size: bytes, of what had been looked up when it was last weighed.
    """

    __slots__ = ("_made", "size")

    def __init__(self, text: bytes, value: Templates) -> None:
        """Takes note of the text, and weighs the spec."""
        super().__init__(text, value)
        self._made, self.size = 0, weight(value)

    def grew(self) -> bool:
        """True if more has been looked up since it was last weighed; then it is weighed again."""
        made = self.value.made
        if made == self._made:
            return False
        self._made, self.size = made, weight(self.value)
        return True


class Recalled:
    """The values that are remembered of one TApp.

    Attributes:
        app: whose it is: namespace and name.
        spec: its templates with its spec, None where that is not known.
        pods: key in the request -> pod.
        size: bytes that all this takes in memory.
    """

    __slots__ = ("app", "pods", "size", "spec")

    def __init__(
        self, app: App, spec: KnownSpec | None, pods: Mapping[str, Known[ObservedPod]]
    ) -> None:
        """All of one request."""
        self.app, self.spec, self.pods = app, spec, pods
        self.size = sum([ENTRY_BYTES + known.value.size for known in pods.values()])
        self.size += 0 if spec is None else spec.size


class _Meta(msgspec.Struct, frozen=True):
    name: str = ""
    namespace: str = ""


_decode_meta = msgspec.json.Decoder(_Meta).decode


class Memo:
    """The memory of the TApps that came last, as far as it fits."""

    def __init__(self, limit: int) -> None:
        """`limit` is in bytes, for the whole process; 0 remembers nothing."""
        self._limit = limit
        self._size = 0
        self._held: OrderedDict[App, Recalled] = OrderedDict()
        self._lock = threading.Lock()

    @property
    def size(self) -> int:
        """Bytes that it takes in memory."""
        return self._size

    def recall(self, parent: Mapping[str, Raw]) -> Recalled:
        """The memory of a parent, by its name and namespace."""
        app = ("", "")
        if self._limit:
            try:
                meta = as_deep_as_readable(_decode_meta, parent.get("metadata", b"{}"))
                app = meta.namespace, meta.name
            except (msgspec.DecodeError, UnicodeDecodeError):
                pass  # whoever reads the parent will say what is wrong with it
        with self._lock:
            found = self._held.get(app)
            if found is not None:
                self._held.move_to_end(app)
        return found or Recalled(app, None, {})

    def keep(self, recalled: Recalled) -> None:
        """Remembers this of a TApp instead, and forgets TApps that did not come for long.

        What alone is more than the limit is not remembered.
        """
        with self._lock:
            self._keep(recalled)

    def weigh(self, app: App, spec: KnownSpec) -> None:
        """Takes note that a TApp's spec takes more memory than before, if it is remembered."""
        with self._lock:
            held = self._held.get(app)
            if held is not None and held.spec is spec:
                self._keep(Recalled(app, spec, held.pods))

    def _keep(self, recalled: Recalled) -> None:
        before = self._held.pop(recalled.app, None)
        self._size -= 0 if before is None else before.size
        if recalled.size > self._limit or not self._limit:
            return
        self._held[recalled.app] = recalled
        self._size += recalled.size
        while self._size > self._limit:
            _, oldest = self._held.popitem(last=False)
            self._size -= oldest.size
