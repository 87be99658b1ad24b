"""The informer caches between the API server and Metacontroller, which may lag.

Each kind has its own watch: it sees that kind's events in order, but possibly late and
independently of other kinds. So a cache is always a true state of the past, per kind.
Source: client-go's informers.
"""

from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

import msgspec

from simulator.api.store import Event, Store
from simulator.objects.clock import Clock
from simulator.objects.kinds import Kind, Kinds
from simulator.objects.objects import Key, Object, controller_of, key_of, version_of

_encoder = msgspec.json.Encoder(order="sorted")


@dataclass(slots=True, eq=False)
class Entry:
    """One cached object, with its JSON and what is worth remembering about it."""

    obj: Object
    _json: bytes | None = None
    applied: bytes | None = None  # What the hook wanted when nothing had to be written
    _key: str | None = None

    @property
    def key(self) -> str:
        """Return `namespace/name`, or the name of a cluster-scoped object."""
        if self._key is None:
            namespace, name = key_of(self.obj)
            self._key = f"{namespace}/{name}" if namespace else name
        return self._key

    @property
    def json(self) -> bytes:
        """Return the object's JSON, encoded once."""
        if self._json is None:
            self._json = _encoder.encode(self.obj)
        return self._json


Handler = Callable[[Kind, Entry | None, Entry | None], None]


@dataclass(slots=True)
class _Informer:
    entries: dict[Key, Entry] = field(default_factory=dict)
    owned: dict[str, dict[Key, Entry]] = field(default_factory=dict)
    waiting: deque[tuple[float, Event]] = field(default_factory=deque)
    paused: bool = False


class Cache:
    """The cluster as Metacontroller's caches have it."""

    def __init__(self, clock: Clock) -> None:
        self.lag: dict[str, float] = {}
        self._clock = clock
        self._informers: dict[Kind, _Informer] = {}
        self._handlers: list[Handler] = []

    def on_change(self, handler: Handler) -> None:
        """Call the handler with (kind, before, after) when the cache learns of a change."""
        self._handlers.append(handler)

    def feed(self, event: Event) -> None:
        """Take an event from the API server: at once, or after the kind's lag."""
        informer = self._informer(event.kind)
        lag = self.lag.get(event.kind.name, 0.0)
        if not lag and not informer.paused and not informer.waiting:
            self._apply(event)
            return
        informer.waiting.append((self._clock.now + lag, event))
        if not informer.paused:
            self._clock.after(lag, lambda: self._deliver(event.kind))

    def pause(self, kind: Kind) -> None:
        """Stop delivering this kind's events."""
        self._informer(kind).paused = True

    def resume(self, kind: Kind) -> None:
        """Deliver what piled up, and go on as usual."""
        informer = self._informer(kind)
        informer.paused = False
        while informer.waiting:
            self._apply(informer.waiting.popleft()[1])

    def advance(self, kind: Kind, events: int = 1) -> None:
        """Deliver that many of the events that wait, though the kind is paused."""
        informer = self._informer(kind)
        for _ in range(min(events, len(informer.waiting))):
            self._apply(informer.waiting.popleft()[1])

    def replace(self, kind: Kind, objects: Iterable[Object]) -> None:
        """Take a full list, as after a relist, and report what differs from before."""
        before = self._informer(kind).entries
        after = {key_of(obj): obj for obj in objects}
        for key in sorted(before.keys() | after.keys()):
            old = before.get(key)
            new = after.get(key)
            if old is None or new is None or version_of(old.obj) != version_of(new):
                self._apply(Event(kind, None if old is None else old.obj, new, 0))

    def get(self, kind: Kind, key: Key) -> Entry | None:
        """Return the cached object."""
        return self._informer(kind).entries.get(key)

    def entries(self, kind: Kind, namespace: str = "") -> list[Entry]:
        """Return the cached objects of a kind, of one namespace if given, by name."""
        found = sorted(self._informer(kind).entries.items())
        return [entry for key, entry in found if namespace in ("", key[0])]

    def owned_by(self, kind: Kind, uid: str, namespace: str = "") -> list[Entry]:
        """Return what this owner controls; with an empty uid, what nobody controls."""
        found = sorted(self._informer(kind).owned.get(uid, {}).items())
        return [entry for key, entry in found if namespace in ("", key[0])]

    def _informer(self, kind: Kind) -> _Informer:
        informer = self._informers.get(kind)
        if informer is None:
            informer = self._informers[kind] = _Informer()
        return informer

    def _deliver(self, kind: Kind) -> None:
        informer = self._informer(kind)
        while informer.waiting and not informer.paused:
            if informer.waiting[0][0] > self._clock.now:
                return
            self._apply(informer.waiting.popleft()[1])

    def _apply(self, event: Event) -> None:
        informer, key = self._informer(event.kind), key_of(event.object)
        old = informer.entries.pop(key, None)
        new = None if event.new is None else Entry(event.new)
        if old is not None:
            informer.owned[_owner_uid(old.obj)].pop(key, None)
        if new is not None:
            informer.entries[key] = new
            informer.owned.setdefault(_owner_uid(new.obj), {})[key] = new
        for handler in self._handlers:
            handler(event.kind, old, new)


def _owner_uid(obj: Object) -> str:
    ref = controller_of(obj)
    return "" if ref is None else str(ref["uid"])


@dataclass(frozen=True, slots=True)
class Environment:
    """The surroundings of one Metacontroller; any of them may be real or simulated."""

    store: Store
    cache: Cache
    kinds: Kinds
    clock: Clock
