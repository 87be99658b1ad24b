"""When and how often an event was seen, and when an object was written."""

from kubectl_tapp.base.observed import Document
from tapp.words.times import UNKNOWN, seconds


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
