"""Conversion between Kubernetes' times (RFC 3339) and seconds since the epoch.

A time in an object may be missing, null, of a wrong type, or from a clock that is wrong. So a rule
that needs a time reads it with `plausible_time`, and handles `UNKNOWN`. If the condition `Ready`
has no usable time, the first sync that sees this state notes the time of the sync
(`status.unserved`). For other conditions, the time of the pod's creation counts.
"""

import re
from datetime import UTC, datetime
from typing import Any

# An unknown time: earlier than all others.
UNKNOWN = float("-inf")
# The years 1 and 9892. Times outside are nonsense, and a little further they cannot be written.
_FIRST, _LAST = -62_135_596_800.0, 250_000_000_000.0
# Seconds by which the clock that wrote a time may be ahead of the service's clock.
SKEW = 60.0
# Characters 4, 7, 10 and 13 of an RFC 3339 time. Python also reads other forms of ISO 8601.
_MARKS = "--T:"
_WRITTEN = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", re.ASCII)


def seconds(text: Any) -> float:
    """Returns a time as seconds since the epoch, or `UNKNOWN` if `text` is no RFC 3339 time.

    A text without a time zone is no time: Python would read it in the time zone of this process.
    """
    if not isinstance(text, str) or text[4:14:3] != _MARKS:
        return UNKNOWN
    try:
        found = datetime.fromisoformat(text)
        at = found.timestamp() if found.tzinfo is not None else UNKNOWN
    except (ValueError, OverflowError):
        return UNKNOWN
    return at if _FIRST <= at <= _LAST else UNKNOWN


def past_time(text: Any, now: float) -> float:
    """Returns a time as seconds since the epoch, or `UNKNOWN` if it is invalid or in the future."""
    at = seconds(text)
    return at if at <= now else UNKNOWN


def plausible_time(text: Any, now: float, default: float = UNKNOWN) -> float:
    """Returns a time of an object as seconds since the epoch, or `default` if it cannot be right.

    Args:
        text: the time. It cannot be right if it is missing, is no RFC 3339 time, or is more than
            `SKEW` seconds in the future.
        now: the present time, in seconds since the epoch.
        default: the result for such a time.
    """
    at = seconds(text)
    return at if UNKNOWN < at <= now + SKEW else default


def noted_since(text: str, now: float) -> tuple[str, float]:
    """Returns the time that an earlier sync has stored, as text and in seconds since the epoch.

    Returns `now` instead if the text is empty, is invalid or is in the future.
    """
    at = past_time(text, now)
    return (written(now), now) if at == UNKNOWN else (text, at)


def written(at: float) -> str:
    """Returns a time as RFC 3339, cut to the second, as Kubernetes writes times.

    `at` is in seconds since the epoch.
    """
    return datetime.fromtimestamp(int(at), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def is_written(text: str) -> bool:
    """Returns True if a text has the form in which `written` returns a time."""
    return _WRITTEN.fullmatch(text) is not None and seconds(text) != UNKNOWN
