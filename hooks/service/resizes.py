"""Resizes of pods on their way to the API server: in the background, and never a sync's trouble.

A sync only puts them into a queue. One thread per worker process sends them, each of them once:
what is lost, refused or overtaken is decided again by the next sync. Nothing is remembered but what
was asked for in the last seconds, so that syncs in a row do not ask again and again.
"""

import os
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from contextlib import suppress
from enum import StrEnum
from queue import Full, Queue
from typing import Any

from hooks.service import metrics
from hooks.service.answers import UnansweredError, WriteRefusedError
from hooks.service.logs import LOGGER
from tapp.answer.resizes import Patch, patches
from tapp.plan import Plan

Document = dict[str, Any]

QUEUED = 1_000  # Resizes that wait in a worker process; about 1 KB each
STALE = 1.0  # Seconds after its sync that it is still sent: a later one may decide otherwise
PAUSE = 5.0  # Seconds until the same is asked again of a pod; a sync follows after twice that
REMEMBERED = 5_000  # Pods of which this process knows when it asked last


class Outcome(StrEnum):
    """The outcome of a resize (docs/install.md, "Resizes")."""

    RESIZED = "resized"
    OVERTAKEN = "overtaken"
    DROPPED = "dropped"
    FAILED = "failed"
    REFUSED = "refused"


class Resizer:
    """Takes resizes from syncs and sends them in a thread of its own."""

    def __init__(
        self,
        resize: Callable[[str, str, Document], bool],
        *,
        queued: int = QUEUED,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Starts no thread yet: a process that is forked off later would not have it.

        `resize` is one like `cluster.Cluster.resize`; `queued` may wait.
        """
        self._resize, self._clock, self._queued = resize, clock, queued
        self._lock = threading.Lock()
        self._asked: OrderedDict[str, tuple[float, Document]] = OrderedDict()
        self._pid = 0

    def ask(self, plan: Plan) -> None:
        """Hands over what a sync has decided; never fails, never waits."""
        try:
            for patch in patches(plan):
                self._put(patch)
        except Exception as error:  # noqa: BLE001 - whatever it is, the sync has been decided
            _count(Outcome.FAILED)
            LOGGER.error("resizes", exc_info=error)

    def close(self, seconds: float = 2.0) -> None:
        """Ends the thread; what still waits is decided again by another sync."""
        if self._pid == os.getpid():
            self._stopped = True
            with suppress(Full):
                self._queue.put_nowait(None)  # a full queue keeps the thread awake anyway
            self._thread.join(seconds)

    def _put(self, patch: Patch) -> None:
        with self._lock:
            now, uid = self._clock(), patch.document["metadata"]["uid"]
            at, before = self._asked.get(uid, (float("-inf"), {}))
            if before == patch.document["spec"] and now - at < PAUSE:
                return
            self._asked[uid] = now, patch.document["spec"]
            self._asked.move_to_end(uid)
            while len(self._asked) > REMEMBERED:
                self._asked.popitem(last=False)
            self._ensure_thread()
        try:
            self._queue.put_nowait((now, patch))
        except Full:
            self._tell(patch, Outcome.DROPPED, "the queue is full")

    def _ensure_thread(self) -> None:
        """The thread and its queue belong to this process; a fork has neither."""
        if self._pid == os.getpid():
            return
        self._queue: Queue[tuple[float, Patch] | None] = Queue(self._queued)
        self._stopped = False
        self._thread = threading.Thread(target=self._run, name="resizes", daemon=True)
        self._pid = os.getpid()
        self._thread.start()

    def _run(self) -> None:
        while (found := self._queue.get()) is not None and not self._stopped:
            at, patch = found
            if self._clock() - at > STALE:
                self._forget(patch)
                _count(Outcome.DROPPED)
                continue
            try:
                done = self._resize(*patch)
            except WriteRefusedError as error:
                self._tell(patch, Outcome.REFUSED, str(error))
            except UnansweredError as error:
                self._tell(patch, Outcome.FAILED, str(error))
            except Exception as error:  # noqa: BLE001 - the thread outlives whatever it meets
                self._tell(patch, Outcome.FAILED, f"{type(error).__name__}: {error}")
            else:
                _count(Outcome.RESIZED if done else Outcome.OVERTAKEN)
                if not done:
                    self._forget(patch)

    def _forget(self, patch: Patch) -> None:
        """The next sync sees the pod as it is by now, and may ask at once."""
        with self._lock:
            self._asked.pop(patch.document["metadata"]["uid"], None)

    def _tell(self, patch: Patch, outcome: Outcome, error: str) -> None:
        _count(outcome)
        pod = f"{patch.namespace}/{patch.name}"
        fields = {"outcome": outcome, "pod": pod, "error": error}
        LOGGER.warning("pod not resized", extra={"fields": fields})


def _count(outcome: Outcome) -> None:
    metrics.RESIZES.labels(outcome.value).inc()
