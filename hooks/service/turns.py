"""The order of decisions in a worker: a few run at a time, and no namespace takes every place.

A request waits for one of the places of its namespace, then for one of all places. Both waits end
in order of arrival. All callers are greenlets of the worker's loop, so the counters need no lock.
"""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from gevent.lock import Semaphore

from hooks.service import metrics
from hooks.service.errors import RefusedError

AT_ONCE: Final = 4  # Decisions of a worker at a time: more are no faster, and need more memory
OF_A_NAMESPACE: Final = AT_ONCE - 1  # Decisions of one namespace at a time
MOST: Final = 256  # Requests of a worker that wait or are decided
MOST_OF_A_NAMESPACE: Final = MOST // 2


class Turns:
    """The places of one worker."""

    def __init__(self) -> None:
        """Starts with all places free."""
        self._all = Semaphore(AT_ONCE)
        self._of: dict[str, Semaphore] = {}
        self._requests = Counter[str]()

    @contextmanager
    def turn(self, namespace: str) -> Iterator[None]:
        """Waits for a place, and keeps the place until the end of the block.

        Raises RefusedError if too many requests wait, in all or of this namespace.
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
