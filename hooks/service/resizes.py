"""Sends the resizes of pods to the API server in the background.

A sync puts its resizes into a queue, and one thread in each worker sends each resize once. A resize
that is dropped, rejected or overtaken is decided again by the next sync. A worker remembers the
resizes of the last seconds, so that syncs in quick succession do not send the same resize again.
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
from hooks.service.api_errors import RejectedError, TemporaryError
from hooks.service.logs import LOGGER
from tapp.answer.resize_patches import Patch, patches
from tapp.plan import Plan

Document = dict[str, Any]

QUEUED = 1_000  # The most resizes that wait in a worker; a resize has about 1 KB
STALE = 1.0  # Seconds after which a queued resize is dropped: a later sync may decide differently
PAUSE = 5.0  # Seconds until the same resize of a pod is sent again; a sync follows after twice that
REMEMBERED = 5_000  # The number of pods of which a worker remembers the last resize


class Outcome(StrEnum):
    """The result of an attempt to resize a pod (docs/install.md, "Resizes").

    `overtaken` means that the pod has changed since the decision, and `dropped` that the resize
    waited too long or that the queue was full. `failed` means that the API server could not be
    reached or failed, and `refused` that it rejected the resize for good.
    """

    RESIZED = "resized"
    OVERTAKEN = "overtaken"
    DROPPED = "dropped"
    FAILED = "failed"
    REFUSED = "refused"


class Resizer:
    """Queues the resizes of syncs; a separate thread sends them to the API server."""

    def __init__(
        self,
        resize: Callable[[str, str, Document], bool],
        *,
        queued: int = QUEUED,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Prepares the queue. The first resize starts the thread, because a fork has no threads.

        Args:
            resize: patches a pod, as `Cluster.resize` does.
            queued: the most resizes that wait.
            clock: returns seconds that never go back.
        """
        self._resize, self._clock, self._queued = resize, clock, queued
        self._lock = threading.Lock()
        self._asked: OrderedDict[str, tuple[float, Document]] = OrderedDict()
        self._pid = 0

    def queue(self, plan: Plan) -> None:
        """Queues the resizes of a sync.

        Does not wait for the API server, and never raises.
        """
        try:
            for patch in patches(plan):
                self._put(patch)
        except Exception as error:  # noqa: BLE001 - no error here may fail the sync
            _count(Outcome.FAILED)
            LOGGER.error("the resizes of a sync cannot be queued", exc_info=error)

    def close(self, seconds: float = 2.0) -> None:
        """Ends the thread, and waits at most `seconds` for its end.

        Drops the queued resizes, which a later sync decides again.
        """
        if self._pid == os.getpid():
            self._stopped = True
            with suppress(Full):
                self._queue.put_nowait(None)  # the thread does not wait at a full queue
            self._thread.join(seconds)

    def _put(self, patch: Patch) -> None:
        """Adds a resize to the queue, unless the same resize was queued less than `PAUSE` seconds
        ago.
        """
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
            self._tell(patch, Outcome.DROPPED, "too many resizes wait to be sent")

    def _ensure_thread(self) -> None:
        """Starts the thread with a new queue, once in each process.

        A process that was forked from another one inherits no threads.
        """
        if self._pid == os.getpid():
            return
        self._queue: Queue[tuple[float, Patch] | None] = Queue(self._queued)
        self._stopped = False
        self._thread = threading.Thread(target=self._run, name="resizes", daemon=True)
        self._pid = os.getpid()
        self._thread.start()

    def _run(self) -> None:
        """Sends one resize after the other, until `close` is called."""
        while (found := self._queue.get()) is not None and not self._stopped:
            at, patch = found
            if self._clock() - at > STALE:
                self._forget(patch)
                _count(Outcome.DROPPED)
                continue
            try:
                done = self._resize(*patch)
            except RejectedError as error:
                self._tell(patch, Outcome.REFUSED, str(error))
            except TemporaryError as error:
                self._tell(patch, Outcome.FAILED, str(error))
            except Exception as error:  # noqa: BLE001 - no error may end the thread
                self._tell(patch, Outcome.FAILED, f"{type(error).__name__}: {error}")
            else:
                _count(Outcome.RESIZED if done else Outcome.OVERTAKEN)
                if not done:
                    self._forget(patch)

    def _forget(self, patch: Patch) -> None:
        """Lets the next sync send a resize of the same pod again immediately.

        The next sync knows the current state of the pod.
        """
        with self._lock:
            self._asked.pop(patch.document["metadata"]["uid"], None)

    def _tell(self, patch: Patch, outcome: Outcome, error: str) -> None:
        """Counts and logs a resize that was not done, with its outcome and the reason (`error`)."""
        _count(outcome)
        pod = f"{patch.namespace}/{patch.name}"
        fields = {"outcome": outcome, "pod": pod, "error": error}
        LOGGER.warning("a pod was not resized", extra={"fields": fields})


def _count(outcome: Outcome) -> None:
    """Counts an outcome in the metrics."""
    metrics.RESIZES.labels(outcome.value).inc()
