"""Conversion between Kubernetes' times (RFC 3339) and seconds since the epoch.

A time in an object may be missing, null, of a wrong type, or from a wrong clock. So code that needs
a time reads it with `plausible_time`, and handles `UNKNOWN`.

If the condition `Ready` of a pod has no usable time, the first sync that sees its status stores the
time of the sync in the TApp (`status.unserved`). In place of an unusable time of another condition,
the time of the pod's creation counts.
"""

import re
from datetime import UTC, datetime
from typing import Any

# Stands for an unknown time. It is earlier than all other times.
UNKNOWN = float("-inf")
# The earliest and latest time that count as valid, in seconds since the epoch: years 1 and 9892.
# Other times are nonsense, and RFC 3339 cannot write times after the year 9999.
_FIRST, _LAST = -62_135_596_800.0, 250_000_000_000.0
# Most seconds by which the clock that wrote a time may be ahead of the service's clock.
SKEW = 60.0
# Characters 4, 7, 10 and 13 of an RFC 3339 time. They are checked, because Python also reads other
# forms of ISO 8601.
_MARKS = "--T:"
_WRITTEN = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", re.ASCII)


def seconds(text: Any) -> float:
    """Returns a time as seconds since the epoch, or `UNKNOWN` if `text` is not an RFC 3339 time.

    A time without a time zone is not valid, because Python would read it in the time zone of this
    process.
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
    """Returns a time of an object as seconds since the epoch, or `UNKNOWN`.

    The result is `UNKNOWN` if `text` is no RFC 3339 time, or is later than `now` (seconds since the
    epoch).
    """
    at = seconds(text)
    return at if at <= now else UNKNOWN


def plausible_time(text: Any, now: float, default: float = UNKNOWN) -> float:
    """Returns a time of an object as seconds since the epoch, or `default` if it cannot be right.

    The time cannot be right if it is missing, is not an RFC 3339 time, or is more than `SKEW`
    seconds in the future.

    Args:
        text: the time, of any type.
        now: the present time, in seconds since the epoch.
        default: the result if the time cannot be right.
    """
    at = seconds(text)
    return at if UNKNOWN < at <= now + SKEW else default


def noted_since(text: str, now: float) -> tuple[str, float]:
    """Returns a time that an earlier sync has stored, as RFC 3339 and as seconds since the epoch.

    Returns `now` in both forms if the stored text is empty, is invalid or is in the future.
    """
    at = past_time(text, now)
    return (written(now), now) if at == UNKNOWN else (text, at)


def written(at: float) -> str:
    """Returns a time as RFC 3339, without fractions of a second, as Kubernetes writes times.

    `at` is the time in seconds since the epoch.
    """
    return datetime.fromtimestamp(int(at), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def is_written(text: str) -> bool:
    """Returns True if a text has the form in which `written` returns a time."""
    return _WRITTEN.fullmatch(text) is not None and seconds(text) != UNKNOWN
