"""Times as Kubernetes writes them (RFC 3339), and seconds since the epoch.

A time in an object may be missing, null, of a wrong type, or from a clock that is wrong: a rule
that needs a time asks `told`, and says what it does without one.
"""

import re
from datetime import UTC, datetime
from typing import Any

UNKNOWN = float("-inf")  # A time that nobody knows: earlier than all others
_FIRST, _LAST = -62_135_596_800.0, 250_000_000_000.0
"""The years 1 and 9892: what is beyond is nonsense, and a little further it cannot be written."""
SKEW = 60.0
"""Seconds by which the clock that wrote a time may be ahead of ours."""
_MARKS = "--T:"
"""Characters 4, 7, 10 and 13 of an RFC 3339 time; ISO 8601 has other forms, too."""
_WRITTEN = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", re.ASCII)


def seconds(text: Any) -> float:
    """Returns a time as seconds since the epoch, or `UNKNOWN` if `text` is no RFC 3339 time.

    Without a time zone a text is no time: it would be read by the time zone of this process.
    """
    if not isinstance(text, str) or text[4:14:3] != _MARKS:
        return UNKNOWN
    try:
        found = datetime.fromisoformat(text)
        at = found.timestamp() if found.tzinfo is not None else UNKNOWN
    except (ValueError, OverflowError):
        return UNKNOWN
    return at if _FIRST <= at <= _LAST else UNKNOWN


def past(text: Any, now: float) -> float:
    """Returns a time as `seconds` does, or `UNKNOWN` if the time is still to come."""
    at = seconds(text)
    return at if at <= now else UNKNOWN


def told(text: Any, now: float, otherwise: float = UNKNOWN) -> float:
    """Returns the time that an object tells, or `otherwise` if the object cannot be right.

    It cannot if the time is missing, is no RFC 3339 time, or is more than `SKEW` seconds to come.
    """
    at = seconds(text)
    return at if UNKNOWN < at <= now + SKEW else otherwise


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
