"""Events on their way to the API server: in the background, bounded, and never a sync's trouble.

A sync only puts events into a queue. One thread per worker process writes them, one after the
other; where the API server is away the queue fills up, and what finds no place is dropped and
counted.
"""

import atexit
import os
import threading
import time
from collections import Counter, OrderedDict, deque
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from enum import StrEnum
from queue import Empty, Full, Queue
from typing import Any

from hooks.service import metrics
from hooks.service.answers import UnansweredError, WriteRefusedError
from hooks.service.logs import LOGGER
from tapp.answer.events import Event, events
from tapp.declared.model import TApp
from tapp.plan import Plan

Document = dict[str, Any]

CONTROLLER = "tapp-hooks"
QUEUED = 1_000  # Events that wait in a worker process; about 1 KB each
PAUSES = (1.0, 2.0, 4.0, 8.0)  # Seconds between attempts at one event, whatever is asked for
REMEMBERED, FOR = 5_000, 3600.0
"""Names that a process does not write twice, and for how many seconds: API servers keep events for
an hour (--event-ttl)."""
BURST, SECONDS_PER_EVENT = (25, 300.0)  # Of a TApp and reason, as of client-go's spam filter
OF_A_NAMESPACE = 40  # So many times as much may all TApps of a namespace tell, in all
BUCKETS = 2_000
LATE, LATE_PER_BUCKET = 1_000, 12
"""Events that wait for their TApp to be allowed one more: in all, and of one TApp and reason, which
tell as many in an hour."""
Key = tuple[str, str, str]  # Of a bucket: namespace, name, reason
LOOK = 10.0  # Seconds between two looks at what had to wait
QUIET = 60.0  # Seconds between two lines in the log about events that could not be written


class Outcome(StrEnum):
    """The outcome of an event (docs/watch.md, "Events")."""

    CREATED = "created"
    EXISTS = "exists"
    LIMITED = "limited"
    DROPPED = "dropped"
    FAILED = "failed"
    REFUSED = "refused"


class Recorder:
    """Takes events from syncs and writes them in a thread of its own."""

    def __init__(
        self,
        create: Callable[[Document], bool],
        instance: str,
        *,
        queued: int = QUEUED,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Starts no thread yet: a process that is forked off later would not have it.

        `create` is one like `cluster.Cluster.create`, `instance` who reports; `queued` may wait.
        """
        self._create, self._instance, self._clock = create, instance[:128] or CONTROLLER, clock
        self._queued = queued
        self._lock = threading.Lock()
        self._taken: OrderedDict[str, float] = OrderedDict()
        self._buckets: OrderedDict[Key, tuple[float, float]] = OrderedDict()
        self._late: dict[Key, deque[tuple[float, Document]]] = {}
        self._looked = float("-inf")
        self._logged = float("-inf")
        self._pid = 0

    def tell(self, plan: Plan, status: Mapping[str, Any]) -> None:
        """Queues what a sync has to tell; takes no time to speak of, and never fails."""
        try:
            tapp = plan.world.tapp
            for document in self._allowed_by_now():
                self._put(document)
            for event in events(plan, status):
                document = document_of(tapp, event, plan.now, self._instance)
                if self._is_news(event, document):
                    self._put(document)
        except Exception as error:  # noqa: BLE001 - whatever it is, the sync has been decided
            _count(Outcome.FAILED)
            LOGGER.error("events", exc_info=error)

    def close(self, seconds: float = 2.0) -> None:
        """Gives the thread some seconds to write what waits; the rest is dropped and counted."""
        if self._pid != os.getpid():
            return
        self._stopping.set()
        with suppress(Full):
            self._queue.put_nowait(None)  # a full queue keeps the thread awake anyway
        self._thread.join(seconds)
        with suppress(Empty):
            while True:
                if self._queue.get_nowait() is not None:
                    _count(Outcome.DROPPED)
        self._queue.put_nowait(None)  # for a thread that is still at its last event

    def _is_news(self, event: Event, document: Document) -> bool:
        """True if this process has not told it yet, and the TApp may tell so much.

        What it may not tell yet is told later: no other sync would, because the status says it.
        """
        of = document["regarding"]
        key = (of["namespace"], of["name"], event.reason)
        with self._lock:
            now = self._clock()
            if self._taken.get(event.name, float("-inf")) > now - FOR:
                return False
            late = self._late.get(key, ())
            may = not late and self._may_tell(key, now)
            fits = len(late) < LATE_PER_BUCKET and (may or self._fits_late(key))
            if may or fits:
                self._remember(event.name, now)
            if fits and not may:
                self._late.setdefault(key, deque()).append((now, document))
        if not may:
            _count(Outcome.LIMITED if fits else Outcome.DROPPED)
        return may

    def _fits_late(self, key: Key) -> bool:
        """True if one more may wait, if need be in place of one of the namespace with most."""
        if sum(map(len, self._late.values())) < LATE:
            return True
        of = [each[0] for each, late in self._late.items() for _ in late]
        crowd = _crowd(of, key[0])
        if crowd is None:
            return False
        going = next(each for each in reversed(self._late) if each[0] == crowd)
        _, document = self._late[going].pop()
        self._late[going] or self._late.pop(going)
        self._taken.pop(document["metadata"]["name"], None)
        _count(Outcome.DROPPED)
        return True

    def _allowed_by_now(self) -> list[Document]:
        """The events that had to wait and need not any longer, oldest first for each TApp.

        One that has waited for an hour is forgotten: its Event would have gone by then, too.
        """
        with self._lock:
            now, allowed, forgotten = self._clock(), list[Document](), 0
            if not self._late or now - self._looked < LOOK:
                return []
            self._looked = now
            for key, late in list(self._late.items()):
                while late and late[0][0] <= now - FOR:
                    late.popleft()
                    forgotten += 1
                while late and self._may_tell(key, now):
                    allowed.append(late.popleft()[1])
                if not late:
                    del self._late[key]
        for _ in range(forgotten):
            _count(Outcome.DROPPED)
        return allowed

    def _put(self, document: Document) -> None:
        with self._lock:
            self._ensure_thread()
        try:
            self._queue.put_nowait(document)
        except Full:
            lost = self._crowded_out(document)
            self._drop(lost["metadata"]["name"], Outcome.DROPPED, "the queue is full")

    def _crowded_out(self, document: Document) -> Document:
        """The event that a full queue loses: the last one of the namespace that has most in it."""
        with self._queue.mutex:
            waiting = self._queue.queue
            of = [each["metadata"]["namespace"] for each in waiting if each is not None]
            crowd = _crowd(of, document["metadata"]["namespace"])
            if crowd is None:
                return document
            lost: Document = next(
                each
                for each in reversed(waiting)
                if each is not None and each["metadata"]["namespace"] == crowd
            )
            waiting.remove(lost)
            waiting.append(document)
            return lost

    def _ensure_thread(self) -> None:
        """The thread and its queue belong to this process; a fork has neither."""
        if self._pid == os.getpid():
            return
        self._queue: Queue[Document | None] = Queue(self._queued)
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="events", daemon=True)
        self._pid = os.getpid()
        self._thread.start()
        atexit.register(self.close)

    def _remember(self, name: str, now: float) -> None:
        self._taken[name] = now
        self._taken.move_to_end(name)
        while len(self._taken) > REMEMBERED:
            self._taken.popitem(last=False)

    def _may_tell(self, key: Key, now: float) -> bool:
        """True if a TApp may tell one more under a reason, and its namespace anything more."""
        return self._may(key, now, 1) and self._may((key[0], "", ""), now, OF_A_NAMESPACE)

    def _may(self, key: Key, now: float, share: int) -> bool:
        """Takes a token of a bucket that has so many times what a TApp and reason have, if any."""
        most = float(BURST * share)
        tokens, at = self._buckets.pop(key, (most, now))
        tokens = min(tokens + (now - at) * share / SECONDS_PER_EVENT, most)
        self._buckets[key] = (tokens - (tokens >= 1), now)
        while len(self._buckets) > BUCKETS:
            self._buckets.popitem(last=False)
        return tokens >= 1

    def _run(self) -> None:
        """The thread: one event after the other, until `close` and an empty queue."""
        while (document := self._queue.get()) is not None:
            name = document["metadata"]["name"]
            try:
                outcome, failure = self._write(document)
            except Exception as error:  # noqa: BLE001 - the thread outlives whatever it meets
                outcome, failure = Outcome.FAILED, f"{type(error).__name__}: {error}"
            if failure:
                self._drop(name, outcome, failure)
            else:
                _count(outcome)
            if self._stopping.is_set() and self._queue.empty():
                return

    def _write(self, document: Document) -> tuple[Outcome, str]:
        failure = ""
        for pause in (*PAUSES, 0.0):
            try:
                made = self._create(document)
            except WriteRefusedError as error:
                return Outcome.REFUSED, str(error)
            except UnansweredError as error:
                failure, seconds = str(error), max(pause, error.seconds)
            else:
                return (Outcome.CREATED if made else Outcome.EXISTS), ""
            if not pause or self._stopping.wait(min(seconds, PAUSES[-1])):
                break  # tried often enough, or no time is left
        return Outcome.FAILED, failure

    def _drop(self, name: str, outcome: Outcome, failure: str) -> None:
        """Counts it, and lets a later sync tell the same again."""
        _count(outcome)
        with self._lock:
            self._taken.pop(name, None)
            now = self._clock()
            silent = now - self._logged < QUIET
            self._logged = self._logged if silent else now
        if not silent:
            fields = {"outcome": outcome, "event": name, "error": failure}
            LOGGER.warning("event not written", extra={"fields": fields})


def _crowd(namespaces: list[str], own: str) -> str | None:
    """The namespace that has most of the places that are taken, None where that is its `own`."""
    number = Counter(namespaces)
    number[own] += 1
    ((crowd, _),) = number.most_common(1)
    return crowd if number[crowd] > number[own] else None


def _count(outcome: Outcome) -> None:
    metrics.EVENTS.labels(outcome.value).inc()


def document_of(tapp: TApp, event: Event, at: float, instance: str) -> Document:
    """An `events.k8s.io/v1` Event."""
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
