"""What objects of Kubernetes tell: their conditions, their containers, their times."""

from typing import Any

from kubectl_tapp.base.observed import Document
from tapp.words.times import UNKNOWN, seconds


def conditions(item: Document) -> dict[str, Document]:
    """The conditions of an object's status, by their types."""
    found = (item.get("status") or {}).get("conditions") or []
    return {str(each.get("type")): each for each in found}


def generation_seen(tapp: Document) -> int:
    """The generation that a TApp's status is about; 0 where nobody has looked at it yet."""
    return max(0, int((tapp.get("status") or {}).get("observedGeneration") or 0))


def containers(spec: Document) -> list[Document]:
    """The containers of a pod's spec, init containers first."""
    return [*(spec.get("initContainers") or []), *(spec.get("containers") or [])]


def statuses(pod: Document) -> list[Document]:
    """The statuses of a pod's containers, init containers first."""
    status: dict[str, Any] = pod.get("status") or {}
    return [
        *(status.get("initContainerStatuses") or []), *(status.get("containerStatuses") or [])
    ]  # fmt: skip


def last_time(event: Document) -> float:
    """When an event was seen last, in seconds since the epoch; 0 where it does not say."""
    series = event.get("series") or {}
    texts = (series.get("lastObservedTime"), event.get("lastTimestamp"), event.get("eventTime"))
    return next((seconds(text) for text in texts if text), 0.0)


def times(event: Document) -> int:
    """How often it was seen."""
    return int((event.get("series") or {}).get("count") or event.get("count") or 1)


def last_write(metadata: Document) -> float:
    """When anything of an object but its status was last written; `UNKNOWN` where nothing tells."""
    times = [
        seconds(item.get("time"))
        for item in metadata.get("managedFields") or []
        if isinstance(item, dict) and not item.get("subresource")
    ]
    return max(times, default=UNKNOWN)
