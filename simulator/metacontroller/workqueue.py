"""Metacontroller's queue of parents to sync.

Source: client-go's rate-limiting work queue. One entry per parent, however often it is added; a
parent that is being synced is queued again afterwards; of several delayed adds the earliest counts;
failures back off from 5 ms, doubling, to 1,000 s, and a success forgets them.
"""

from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

from simulator.objects.clock import Clock, Timer

FIRST_RETRY, LONGEST_RETRY = 0.005, 1000.0
# More doublings than lead to the longest retry; without a bound the power overflows.
DOUBLINGS = 32
# A sync takes some time, so that a hot loop is a loop through time.
SHORTEST = 0.001

K = TypeVar("K", bound=Hashable)


class WorkQueue(Generic[K]):
    """Calls `process` for one parent at a time and never twice at once for the same."""

    def __init__(self, clock: Clock, process: Callable[[K], None], delay: float) -> None:
        self.delay = delay
        self._clock = clock
        self._process = process
        self._soon: dict[K, Timer] = {}
        self._later: dict[K, Timer] = {}
        self._active: set[K] = set()
        self._again: set[K] = set()
        self._failures: dict[K, int] = {}

    def add(self, key: K) -> None:
        """Ask for a sync; repeated requests become one."""
        if key in self._active:
            self._again.add(key)
        elif key not in self._soon:
            self._soon[key] = self._clock.after(
                max(self.delay, SHORTEST), lambda: self._take(key, self._soon)
            )

    def add_after(self, key: K, seconds: float, *, background: bool = False) -> None:
        """Ask for a sync some time from now; in the background nobody waits for it to come."""
        timer = self._later.get(key)
        if timer is not None:
            if timer.due <= self._clock.now + seconds:
                return
            self._clock.cancel(timer)
        self._later[key] = self._clock.after(
            max(seconds, SHORTEST), lambda: self._take(key, self._later), background=background
        )

    def done(self, key: K, *, failed: bool = False) -> None:
        """Report the end of a sync; a failed one is tried again after its back-off."""
        self._active.discard(key)
        if failed:
            failures = self._failures.get(key, 0)
            self._failures[key] = failures + 1
            self.add_after(key, min(FIRST_RETRY * 2.0 ** min(failures, DOUBLINGS), LONGEST_RETRY))
        else:
            self._failures.pop(key, None)
        if key in self._again:
            self._again.discard(key)
            self.add(key)

    def clear(self) -> None:
        """Forget everything."""
        for timer in (*self._soon.values(), *self._later.values()):
            self._clock.cancel(timer)
        self._soon.clear()
        self._later.clear()
        self._active.clear()
        self._again.clear()
        self._failures.clear()

    def _take(self, key: K, queue: dict[K, Timer]) -> None:
        del queue[key]
        if key in self._active:
            self._again.add(key)
            return
        self._active.add(key)
        self._process(key)
