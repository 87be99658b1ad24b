"""Limits how many decisions a worker makes at the same time, in all and for each namespace.

A request first waits for a free place of its namespace, and then for a free place of the worker.
Both queues are in order of arrival. A namespace has fewer places than the worker, so one namespace
cannot block all others. All callers are greenlets of one event loop, so the counters need no lock.
"""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from gevent.lock import Semaphore

from hooks.service import metrics
from hooks.service.errors import RefusedError

AT_ONCE: Final = 4  # Decisions of a worker at a time; more would need memory and gain no speed
OF_A_NAMESPACE: Final = AT_ONCE - 1  # Decisions of one namespace at a time
MOST: Final = 256  # The most requests of a worker that wait or are being decided
MOST_OF_A_NAMESPACE: Final = MOST // 2  # The most of these requests that one namespace may have


class Turns:
    """Limits how many decisions one worker makes at the same time, in all and for one namespace.

    Further requests wait in order of arrival. If `MOST` requests wait, others are refused.
    """

    def __init__(self) -> None:
        """Starts with all places free and no waiting requests."""
        self._all = Semaphore(AT_ONCE)
        self._of: dict[str, Semaphore] = {}
        self._requests = Counter[str]()

    @contextmanager
    def turn(self, namespace: str) -> Iterator[None]:
        """Waits for a place to decide a request, and keeps the place until the `with` block ends.

        Raises RefusedError if the worker or the namespace has too many requests already.
        `namespace` is that of the TApp; empty if it is unknown.
        """
        own = self._requests[namespace]
        if self._requests.total() >= MOST or own >= MOST_OF_A_NAMESPACE:
            raise RefusedError(503, "too many requests wait to be decided; try again")
        self._requests[namespace] += 1
        places = self._of.setdefault(namespace, Semaphore(OF_A_NAMESPACE))
        try:
            with metrics.IN_FLIGHT.track_inprogress(), places, self._all:
                yield
        finally:
            self._requests[namespace] -= 1
            if not self._requests[namespace]:
                del self._requests[namespace], self._of[namespace]
