"""Fewer syncs of large TApps: what comes soon after the last answer waits before it is decided.

While Metacontroller waits for an answer, all that happens to a TApp becomes one more sync of it; so
a wait here is syncs saved there, where each costs a millisecond a pod. A request that waits holds
its bytes and one of Metacontroller's workers, but no turn and no lock, and the number of such
requests is limited. Each process paces for itself.

The decision is the one that the request would have had on arrival, by that time's clock.
"""

import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final, NamedTuple

import msgspec

from hooks.wire.split import Pieces
from tapp.words.kinds import POD

SMALL: Final = 50
"""TApps with fewer pods never wait."""
MOST: Final = 8
"""Requests that wait in one process at the same time: two processes leave four of Metacontroller's
20 workers to other TApps."""
MOST_BYTES: Final = 64 << 20
"""Their size in memory."""
_REMEMBERED: Final = 4_096
"""TApps whose last answer is remembered."""

HURRY: Final = threading.Event()
"""Set while nothing is to wait: `gunicorn.conf.py` clears it in a worker. Elsewhere, as in tests
and simulations, a wait would stop everything."""
HURRY.set()


class _Meta(msgspec.Struct, frozen=True):
    uid: str = ""
    generation: Any = None
    deletion_timestamp: Any = msgspec.field(name="deletionTimestamp", default=None)


_decode_meta = msgspec.json.Decoder(_Meta).decode


class Asked(NamedTuple):
    """The part of a request that tells if it waits.

    Attributes:
        uid: whose it is, "" where it does not tell, or never waits.
        wish: stands for what its author wants: another one has changed since the last answer.
        pods: how many it has.
        size: bytes of its body.
    """

    uid: str
    wish: int
    pods: int
    size: int


def asked_by(pieces: Pieces, size: int) -> Asked:
    """The part of a request that tells if it waits.

    A small one has no uid here, nor has one whose parent makes no sense: none of them waits.
    """
    pods = len(pieces.children[POD])
    if pods < SMALL:
        return Asked("", 0, pods, size)
    meta = _Meta()
    with suppress(msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        meta = _decode_meta(pieces.parent.get("metadata", b"{}"))
    spec = bytes(pieces.parent.get("spec", b""))
    wish = hash((repr(meta.generation), repr(meta.deletion_timestamp), spec))
    return Asked(meta.uid, wish, pods, size)


class Pacer:
    """Lets requests wait; one for a process, used by all its threads."""

    def __init__(
        self,
        longest: float,
        seconds_per_pod: float,
        clock: Callable[[], float] = time.monotonic,
        hurry: threading.Event = HURRY,
    ) -> None:
        """Paces answers of a TApp by so many seconds for each of its pods, at most by `longest`.

        `clock` never goes back; while `hurry` is set nothing waits.
        """
        self._longest, self._seconds_per_pod = longest, seconds_per_pod
        self._clock, self._hurry = clock, hurry
        self._lock = threading.Lock()
        self._answers: OrderedDict[str, tuple[float, int]] = OrderedDict()
        self._waiting = self._bytes = 0

    def pace(self, asked: Asked) -> float:
        """Waits, where that is due; returns for how many seconds."""
        began = self._clock()
        left = self._due(asked) - began
        if left <= 0 or self._hurry.is_set() or not self._enter(asked.size):
            return 0.0
        try:
            self._hurry.wait(left)
        finally:
            with self._lock:
                self._waiting -= 1
                self._bytes -= asked.size
        return self._clock() - began

    def answered(self, asked: Asked) -> None:
        """Takes note of an answer that has been made."""
        if not asked.uid or not self._longest:
            return
        with self._lock:
            self._answers[asked.uid] = self._clock(), asked.wish
            self._answers.move_to_end(asked.uid)
            if len(self._answers) > _REMEMBERED:
                self._answers.popitem(last=False)

    def _due(self, asked: Asked) -> float:
        """The time of its turn, by our clock."""
        at, wish = self._answers.get(asked.uid, (0.0, None))
        if wish != asked.wish:
            return at
        return at + min(self._longest, self._seconds_per_pod * asked.pods)

    def _enter(self, size: int) -> bool:
        """True if there is room for one more that waits."""
        with self._lock:
            if self._waiting >= MOST or self._bytes + size > MOST_BYTES:
                return False
            self._waiting += 1
            self._bytes += size
            return True
