"""Waiting for a fact."""

from __future__ import annotations

import time
from collections.abc import Callable

PATIENCE = 150.0
"""Seconds. After restarts of the API server a scheduler waits up to a minute before it looks again
(client-go's backoff), and this one outlives many."""


def until(fact: Callable[[], object], what: str, seconds: float = 90) -> None:
    """Waits for it; where it does not come in time, the error says `what`."""
    deadline = time.monotonic() + seconds
    while not fact():
        assert time.monotonic() < deadline, what
        time.sleep(0.05)
