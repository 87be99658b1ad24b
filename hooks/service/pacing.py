"""Delays syncs of large TApps, so that Metacontroller calls less often.

A sync costs Metacontroller about a millisecond for each pod. While Metacontroller waits for a
response, it merges all further events of the TApp into one later sync. So `Pacer.pace` lets a sync
wait until some time has passed since the last response for the same TApp: seconds per pod times
pods, up to a maximum. New specs and deletions do not wait.

A request that waits keeps its body in memory and one of Metacontroller's workers busy, so the
number and the total size of waiting requests are limited. Each process of the service delays its
own requests only. The wait changes no decision: the service decides by the time at which the
request arrived.
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
"""Syncs of TApps with fewer pods never wait."""
MOST: Final = 8
"""The most requests that wait in one process at the same time. Two processes then leave four of
Metacontroller's 20 workers to other TApps."""
MOST_BYTES: Final = 64 << 20
"""The most bytes of all bodies that wait in one process at the same time."""
_REMEMBERED: Final = 4_096
"""The number of TApps of which a process remembers the time of the last response."""

HURRY: Final = threading.Event()
"""While this event is set, no request waits. `gunicorn.conf.py` clears the event in each worker; it
stays set in tests and simulations, where a wait would block the only thread."""
HURRY.set()


class _Meta(msgspec.Struct, frozen=True):
    """The parts of a TApp's metadata that determine whether a sync waits."""

    uid: str = ""
    generation: Any = None
    deletion_timestamp: Any = msgspec.field(name="deletionTimestamp", default=None)


_decode_meta = msgspec.json.Decoder(_Meta).decode


class PacedRequest(NamedTuple):
    """The parts of a sync request that determine whether the request waits.

    Attributes:
        uid: uid of the TApp, or "" if the request never waits.
        intent: hash of the TApp's generation, deletion time and spec. The request does not wait if
            this differs from the last request of the TApp.
        pods: number of pods in the request.
        size: bytes of the body.
    """

    uid: str
    intent: int
    pods: int
    size: int


def paced_request(pieces: Pieces, size: int) -> PacedRequest:
    """Returns the parts of a sync request that determine whether the request waits.

    The uid is empty, so that the request never waits, if the TApp has fewer than `SMALL` pods or if
    its metadata cannot be read.

    Args:
        pieces: the parts of the request.
        size: the length of the request's body in bytes.
    """
    pods = len(pieces.children[POD])
    if pods < SMALL:
        return PacedRequest("", 0, pods, size)
    meta = _Meta()
    with suppress(msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        meta = _decode_meta(pieces.parent.get("metadata", b"{}"))
    spec = bytes(pieces.parent.get("spec", b""))
    intent = hash((repr(meta.generation), repr(meta.deletion_timestamp), spec))
    return PacedRequest(meta.uid, intent, pods, size)


class Pacer:
    """Delays the sync requests of large TApps, so that Metacontroller merges more events into one.

    A process has one pacer, which all its threads use.
    """

    def __init__(
        self,
        longest: float,
        seconds_per_pod: float,
        clock: Callable[[], float] = time.monotonic,
        hurry: threading.Event = HURRY,
    ) -> None:
        """Sets the delay after a response.

        Args:
            longest: the longest delay in seconds; 0 means that no request waits.
            seconds_per_pod: seconds of delay for each pod of the TApp.
            clock: returns seconds that never go back.
            hurry: while this event is set, no request waits.
        """
        self._longest, self._seconds_per_pod = longest, seconds_per_pod
        self._clock, self._hurry = clock, hurry
        self._lock = threading.Lock()
        self._answers: OrderedDict[str, tuple[float, int]] = OrderedDict()
        self._waiting = self._bytes = 0

    def pace(self, request: PacedRequest) -> float:
        """Waits until a request may be decided, and returns the seconds of the wait.

        Returns 0 without a wait if the request need not wait, or if too many requests wait already.
        """
        began = self._clock()
        left = self._due(request) - began
        if left <= 0 or self._hurry.is_set() or not self._enter(request.size):
            return 0.0
        try:
            self._hurry.wait(left)
        finally:
            with self._lock:
                self._waiting -= 1
                self._bytes -= request.size
        return self._clock() - began

    def answered(self, request: PacedRequest) -> None:
        """Stores the time of a response; the delay of the TApp's next request counts from it.

        `request` is the request that was answered.
        """
        if not request.uid or not self._longest:
            return
        with self._lock:
            self._answers[request.uid] = self._clock(), request.intent
            self._answers.move_to_end(request.uid)
            if len(self._answers) > _REMEMBERED:
                self._answers.popitem(last=False)

    def _due(self, request: PacedRequest) -> float:
        """Returns when a request may be decided, in the seconds of the pacer's clock.

        A time in the past means that the request need not wait.
        """
        at, intent = self._answers.get(request.uid, (0.0, None))
        if intent != request.intent:
            return at
        return at + min(self._longest, self._seconds_per_pod * request.pods)

    def _enter(self, size: int) -> bool:
        """Counts a request as waiting and returns True.

        Returns False, without counting the request, if too many requests or bytes wait already.
        `size` is the length of the request's body in bytes.
        """
        with self._lock:
            if self._waiting >= MOST or self._bytes + size > MOST_BYTES:
                return False
            self._waiting += 1
            self._bytes += size
            return True
