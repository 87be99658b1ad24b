"""Times as Kubernetes writes them (RFC 3339, whole seconds), and seconds since the epoch."""

import re
from datetime import UTC, datetime

UNKNOWN = float("-inf")  # A time that nobody knows: earlier than all others
_FIRST, _LAST = -62_135_596_800.0, 250_000_000_000.0
"""The years 1 and 9892: what is beyond is nonsense, and a little further it cannot be written."""
_WRITTEN = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", re.ASCII)


def seconds(text: str | None) -> float:
    """A time as seconds since the epoch; `UNKNOWN` where it is missing or no time."""
    if not text:
        return UNKNOWN
    try:
        at = datetime.fromisoformat(text).timestamp()
    except (ValueError, OverflowError):
        return UNKNOWN
    return at if _FIRST <= at <= _LAST else UNKNOWN


def past(text: str | None, now: float) -> float:
    """The same, `UNKNOWN` also for a time that has not come: some clock is wrong there."""
    at = seconds(text)
    return at if at <= now else UNKNOWN


def noted_since(text: str, now: float) -> tuple[str, float]:
    """Since when something is so, as a text and in seconds: as noted, if that can be, else now."""
    at = past(text, now)
    return (written(now), now) if at == UNKNOWN else (text, at)


def written(at: float) -> str:
    """Seconds since the epoch as Kubernetes writes a time, cut to the second."""
    return datetime.fromtimestamp(int(at), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def is_written(text: str) -> bool:
    """True if a text is a time as `written` writes it."""
    return _WRITTEN.fullmatch(text) is not None and seconds(text) != UNKNOWN
