"""Metacontroller's informer caches, which may lag behind the API server.

Each kind has its own watch. A watch delivers the events of its kind in order, possibly late, and
independently of other kinds. So the cached objects of one kind are always a true past state of this
kind, but the caches of two kinds may show different times. `Cache.feed` takes the events, and
controllers read with `Cache.entries` and `Cache.owned_by`. Source: client-go's informers.
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
    """One cached object, with its JSON and its key, which are computed at most once."""

    obj: Object
    _json: bytes | None = None
    # JSON of the hook's desired object in an earlier sync that needed no write; None if unknown
    applied: bytes | None = None
    _key: str | None = None

    @property
    def key(self) -> str:
        """The key of the object in hook requests: `NAMESPACE/NAME`, or the name if it has no
        namespace.
        """
        if self._key is None:
            namespace, name = key_of(self.obj)
            self._key = f"{namespace}/{name}" if namespace else name
        return self._key

    @property
    def json(self) -> bytes:
        """The JSON of the object, encoded at the first use."""
        if self._json is None:
            self._json = _encoder.encode(self.obj)
        return self._json


Handler = Callable[[Kind, Entry | None, Entry | None], None]


@dataclass(slots=True)
class _Informer:
    entries: dict[Key, Entry] = field(default_factory=dict)
    owned: dict[str, dict[Key, Entry]] = field(default_factory=dict)
    waiting_events: deque[tuple[float, Event]] = field(default_factory=deque)
    paused: bool = False


class Cache:
    """The informer caches of one Metacontroller: one cache for each kind.

    `lag` maps the name of a kind to the seconds by which its events arrive late. Kinds that are not
    in `lag` are always up to date.
    """

    def __init__(self, clock: Clock) -> None:
        self.lag: dict[str, float] = {}
        self._clock = clock
        self._informers: dict[Kind, _Informer] = {}
        self._handlers: list[Handler] = []

    def on_change(self, handler: Handler) -> None:
        """Registers a handler that is called with (kind, old entry, new entry) at each change of a
        cache.

        The old entry is None for a new object, and the new entry is None for a removed object.
        """
        self._handlers.append(handler)

    def feed(self, event: Event) -> None:
        """Takes an event of the API server into the cache of its kind.

        The cache changes at once, or after the lag of the kind. While the kind is paused, the event
        waits.
        """
        informer = self._informer(event.kind)
        lag = self.lag.get(event.kind.name, 0.0)
        if not lag and not informer.paused and not informer.waiting_events:
            self._apply(event)
            return
        informer.waiting_events.append((self._clock.now + lag, event))
        if not informer.paused:
            self._clock.after(lag, lambda: self._deliver(event.kind))

    def pause(self, kind: Kind) -> None:
        """Stops the delivery of a kind's events, so that its cache does not change until
        `resume`.
        """
        self._informer(kind).paused = True

    def resume(self, kind: Kind) -> None:
        """Delivers all waiting events of a kind and ends the pause that `pause` began."""
        informer = self._informer(kind)
        informer.paused = False
        while informer.waiting_events:
            self._apply(informer.waiting_events.popleft()[1])

    def advance(self, kind: Kind, events: int = 1) -> None:
        """Delivers the oldest waiting events of a paused kind, which stays paused.

        `events` is the number of events to deliver. If fewer events wait, all of them are
        delivered.
        """
        informer = self._informer(kind)
        for _ in range(min(events, len(informer.waiting_events))):
            self._apply(informer.waiting_events.popleft()[1])

    def replace(self, kind: Kind, objects: Iterable[Object]) -> None:
        """Replaces all cached objects of a kind, as an informer's relist does.

        `objects` are all objects that exist now. The handlers are called for each object that is
        new, gone, or has another resourceVersion.
        """
        before = self._informer(kind).entries
        after = {key_of(obj): obj for obj in objects}
        for key in sorted(before.keys() | after.keys()):
            old = before.get(key)
            new = after.get(key)
            if old is None or new is None or version_of(old.obj) != version_of(new):
                self._apply(Event(kind, None if old is None else old.obj, new, 0))

    def get(self, kind: Kind, key: Key) -> Entry | None:
        """Returns the cached object with this key (namespace and name), or None."""
        return self._informer(kind).entries.get(key)

    def entries(self, kind: Kind, namespace: str = "") -> list[Entry]:
        """Returns the cached objects of a kind, sorted by namespace and name.

        An empty `namespace` means all namespaces.
        """
        found = sorted(self._informer(kind).entries.items())
        return [entry for key, entry in found if namespace in ("", key[0])]

    def owned_by(self, kind: Kind, uid: str, namespace: str = "") -> list[Entry]:
        """Returns the cached objects of a kind that are controlled by the owner with this uid.

        An empty `uid` means objects without a controller; an empty `namespace` means all
        namespaces.
        """
        found = sorted(self._informer(kind).owned.get(uid, {}).items())
        return [entry for key, entry in found if namespace in ("", key[0])]

    def _informer(self, kind: Kind) -> _Informer:
        informer = self._informers.get(kind)
        if informer is None:
            informer = self._informers[kind] = _Informer()
        return informer

    def _deliver(self, kind: Kind) -> None:
        informer = self._informer(kind)
        while informer.waiting_events and not informer.paused:
            if informer.waiting_events[0][0] > self._clock.now:
                return
            self._apply(informer.waiting_events.popleft()[1])

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
    """The parts of a cluster that a Metacontroller works with; each part may be simulated or real.

    Attributes:
        store: the API server, for live reads and for writes.
        cache: the informer caches, for all other reads.
        kinds: the resource types of the cluster.
        clock: the time, for retries and resyncs.
    """

    store: Store
    cache: Cache
    kinds: Kinds
    clock: Clock
