"""Times as Kubernetes writes them (RFC 3339, whole seconds), and seconds since the epoch."""

from datetime import UTC, datetime

UNKNOWN = float("-inf")
"""A time that nobody knows: earlier than all others."""


def seconds(text: str | None) -> float:
    """A time as seconds since the epoch; `UNKNOWN` where it is missing or no time."""
    if not text:
        return UNKNOWN
    try:
        return datetime.fromisoformat(text).timestamp()
    except (ValueError, OverflowError):
        return UNKNOWN


def past(text: str | None, now: float) -> float:
    """The same, `UNKNOWN` also for a time that has not come: some clock is wrong there."""
    at = seconds(text)
    return at if at <= now else UNKNOWN


def written(at: float) -> str:
    """Seconds since the epoch as Kubernetes writes a time, cut to the second."""
    return datetime.fromtimestamp(int(at), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
