"""When and how often an event was seen."""

from kubectl_tapp.base.observed import Document
from tapp.words.times import seconds


def last_time(event: Document) -> float:
    """When an event was seen last, in seconds since the epoch; 0 where it does not say."""
    series = event.get("series") or {}
    texts = (series.get("lastObservedTime"), event.get("lastTimestamp"), event.get("eventTime"))
    return next((seconds(text) for text in texts if text), 0.0)


def times(event: Document) -> int:
    """How often it was seen."""
    return int((event.get("series") or {}).get("count") or event.get("count") or 1)
