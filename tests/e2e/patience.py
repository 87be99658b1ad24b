"""Waiting for a fact."""

from __future__ import annotations

import time
from collections.abc import Callable


def until(fact: Callable[[], object], what: str, seconds: float = 30) -> None:
    """Waits for it; where it does not come in time, the error says `what`."""
    deadline = time.monotonic() + seconds
    while not fact():
        assert time.monotonic() < deadline, what
        time.sleep(0.05)
