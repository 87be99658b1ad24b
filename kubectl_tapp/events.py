"""The events that matter for a TApp: warnings about it, its pods and its claims."""

from collections.abc import Iterable
from typing import Any

from kubectl_tapp.look import Look
from kubectl_tapp.observed import Document
from kubectl_tapp.words import age
from tapp.times import seconds

_SHOWN, _OF_TAPP = 5, 2


def failing_syncs(look: Look) -> list[str]:
    """What could not be done for the TApp of late, such as `SyncError`, the newest first."""
    uid = look.observed.tapp["metadata"]["uid"]
    found = [each for each in look.observed.events if _object(each).get("uid") == uid]
    return [describe(event, look.plan.now) for event in newest(found)[:_OF_TAPP]]


def of_instance(look: Look, id: int) -> list[Document]:
    """The warnings about the pod of an instance and its claims, the newest first.

    Those of an earlier pod of that name do not count while there is one.
    """
    name = f"{look.name}-{id}"
    pod = look.pod(id)
    uid = pod["metadata"]["uid"] if pod is not None else None
    found = []
    for event in look.observed.events:
        about = _object(event)
        kind, other = about.get("kind"), about.get("name", "")
        is_pod = kind == "Pod" and other == name and uid in (None, about.get("uid"))
        if is_pod or (kind == "PersistentVolumeClaim" and other.endswith(f"-{name}")):
            found.append(event)
    return newest(found)[:_SHOWN]


def _object(event: Document) -> Document:
    return event.get("involvedObject") or {}


def newest(events: Iterable[Document]) -> list[Document]:
    """The last event of each reason and message, the newest first."""
    latest: dict[tuple[Any, Any], Document] = {}
    for event in sorted(events, key=last_time):
        latest[event.get("reason"), event.get("message")] = event
    return sorted(latest.values(), key=last_time, reverse=True)


def last_time(event: Document) -> float:
    """When an event was seen last, in seconds since the epoch; 0 where it does not say."""
    series = event.get("series") or {}
    texts = (series.get("lastObservedTime"), event.get("lastTimestamp"), event.get("eventTime"))
    return next((seconds(text) for text in texts if text), 0.0)


def describe(event: Document, now: float) -> str:
    """An event in a sentence."""
    count = (event.get("series") or {}).get("count") or event.get("count") or 1
    often = f" {count} times, last" if count > 1 else ""
    message = " ".join(str(event.get("message") or "").split())
    return f"{event.get('reason')}{often} {age(now - last_time(event))} ago: {message}"
