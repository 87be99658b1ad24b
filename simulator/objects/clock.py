"""Simulated time: a heap of timers, run in order of time and then of scheduling.

Background timers are those that come for ever (periodic resyncs, back-off of an image that cannot
be pulled); a world with only such timers left is at rest.
"""

import heapq
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from math import ceil

EPOCH = datetime(2026, 1, 1, tzinfo=UTC)


@dataclass(slots=True, order=True)
class Timer:
    """One callback that is due."""

    due: float
    number: int
    action: Callable[[], None] = field(compare=False)
    background: bool = field(default=False, compare=False)
    cancelled: bool = field(default=False, compare=False)


class Clock:
    """Seconds since the start of the simulation, and what is due when."""

    def __init__(self, tick: float = 0.0) -> None:
        """Every timer is due at a multiple of `tick`, not before its time; 0: at its time.

        With a power of two all times are exact: what happens again happens in the same way.
        """
        self.now = 0.0
        self._tick = tick
        self._timers: list[Timer] = []
        self._count = 0
        self._foreground = 0

    def after(
        self, seconds: float, action: Callable[[], None], *, background: bool = False
    ) -> Timer:
        """Run the action once, that many seconds from now."""
        self._count += 1
        due = self.now + max(seconds, 0.0)
        if self._tick:
            due = ceil(due / self._tick) * self._tick
        timer = Timer(due, self._count, action, background)
        heapq.heappush(self._timers, timer)
        self._foreground += not background
        return timer

    def cancel(self, timer: Timer | None) -> None:
        """Take back a timer that has not run yet."""
        if timer is not None and not timer.cancelled:
            timer.cancelled = True
            self._foreground -= not timer.background

    def step(self, until: float = float("inf")) -> bool:
        """Run the next timer due by `until`; return False if there is none."""
        while self._timers and self._timers[0].due <= until:
            timer = heapq.heappop(self._timers)
            if timer.cancelled:
                continue
            timer.cancelled = True
            self._foreground -= not timer.background
            self.now = max(self.now, timer.due)
            timer.action()
            return True
        return False

    @property
    def busy(self) -> bool:
        """Tell whether anything but background timers is still due."""
        return self._foreground > 0

    def unix(self) -> float:
        """Return the simulated time as seconds since 1970, for a hook that looks at the clock."""
        return EPOCH.timestamp() + self.now

    def timestamp(self, seconds: float | None = None) -> str:
        """Format a moment (default: now) as the API does, in whole seconds."""
        moment = EPOCH + timedelta(seconds=self.now if seconds is None else seconds)
        return moment.strftime("%Y-%m-%dT%H:%M:%SZ")

    def moment(self, text: str | None) -> float | None:
        """Read a moment as the API writes it; None for one that is missing or unreadable."""
        try:
            found = datetime.fromisoformat(text or "")
        except ValueError:
            return None
        if found.tzinfo is None:
            return None
        return (found - EPOCH).total_seconds()
