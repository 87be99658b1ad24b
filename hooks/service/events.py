"""Writes Events in the background, with the limits of client-go's event recorder.

`Recorder.queue` puts the Events of a sync into a queue. One thread in each worker creates the
Events one after the other, so no sync waits for the API server. A token bucket for each TApp limits
its Events, as client-go's spam filter does. A full queue drops its oldest Event. The metric
`tapp_hook_events_total` counts Events that were limited or dropped.
"""

import atexit
import os
import threading
import time
from collections import OrderedDict, deque
from collections.abc import Callable
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any, Final

from hooks.service import metrics
from hooks.service.api_errors import RejectedError, TemporaryError
from hooks.service.logs import LOGGER
from tapp.answer.conditions import Conditions
from tapp.answer.events import Event, events
from tapp.declared.model import TApp
from tapp.plan import Plan

Document = dict[str, Any]

CONTROLLER: Final = "tapp-hooks"
QUEUED: Final = 1_000  # The most Events that wait in a worker; an Event has about 1 KB
PAUSES = (1.0, 2.0, 4.0, 8.0)
"""Seconds between the attempts to create one Event. The API server may ask for longer pauses, up to
the last value."""
REMEMBERED, FOR = 5_000, 3600.0
"""How many names of Events a worker remembers, and for how many seconds, to create no Event twice.
The API server keeps Events for an hour by default (--event-ttl)."""
BURST: Final = 25  # Tokens of a full bucket: the Events that a TApp may have at once
SECONDS_PER_EVENT: Final = 300.0  # Seconds until a bucket gets one more token
BUCKETS: Final = 4_096  # TApps with a bucket; the least recently used bucket is dropped first
QUIET: Final = 60.0  # Seconds between two log lines about Events that could not be created


class Outcome(StrEnum):
    """The result of an attempt to create an Event (docs/monitoring.md, "Events").

    `exists` means that an Event of that name existed already, `limited` that the TApp has had too
    many Events, and `dropped` that the queue was full or the service has ended. `failed` means that
    all attempts failed, and `refused` that the API server rejected the Event for good.
    """

    CREATED = "created"
    EXISTS = "exists"
    LIMITED = "limited"
    DROPPED = "dropped"
    FAILED = "failed"
    REFUSED = "refused"


class Recorder:
    """Queues the Events of syncs; a separate thread sends them to the API server."""

    def __init__(
        self,
        create: Callable[[Document], bool],
        instance: str,
        *,
        queued: int = QUEUED,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Prepares the queue. The first Event starts the thread, because a fork has no threads.

        Args:
            create: creates an Event, as `Cluster.create` does.
            instance: name of this replica in the Events (`reportingInstance`).
            queued: the most Events that wait.
            clock: returns seconds that never go back.
        """
        self._create, self._instance, self._clock = create, instance[:128] or CONTROLLER, clock
        self._queue, self._queued = deque[Document](), queued
        self._changed = threading.Condition()
        self._taken: OrderedDict[str, float] = OrderedDict()
        self._buckets: OrderedDict[tuple[str, str], tuple[float, float]] = OrderedDict()
        self._logged = float("-inf")
        self._pid = 0

    def queue(self, plan: Plan, conditions: Conditions) -> None:
        """Queues the Events of a sync.

        Does not wait for the API server, and never raises. Events that are over the limit of the
        TApp are dropped and counted.
        """
        try:
            tapp = plan.world.tapp
            for event in events(plan, conditions):
                if self._may_write(tapp, event):
                    self._put(document_of(tapp, event, plan.now, self._instance))
        except Exception as error:  # noqa: BLE001 - no error here may fail the sync
            _count(Outcome.FAILED)
            LOGGER.error("the Events of a sync cannot be queued", exc_info=error)

    def close(self, seconds: float = 2.0) -> None:
        """Ends the thread, which has some seconds left to create the queued Events.

        The Events that remain after `seconds` are dropped and counted.
        """
        if self._pid != os.getpid():
            return
        self._stopping.set()
        with self._changed:
            self._changed.notify()
        self._thread.join(seconds)
        while self._queue:
            self._queue.popleft()
            _count(Outcome.DROPPED)

    def _may_write(self, tapp: TApp, event: Event) -> bool:
        """Takes a token and returns True, or returns False if the Event must not be created.

        An Event must not be created if this worker has created an Event of that name already, or if
        the bucket of the TApp is empty.
        """
        key = (tapp.metadata.namespace, tapp.metadata.name)
        with self._changed:
            now = self._clock()
            if self._taken.get(event.name, float("-inf")) > now - FOR:
                return False
            tokens, at = self._buckets.pop(key, (float(BURST), now))
            tokens = min(tokens + (now - at) / SECONDS_PER_EVENT, BURST)
            may = tokens >= 1
            self._buckets[key] = (tokens - may, now)
            if may:
                self._taken.pop(event.name, None)
                self._taken[event.name] = now
            for known, most in ((self._buckets, BUCKETS), (self._taken, REMEMBERED)):
                if len(known) > most:
                    known.popitem(last=False)
        if not may:
            _count(Outcome.LIMITED)
        return may

    def _put(self, document: Document) -> None:
        """Adds an Event to the queue.

        If the queue is full, its oldest Event is dropped.
        """
        lost = None
        with self._changed:
            self._ensure_thread()
            if len(self._queue) >= self._queued:
                lost = self._queue.popleft()
            self._queue.append(document)
            self._changed.notify()
        if lost is not None:
            self._drop(
                lost["metadata"]["name"], Outcome.DROPPED, "too many Events wait to be written"
            )

    def _ensure_thread(self) -> None:
        """Starts the thread once in each process, because a fork inherits no threads."""
        if self._pid == os.getpid():
            return
        self._queue.clear()
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="events", daemon=True)
        self._pid = os.getpid()
        self._thread.start()
        atexit.register(self.close)

    def _run(self) -> None:
        """Creates one Event after the other, until `close` is called and the queue is empty."""
        while (document := self._next()) is not None:
            try:
                outcome, failure = self._write(document)
            except Exception as error:  # noqa: BLE001 - no error may end the thread
                outcome, failure = Outcome.FAILED, f"{type(error).__name__}: {error}"
            if failure:
                self._drop(document["metadata"]["name"], outcome, failure)
            else:
                _count(outcome)

    def _next(self) -> Document | None:
        """Waits for the next Event in the queue and returns it.

        Returns None if the queue is empty after `close`.
        """
        with self._changed:
            while not self._queue and not self._stopping.is_set():
                self._changed.wait()
            return self._queue.popleft() if self._queue else None

    def _write(self, document: Document) -> tuple[Outcome, str]:
        """Creates an Event, with several attempts if the API server fails for a moment.

        Returns the outcome and the last error; the error is empty if the Event exists now.
        """
        failure = ""
        for pause in (*PAUSES, 0.0):
            try:
                made = self._create(document)
            except RejectedError as error:
                return Outcome.REFUSED, str(error)
            except TemporaryError as error:
                failure, seconds = str(error), max(pause, error.seconds)
            else:
                return (Outcome.CREATED if made else Outcome.EXISTS), ""
            if not pause or self._stopping.wait(min(seconds, PAUSES[-1])):
                break  # this was the last attempt, or `close` ends the thread
        return Outcome.FAILED, failure

    def _drop(self, name: str, outcome: Outcome, failure: str) -> None:
        """Counts an Event that was not created, and lets a later sync queue the Event again.

        Args:
            name: the name of the Event.
            outcome: the outcome to count.
            failure: the reason, for the log.
        """
        _count(outcome)
        with self._changed:
            self._taken.pop(name, None)
            now = self._clock()
            silent = now - self._logged < QUIET
            self._logged = self._logged if silent else now
        if not silent:
            fields = {"outcome": outcome, "event": name, "error": failure}
            LOGGER.warning("an Event was not written", extra={"fields": fields})


def _count(outcome: Outcome) -> None:
    """Counts an outcome in the metrics."""
    metrics.EVENTS.labels(outcome.value).inc()


def document_of(tapp: TApp, event: Event, at: float, instance: str) -> Document:
    """Returns an Event as JSON (`events.k8s.io/v1`).

    Args:
        tapp: the TApp that the Event is about.
        event: the Event; it may name a pod, which becomes the related object.
        at: the time of the Event, in seconds since the epoch.
        instance: the name of this replica of the service.
    """
    meta = tapp.metadata
    document: Document = {
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "metadata": {"name": event.name, "namespace": meta.namespace},
        "eventTime": datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ"),
        "reportingController": CONTROLLER,
        "reportingInstance": instance,
        "type": "Warning" if event.warning else "Normal",
        "reason": event.reason,
        "action": event.action,
        "note": event.note,
        "regarding": {
            "apiVersion": tapp.api_version,
            "kind": tapp.kind,
            "namespace": meta.namespace,
            "name": meta.name,
            "uid": meta.uid,
        },
    }
    if event.pod is not None:
        name, uid = event.pod
        pod = {"apiVersion": "v1", "kind": "Pod", "namespace": meta.namespace, "name": name}
        document["related"] = {**pod, "uid": uid} if uid else pod
    return document
