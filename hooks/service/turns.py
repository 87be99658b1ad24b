"""Who is decided when: a few requests at once, and syncs of large TApps in their own time."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext

from hooks.service import metrics
from hooks.service.pacing import Pacer, asked_by
from hooks.wire.memo import Memo
from hooks.wire.split import Pieces, split

AT_ONCE = 4
"""Requests that a worker decides at the same time: more are no faster, and hold more memory."""
LARGE = 4 << 20
"""Bytes above which a worker decides one request at a time: decoding it holds Python's lock, and
probes and small requests get through while the next one waits."""

Answering = Callable[[bytes], tuple[bytes, float]]
"""A request's body -> its answer's, and the seconds for which it waited to be decided."""


class Turns:
    """The turns of one process."""

    def __init__(self) -> None:
        """All are free."""
        self._turns, self._large = threading.BoundedSemaphore(AT_ONCE), threading.Lock()

    @contextmanager
    def _turn(self, body: bytes) -> Iterator[None]:
        large = self._large if len(body) > LARGE else nullcontext()
        with metrics.IN_FLIGHT.track_inprogress(), large, self._turns:
            yield

    def at_once(self, answer: Callable[[bytes], bytes]) -> Answering:
        """Answers in the next free turn."""

        def answering(body: bytes) -> tuple[bytes, float]:
            with self._turn(body):
                return answer(body), 0.0

        return answering

    def paced(
        self,
        decide: Callable[[Pieces, float, float], bytes],
        pacer: Pacer,
        memo: Memo,
        clock: Callable[[], float],
    ) -> Answering:
        """Answers when the pacer lets it, and without a turn until then.

        `decide` gets the request, the time of its arrival, and for how many seconds it has waited:
        what is decided is what would have been on arrival, since that is when it was observed.
        """

        def answering(body: bytes) -> tuple[bytes, float]:
            now = clock()
            with self._turn(body):
                pieces = split(body, memo)
            asked = asked_by(pieces, len(body))
            waited = pacer.pace(asked)
            if waited:
                metrics.PACED.observe(waited)
            with self._turn(body):
                text = decide(pieces, now, waited)
            pacer.answered(asked)
            return text, waited

        return answering
