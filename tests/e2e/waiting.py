"""Waits until a condition holds."""

from __future__ import annotations

import time
from collections.abc import Callable

PATIENCE = 150.0
"""Seconds.

After restarts of the API server, the scheduler may wait a minute before its next try (client-go's
back-off).
"""

LONG = 90.0
"""Seconds to wait for a report that the service makes only after thirty seconds."""


def until(fact: Callable[[], object], what: str, seconds: float = 90) -> None:
    """Waits until `fact` returns a true value.

    Raises AssertionError with the text `what` after `seconds`.
    """
    deadline = time.monotonic() + seconds
    while not fact():
        assert time.monotonic() < deadline, what
        time.sleep(0.05)
