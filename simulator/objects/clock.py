"""Simulated time: a heap of timers, sorted by time and then by creation.

`Clock.step` runs the next timer and moves the time to the timer's time. *Background* timers repeat
without end (periodic resyncs, the back-off of an image that cannot be pulled). A world in which
only background timers are left is at rest.
"""

import heapq
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from math import ceil

EPOCH = datetime(2026, 1, 1, tzinfo=UTC)


@dataclass(slots=True, order=True)
class Timer:
    """A function that the clock calls at the time `due`, unless the timer is canceled before.

    `number` orders timers of the same time by their creation. A timer that has run also counts as
    canceled.
    """

    due: float
    number: int
    action: Callable[[], None] = field(compare=False)
    background: bool = field(default=False, compare=False)
    cancelled: bool = field(default=False, compare=False)


class Clock:
    """The simulated time in seconds since `EPOCH`, and the timers that run when it passes."""

    def __init__(self, tick: float = 0.0) -> None:
        """Starts the time at 0 seconds, without timers.

        If `tick` is not 0, timers run only at multiples of `tick` seconds, because each time is
        rounded up. If `tick` is a power of two, all times are exact floats, so a repeated scenario
        repeats exactly.
        """
        self.now = 0.0
        self._tick = tick
        self._timers: list[Timer] = []
        self._count = 0
        self._foreground = 0

    def after(
        self, seconds: float, action: Callable[[], None], *, background: bool = False
    ) -> Timer:
        """Schedules a function to run once, the given seconds from now; returns its timer.

        `background` is True if the world counts as being at rest while only such timers are left.
        """
        self._count += 1
        due = self.now + max(seconds, 0.0)
        if self._tick:
            due = ceil(due / self._tick) * self._tick
        timer = Timer(due, self._count, action, background)
        heapq.heappush(self._timers, timer)
        self._foreground += not background
        return timer

    def cancel(self, timer: Timer | None) -> None:
        """Cancels a timer. Does nothing for None, and for a timer that has run or was canceled."""
        if timer is not None and not timer.cancelled:
            timer.cancelled = True
            self._foreground -= not timer.background

    def step(self, until: float = float("inf")) -> bool:
        """Moves the time to the next timer that is due by the time `until`, and runs the timer.

        Returns False, and leaves the time unchanged, if there is no such timer.
        """
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
    def has_foreground_timers(self) -> bool:
        """True if at least one timer is scheduled that is not a background timer."""
        return self._foreground > 0

    def unix(self) -> float:
        """Returns the simulated time in seconds since 1970."""
        return EPOCH.timestamp() + self.now

    def timestamp(self, seconds: float | None = None) -> str:
        """Returns a time in the API server's format, in whole seconds.

        `seconds` is the time in seconds since `EPOCH`; None stands for the present time.
        """
        moment = EPOCH + timedelta(seconds=self.now if seconds is None else seconds)
        return moment.strftime("%Y-%m-%dT%H:%M:%SZ")

    def parse_time(self, text: str | None) -> float | None:
        """Returns the time of a timestamp of the API, in seconds since `EPOCH`.

        Returns None if the text is missing or is not a timestamp with a time zone.
        """
        try:
            found = datetime.fromisoformat(text or "")
        except ValueError:
            return None
        if found.tzinfo is None:
            return None
        return (found - EPOCH).total_seconds()
