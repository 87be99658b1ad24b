"""Keeps the values on the page up to date by watches, and gives the page the changes of these
values.

`Followers` has a follower for each list or TApp that a page shows. A follower runs in a thread and
watches the objects of the list or the TApp. After each change of an object, the follower computes
the values (the *model*, `model.py`) and records the differences. The page polls for the changes
since its last response.

No response waits for a change. A browser opens six connections for all of its tabs, so a tab with
an open request would take a connection from the others.
"""

import secrets
import threading
import time
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from typing import Any

from hooks.wire.memo import Memo
from kubectl_tapp.base.errors import CommandError
from kubectl_tapp.base.observed import Document
from kubectl_tapp.cluster.access import (
    CLAIMS,
    EVENTS,
    PODS,
    REVISIONS,
    TAPPS,
    is_child,
    optional_kinds,
)
from kubectl_tapp.cluster.kubectl import KubectlError
from kubectl_tapp.cluster.session import Session
from kubectl_tapp.cluster.watching import Watched
from kubectl_tapp.decide.decisions import MEMORY
from kubectl_tapp.decide.inspection import Inspection, inspect
from kubectl_tapp.edit import revisions
from kubectl_tapp.live import model

_MIN_PAUSE, _PAUSE_FACTOR, _MAX_PAUSE = 0.2, 2, 5.0
"""Limits of the pause between two computations of the model: the least number of seconds, the least
multiple of the time that the last computation took, and the most seconds. The upper limit exists
because ages change without an event.
"""
_RESTART_PAUSE, _EVENTS_INTERVAL = 1.0, 10.0
"""Seconds until a watch that has ended is started again, and seconds between two reads of
Events.
"""
_IDLE_VISIBLE, _IDLE_HIDDEN = 10.0, 150.0
"""Seconds that a follower runs after the last request of a visible page and of a hidden page.
Browsers let a hidden page run only once a minute."""
_LATE = 10.0  # Seconds without an answer of kubectl after which the page shows that it waits
_MAX_TIMELINE, _MAX_CHANGES = 200, 100
"""Largest number of entries in a timeline, and of changes that a follower keeps for its pages."""
# Parts of a model that are mappings; only their changed items are sent to the page
_KEYED = ("tiles", "rows", "log")


class Follower(ABC):
    """Keeps the values that a page shows (the *model*) up to date, in a thread of its own.

    A subclass watches objects and calls `publish` after each change. The thread ends if no page has
    asked for changes for some time, or when `stop` is called.
    """

    def __init__(self, session: Session) -> None:
        """Starts the thread. The thread calls kubectl with the options of `session`."""
        self.session = session
        self.model: dict[str, Any] = {}
        self._lock = threading.Lock()
        # Each version begins with this token, so that a version of an earlier follower is
        # recognized as unknown.
        self._own, self._number = secrets.token_hex(4), 0
        self._changes: deque[dict[str, Any]] = deque(maxlen=_MAX_CHANGES)
        self._read_until = time.monotonic() + _IDLE_VISIBLE
        self._changed, self._stopped = threading.Event(), threading.Event()
        self._watched: list[Watched] = []
        # When the thread began to read the cluster; None while it waits for the next change.
        self._busy_since: float | None = None
        threading.Thread(target=self._run, daemon=True).start()

    @property
    def is_read(self) -> bool:
        """True while a page still polls for changes: its last request is recent, and `stop` was not
        called.
        """
        return time.monotonic() <= self._read_until and not self._stopped.is_set()

    def stop(self) -> None:
        """Ends the thread and its watches.

        Afterwards nothing is published any more, so `since` returns only earlier changes.
        """
        self._stopped.set()
        self._changed.set()
        for each in self._watched:
            each.stop()

    def publish(self, **parts: Any) -> None:
        """Replaces the named parts of the model, and records the differences as one change.

        Nothing is recorded if all these parts equal the old ones.
        """
        with self._lock:
            change: dict[str, Any] = {}
            for key, value in parts.items():
                before = self.model.get(key)
                if key in _KEYED and before is not None:
                    items = {id: each for id, each in value.items() if before.get(id) != each}
                    items |= dict.fromkeys(before.keys() - value.keys())
                    change |= {key: items} if items else {}
                elif before != value:
                    change[key] = value
            self.model |= parts
            if change:
                self._changes.append(change)
                self._number += 1

    def since(self, version: str, *, hidden: bool = False) -> dict[str, Any]:
        """Returns the changes since a version of the model, oldest first, and the newest version.

        If `version` is empty, too old, or of another follower, the only change is the complete
        model. `hidden` is True if the tab of the page is in the background. Browsers then let the
        page poll less often, so the follower waits longer for the page's next request. In the
        result, `late` is a sentence if kubectl is slow, so that the model is old; otherwise "".
        """
        with self._lock:
            until = time.monotonic() + (_IDLE_HIDDEN if hidden else _IDLE_VISIBLE)
            self._read_until = max(self._read_until, until)
            known = {f"{self._own}.{self._number - n}": n for n in range(len(self._changes) + 1)}
            behind = known.get(version)
            if behind is None:
                changes = [{**self.model, "whole": True}]
            else:
                changes = [*self._changes][len(self._changes) - behind :]
            version = f"{self._own}.{self._number}"
            return {"version": version, "changes": changes, "late": self._late()}

    def _late(self) -> str:
        """Returns a sentence if kubectl has not answered the thread for long, otherwise ""."""
        begun = self._busy_since
        passed = 0.0 if begun is None else time.monotonic() - begun
        if passed < _LATE:
            return ""
        return f"kubectl has not answered for {passed // _LATE * _LATE:.0f} seconds"

    def _run(self) -> None:
        while self.is_read:
            self._busy_since = time.monotonic()
            try:
                self._watch_and_look()
            except CommandError as error:
                self.publish(lost=str(error))
            except Exception as error:  # noqa: BLE001 - without this, the page would wait forever
                self.publish(lost=f"internal error of kubectl-tapp: {error!r}")
            self._busy_since = None
            for each in self._watched:
                each.stop()
            self._stopped.wait(_RESTART_PAUSE)
        self.stop()

    @abstractmethod
    def _watch_and_look(self) -> None:
        """Starts the watches, and then reads the objects and publishes the model repeatedly until a
        watch ends.

        The thread calls this method again after a pause.
        """

    def _watch(self, resource: str, *words: str) -> Watched:
        watched = Watched(self.session.cluster.watch(resource, *words), self._changed.set)
        self._watched.append(watched)
        return watched

    def _look_after_changes(self, look: Callable[[], None]) -> None:
        """Calls `look`, which publishes the model, at once and after each change, until a watch
        ends.

        Between two calls at most `_MAX_PAUSE` seconds pass. Raises CommandError if a watch ended
        with an error.
        """
        while self.is_read and not any(each.ended for each in self._watched):
            self._changed.clear()
            begun = self._busy_since = time.monotonic()
            look()
            self._busy_since = None
            if any(each.ended for each in self._watched):
                break  # `look` ends a watch, for example if the TApp is gone
            self._stopped.wait(max(_MIN_PAUSE, _PAUSE_FACTOR * (time.monotonic() - begun)))
            self._changed.wait(_MAX_PAUSE)
        if error := next((each.error for each in self._watched if each.error), ""):
            raise CommandError(error)


class FollowedList(Follower):
    """Keeps the list of TApps on the page up to date.

    The list has all TApps that the user may list: in all namespaces, or in the current namespace.
    """

    def _watch_and_look(self) -> None:
        cluster = self.session.cluster
        try:
            known, scope = cluster.list(TAPPS, all_namespaces=True), ["--all-namespaces"]
        except KubectlError as error:
            if error.reason != "Forbidden":
                raise
            known, scope = cluster.list(TAPPS), ["--namespace", cluster.namespace]
        self._watched = []
        watched, begun = self._watch(TAPPS, *scope), time.monotonic()
        rows: dict[str, tuple[Document, model.Model]] = {}

        def look() -> None:
            for each in (found := {it["metadata"]["uid"]: it for it in watched.current(known)}):
                if each not in rows or rows[each][0] != found[each]:
                    rows[each] = found[each], model.list_row(found[each])
            shown = {uid: rows[uid][1] for uid in found}
            self.publish(rows=shown, lost="", now=self.session.now())
            watched.ended |= watched.forbidden and time.monotonic() - begun > _MAX_PAUSE

        self._look_after_changes(look)


class FollowedTApp(Follower):
    """Keeps the page of one TApp up to date: its instances, children, Events and timeline."""

    def __init__(self, session: Session, namespace: str, name: str) -> None:
        """Starts the thread for the page of the TApp `name` in `namespace`.

        kubectl is called with the options of `session`, except for its namespace.
        """
        self._name, self._asked = name, 0.0
        self.view: Inspection | None = None
        self._history: list[revisions.HistoryEntry] = []
        self._log: dict[str, model.Model] = {}
        super().__init__(session.with_options(namespace=namespace))

    def add_to_timeline(
        self, text: str, ids: str = "", key: str = "", at: float | None = None
    ) -> None:
        """Adds an entry to the timeline of the TApp, which the page shows.

        Args:
            text: the text of the entry.
            ids: the numbers of the instances that the entry is about, such as `0-3,7`; empty for
                the whole TApp.
            key: identifies the entry: an existing entry with this key is replaced. Empty to add a
                new entry in any case.
            at: the time of the entry, in seconds since the epoch; None for now.
        """
        at = self.session.now() if at is None else at
        log = {**self._log, key or f"{at}{ids}{text}": {"at": at, "text": text, "ids": ids}}
        self._log = dict(sorted(log.items(), key=lambda it: float(it[1]["at"]))[-_MAX_TIMELINE:])

    def _watch_and_look(self) -> None:
        cluster = self.session.cluster
        try:
            tapp = cluster.get(TAPPS, self._name)
        except KubectlError as error:
            if error.reason != "NotFound":
                raise
            self.publish(gone=str(error), lost="")
            return
        self._watched, uid = [], tapp["metadata"]["uid"]
        own = f"--selector=controller-uid={uid}"
        plain = optional_kinds(tapp)
        parts = {"pods": PODS, "claims": CLAIMS, "revisions": REVISIONS}
        kinds = [*parts.values(), *(kind.qualified for kind in plain)]
        words: dict[str, tuple[str, ...]] = {
            TAPPS: (self._name,), EVENTS: (f"--field-selector=involvedObject.uid={uid}",),
            **dict.fromkeys(kinds, (own,)),
            PODS: (own, "--show-managed-fields=true"),
        }  # fmt: skip
        space = "--namespace", tapp["metadata"]["namespace"]
        watched = {kind: self._watch(kind, *those, *space) for kind, those in words.items()}
        begun = time.monotonic()
        observed = cluster.observe(self._name, events=True)
        registration, memo = cluster.registration(observed), Memo(MEMORY)
        history: tuple[object, list[revisions.HistoryEntry]] = (None, [])

        def look() -> None:
            nonlocal observed, history
            tapps = watched[TAPPS].current([observed.tapp])
            if not tapps or tapps[0]["metadata"]["uid"] != uid:
                self.publish(gone=f"TApp {self._name} is gone")
                watched[TAPPS].ended = True
                return
            # If the user may read the objects of a kind but not watch them, the thread reads them
            # again after a pause.
            deaf = (kind for kind, it in watched.items() if it.forbidden and kind != EVENTS)
            if time.monotonic() - begun > _MAX_PAUSE and not {*deaf} <= {*observed.unread}:
                watched[TAPPS].ended = True
            # If the spec now asks for children of other kinds, new watches are needed.
            watched[TAPPS].ended |= optional_kinds(tapps[0]) != plain

            def there(kind: str, known: list[Document]) -> list[Document]:
                return [each for each in watched[kind].current(known) if is_child(each, uid)]

            owned: dict[str, Any] = {
                part: there(kind, getattr(observed, part)) for part, kind in parts.items()
            }
            owned["plain"] = {
                kind: there(kind.qualified, observed.plain.get(kind, [])) for kind in plain
            }
            observed = replace(observed, tapp=tapps[0], **owned)
            for event in watched[EVENTS].current([]):
                self.add_to_timeline(**model.timeline_entry(event))
            if PODS in observed.unread:
                found = model.model_from_status(observed)
            else:
                now, patient = time.monotonic(), time.monotonic() - self._asked > _EVENTS_INTERVAL
                self.view = inspect(
                    cluster, replace(observed, events=[] if patient else observed.events),
                    self.session.now(), registration, memo, refusals=patient,
                )  # fmt: skip
                observed, self._asked = self.view.observed, now if patient else self._asked
                version = (tapps[0]["metadata"].get("generation"), observed.revisions)
                if history[0] != version:
                    unread = REVISIONS in observed.unread
                    history = version, [] if unread else revisions.history_of(observed)
                self._history = history[1]
                found = model.model_of(self.view, self._history)
            for ids, text in model.tile_changes(self.model.get("tiles"), found["tiles"]):
                self.add_to_timeline(text, ids)
            self.publish(**found, log=self._log, lost="", gone="", now=self.session.now())

        self._look_after_changes(look)

    def why(self, id: int) -> model.Model:
        """Returns the explanation of one instance, with the Events of its pod, for the page.

        Raises CommandError if the TApp has no such instance, or if its objects were not read yet.
        """
        if self.view is None or id not in self.view.cases:
            raise CommandError(f"there is no instance {id} now")
        about = f"--field-selector=involvedObject.name={self._name}-{id},involvedObject.kind=Pod"
        observed = self.view.observed
        with suppress(KubectlError):
            observed = self.session.cluster.with_events(replace(observed, events=[]), about)
        return model.explanation_of(self.view, id, observed.events, self._history)


class Followers:
    """Starts, shares and stops the followers of one web server.

    A follower is a thread that keeps the values on a page up to date. There is one for the list of
    TApps, and one for each TApp that a page shows; all pages share them.
    """

    def __init__(self, session: Session) -> None:
        """Starts no follower: followers start when a page first asks for them.

        `session` has the global options, such as `--context`, with which followers call kubectl.
        """
        self._session, self._lock = session, threading.Lock()
        self._known: dict[tuple[str, str], Follower] = {}

    def all_tapps(self) -> Follower:
        """Returns the follower of the list of TApps. Starts the follower if it does not run."""
        return self._follower(("", ""), lambda: FollowedList(self._session))

    def one_tapp(self, namespace: str, name: str) -> FollowedTApp:
        """Returns the follower of the TApp `name`. Starts the follower if it does not run."""
        found = self._follower(
            (namespace, name), lambda: FollowedTApp(self._session, namespace, name)
        )
        assert isinstance(found, FollowedTApp)  # noqa: S101 - one_tapp's keys have this type
        return found

    def _follower(self, key: tuple[str, str], begin: Callable[[], Follower]) -> Follower:
        with self._lock:
            self._known = {other: each for other, each in self._known.items() if each.is_read}
            return self._known.setdefault(key, self._known.get(key) or begin())

    def stop(self) -> None:
        """Stops the followers of the list and of all TApps, when the web server ends."""
        for each in self._known.values():
            each.stop()
