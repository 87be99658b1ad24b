"""The loop of every controller of Metacontroller around a sync: queue, back-off, resync, restart.

Source: processNextWorkItem of the composite and of the decorator controller, which are alike; the
handlers that are called again for every object once in a resync period.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterable
from typing import Generic, TypeVar

from simulator.api.store import ApiError
from simulator.metacontroller.claiming import ClaimError
from simulator.metacontroller.hook_client import HookError
from simulator.metacontroller.protocol import TooManyRequestsError
from simulator.metacontroller.workqueue import WorkQueue
from simulator.objects.clock import Clock
from simulator.objects.kinds import UnknownKindError

SYNC_DELAY = 0.1

K = TypeVar("K", bound=Hashable)
Writes = Callable[[], None]
_FAILURES = (ApiError, HookError, ClaimError, UnknownKindError)


class Loop(ABC, Generic[K]):
    """Syncs objects by their keys, one after the other.

    `outcomes` holds the error of each object's last sync, empty after a success. `hook_seconds`
    is the simulated time between what a sync observes and what it writes. `on_failure` hears of
    each sync that failed.
    """

    def __init__(self, clock: Clock, resync_seconds: float) -> None:
        self.outcomes: dict[K, str] = {}
        self.hook_seconds = 0.0
        self.on_failure: Callable[[K, str], None] = lambda _key, _error: None
        self.queue: WorkQueue[K] = WorkQueue(clock, self._process, SYNC_DELAY)
        self._clock = clock
        self._resync_seconds = resync_seconds
        self._life = 0
        self._plan_resync(self._life)

    def restart(self) -> None:
        """Lose everything that is only in memory, and start over from the cache."""
        self._life += 1
        self.outcomes.clear()
        self.queue.clear()
        self._forget()
        self._plan_resync(self._life)
        self._enqueue_all()

    @abstractmethod
    def _keys(self) -> Iterable[K]:
        """Return the keys of all objects in the cache."""

    @abstractmethod
    def _decide(self, key: K) -> Writes | None:
        """Do all that comes before the answer of the hook is acted on; return what does that.

        None means that there is nothing to sync.
        """

    def _forget(self) -> None:
        """Lose what else is only in memory."""

    def _plan_resync(self, life: int) -> None:
        def resync() -> None:
            if life == self._life:
                self._enqueue_all()
                self._plan_resync(life)

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
            life, decided = self._life, write
            self._clock.after(
                self.hook_seconds,
                lambda: self._conclude(key, decided) if life == self._life else None,
            )
        else:
            self._conclude(key, write)

    def _conclude(self, key: K, write: Writes) -> None:
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
            self.queue.add_after(key, error.seconds)
            self.queue.done(key)
        else:
            self.on_failure(key, str(error))
            self.queue.done(key, failed=True)
