"""Writes the `SyncError` Events of a TApp whose syncs fail, as Metacontroller's event recorder
does.

Sources: pkg/controller/composite/controller.go (`Sync error: %s`) and client-go's events_cache.go.
An equal Event increases its count. After ten different messages within ten minutes, all further
messages share one Event with the latest message. For each parent, 25 Events are written, and then
one in five minutes.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from simulator.api.cluster import Cluster
from simulator.api.store import NotFoundError
from simulator.objects.clock import Clock
from simulator.objects.kinds import Kind
from simulator.objects.objects import Object, name_of, namespace_of, uid_of
from simulator.world import World

EVENT = Kind("v1", "Event", "events", has_status=False, has_generation=False)
_ALIKE, _WITHIN = 10, 600.0
_BURST, _PERIOD = 25.0, 300.0
_COMBINED = "(combined from similar events): "


@dataclass
class _Source:
    """The state that the event recorder keeps for one parent.

    Attributes:
        messages: message -> name of its Event.
        since: the time of the first of these messages, in seconds.
        tokens: the number of Events that may still be written.
        at: the time of the last change of `tokens`, in seconds.
    """

    messages: dict[str, str] = field(default_factory=dict)
    since: float = 0.0
    tokens: float = _BURST
    at: float = 0.0


class EventRecorder:
    """Writes the Events of failed syncs into a cluster, or increases the count of existing
    Events.
    """

    def __init__(self, cluster: Cluster, clock: Clock) -> None:
        self._cluster, self._clock = cluster, clock
        self._sources: dict[str, _Source] = {}

    def sync_failed(self, parent: Object, error: str) -> None:
        """Writes an Event about a failed sync of `parent`, unless too many Events have been
        written.
        """
        now, source = self._clock.now, self._sources.setdefault(uid_of(parent), _Source())
        if now - source.since > _WITHIN:
            source.messages, source.since = {}, now
        message = f"Sync error: {error}"
        known = source.messages.get(message)
        if known is None and len(source.messages) >= _ALIKE:
            known, message = source.messages.get(_COMBINED, ""), _COMBINED + message
        name = known or f"{name_of(parent)}.{self._clock.now:.6f}"
        source.messages[_COMBINED if message.startswith(_COMBINED) else message] = name
        source.tokens = min(_BURST, source.tokens + (now - source.at) / _PERIOD)
        source.at = now
        if source.tokens < 1:
            return
        source.tokens -= 1
        self._write(parent, name, message)

    def _write(self, parent: Object, name: str, message: str) -> None:
        space, at = namespace_of(parent), self._clock.timestamp()
        try:
            event = self._cluster.get(EVENT, space, name)
        except NotFoundError:
            about = {"apiVersion": parent["apiVersion"], "kind": parent["kind"]}
            about |= {"name": name_of(parent), "namespace": space, "uid": uid_of(parent)}
            event = {
                "apiVersion": "v1",
                "kind": "Event",
                "metadata": {"name": name, "namespace": space},
                "type": "Warning",
                "reason": "SyncError",
                "source": {"component": "metacontroller"},
                "involvedObject": about,
                "firstTimestamp": at,
                "lastTimestamp": at,
                "count": 1,
                "message": message,
            }
            self._cluster.create(EVENT, event)
            return
        count = event["count"] + 1
        self._cluster.edit(
            EVENT,
            event,
            lambda old: {**old, "lastTimestamp": at, "count": count, "message": message},
        )


def record_failures(world: World) -> None:
    """Makes the simulated Metacontroller write an Event for each sync that fails from now on."""
    world.kinds.add(EVENT)
    recorder = EventRecorder(world.cluster, world.clock)

    def tell(key: tuple[str, str], error: str) -> None:
        parent = world.metacontroller.parent(key)
        if parent is not None:
            recorder.sync_failed(parent, error)

    world.metacontroller.on_failure = tell
