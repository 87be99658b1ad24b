"""The loop around the syncs of a controller: queue, retries with back-off, resync, restart.

`Loop` is the base class of the composite and the decorator controller. Each key in its `WorkQueue`
stands for one object. A sync has two phases. `_decide` reads, calls the hook, and returns a
function that writes. After `hook_seconds` of simulated time, this function is called. Source:
processNextWorkItem in Metacontroller 4.17.2, pkg/controller/composite/controller.go and
pkg/controller/decorator/controller.go, which are alike.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterable
from typing import Generic, TypeVar

from simulator.api.store import ApiError
from simulator.metacontroller.claiming import ClaimError
from simulator.metacontroller.hook_client import HookError
from simulator.metacontroller.protocol import TooManyRequestsError
from simulator.objects.clock import Clock, Timer
from simulator.objects.kinds import UnknownKindError

FIRST_RETRY, LONGEST_RETRY = 0.005, 1000.0
# Most doublings of FIRST_RETRY. After so many doublings, the delay is certainly the longest one.
# Without this limit, the power of two would overflow.
MAX_DOUBLINGS = 32
# Simulated seconds of every sync. So syncs that repeat without end move the clock, and a test that
# waits for rest ends with an error.
SYNC_SECONDS = 0.001

K = TypeVar("K", bound=Hashable)


class WorkQueue(Generic[K]):
    """Schedules the syncs of objects: calls `process` with a key, but never twice at the same time.

    If there are several delayed requests for a key, the earliest counts. A failed sync is retried
    after 5 ms. This delay doubles with each further failure, up to 1,000 s, and a success resets
    it. Source: client-go's rate-limiting work queue.

    Args:
        clock: the simulated time.
        process: starts the sync of a key. The end of the sync is reported with `done`.
        delay: seconds between a request and the sync, so that several requests become one sync.
    """

    def __init__(self, clock: Clock, process: Callable[[K], None], delay: float) -> None:
        self.delay = delay
        self._clock = clock
        self._process = process
        self._ready: dict[K, Timer] = {}
        self._delayed: dict[K, Timer] = {}
        self._running: set[K] = set()
        self._run_again: set[K] = set()
        self._failures: dict[K, int] = {}

    def add(self, key: K) -> None:
        """Requests a sync of a key soon. Several requests before the start of the sync become one
        sync.
        """
        if key in self._running:
            self._run_again.add(key)
        elif key not in self._ready:
            self._ready[key] = self._clock.after(
                max(self.delay, SYNC_SECONDS), lambda: self._start(key, self._ready)
            )

    def add_after(self, key: K, seconds: float, *, background: bool = False) -> None:
        """Requests a sync of a key after the given number of seconds.

        `background` is True if the world counts as being at rest while only such requests wait
        (`Clock`).
        """
        timer = self._delayed.get(key)
        if timer is not None:
            if timer.due <= self._clock.now + seconds:
                return
            self._clock.cancel(timer)
        self._delayed[key] = self._clock.after(
            max(seconds, SYNC_SECONDS),
            lambda: self._start(key, self._delayed),
            background=background,
        )

    def done(self, key: K, *, failed: bool = False) -> None:
        """Reports that the sync of a key has ended.

        A failed sync is retried after its back-off. If the key was requested during the sync, it is
        synced again.
        """
        self._running.discard(key)
        if failed:
            failures = self._failures.get(key, 0)
            self._failures[key] = failures + 1
            self.add_after(
                key, min(FIRST_RETRY * 2.0 ** min(failures, MAX_DOUBLINGS), LONGEST_RETRY)
            )
        else:
            self._failures.pop(key, None)
        if key in self._run_again:
            self._run_again.discard(key)
            self.add(key)

    def clear(self) -> None:
        """Cancels all requests, and resets the back-offs of all keys."""
        for timer in (*self._ready.values(), *self._delayed.values()):
            self._clock.cancel(timer)
        self._ready.clear()
        self._delayed.clear()
        self._running.clear()
        self._run_again.clear()
        self._failures.clear()

    def _start(self, key: K, queue: dict[K, Timer]) -> None:
        del queue[key]
        if key in self._running:
            self._run_again.add(key)
            return
        self._running.add(key)
        self._process(key)


SYNC_DELAY = 0.1

Writes = Callable[[], None]
_FAILURES = (ApiError, HookError, ClaimError, UnknownKindError)


class Loop(ABC, Generic[K]):
    """The base class of controllers: syncs objects by their keys, one after the other.

    Attributes:
        outcomes: key -> error of the object's last sync; empty after a success.
        hook_seconds: simulated seconds between the reads and the writes of a sync.
        on_failure: called with key and error for each failed sync.
        queue: the queue of the keys that have to be synced.
    """

    def __init__(self, clock: Clock, resync_seconds: float) -> None:
        self.outcomes: dict[K, str] = {}
        self.hook_seconds = 0.0
        self.on_failure: Callable[[K, str], None] = lambda _key, _error: None
        self.queue: WorkQueue[K] = WorkQueue(clock, self._process, SYNC_DELAY)
        self._clock = clock
        self._resync_seconds = resync_seconds
        self._generation = 0
        self._schedule_resync(self._generation)

    def restart(self) -> None:
        """Drops all state in memory and syncs every cached object.

        A new process of the controller does the same.
        """
        self._generation += 1
        self.outcomes.clear()
        self.queue.clear()
        self._forget()
        self._schedule_resync(self._generation)
        self._enqueue_all()

    @abstractmethod
    def _keys(self) -> Iterable[K]:
        """Returns the keys of all objects in the cache that the controller syncs."""

    @abstractmethod
    def _decide(self, key: K) -> Writes | None:
        """Runs the first phase of a sync: reads the object, calls the hook, and decodes the
        response.

        Returns a function for the second phase, which writes; None if the object needs no sync.
        """

    def _forget(self) -> None:
        """Drops the state in memory that a subclass keeps; called by `restart`."""

    def _schedule_resync(self, generation: int) -> None:
        def resync() -> None:
            # A timer that was started before a restart must not run afterwards.
            if generation == self._generation:
                self._enqueue_all()
                self._schedule_resync(generation)

        self._clock.after(self._resync_seconds, resync, background=True)

    def _enqueue_all(self) -> None:
        for key in self._keys():
            self.queue.add(key)

    def _process(self, key: K) -> None:
        try:
            write = self._decide(key)
        except _FAILURES as error:
            self._fail(key, error)
            return
        if write is None:
            self.outcomes.pop(key, None)
            self.queue.done(key)
        elif self.hook_seconds:
            generation, decided = self._generation, write
            self._clock.after(
                self.hook_seconds,
                lambda: self._finish(key, decided) if generation == self._generation else None,
            )
        else:
            self._finish(key, write)

    def _finish(self, key: K, write: Writes) -> None:
        try:
            write()
        except _FAILURES as error:
            self._fail(key, error)
        else:
            self.outcomes[key] = ""
            self.queue.done(key)

    def _fail(self, key: K, error: Exception) -> None:
        self.outcomes[key] = str(error)
        if isinstance(error, TooManyRequestsError):
            self.queue.add_after(key, error.retry_after)
            self.queue.done(key)
        else:
            self.on_failure(key, str(error))
            self.queue.done(key, failed=True)
