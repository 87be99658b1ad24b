"""Followers: models that watches keep up to date, and the changes of them.

A page asks a follower again and again for the changes since its last answer. No answer waits for
a change: a browser has six connections for all of its tabs, and a tab that kept one open would
take it from the others.
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
from kubectl_tapp.cluster.access import CLAIMS, EVENTS, PODS, REVISIONS, TAPPS, belongs, plain_kinds
from kubectl_tapp.cluster.kubectl import KubectlError
from kubectl_tapp.cluster.session import Session
from kubectl_tapp.cluster.watching import Watched
from kubectl_tapp.decide.decisions import MEMORY
from kubectl_tapp.decide.inspection import Inspection, inspect
from kubectl_tapp.edit import revisions
from kubectl_tapp.live import model

_PAUSE, _SHARE, _LOOK = 0.2, 2, 5.0
"""Seconds between two looks at least; so many times what one took; at most, as time changes it."""
_AGAIN, _PATIENT = 1.0, 10.0
"""Seconds until a lost watch begins again, and between two reads of events."""
_IDLE, _HIDDEN = 10.0, 150.0
"""Seconds that a follower goes on after the last request of a visible page and of a hidden page.
Browsers let a hidden page run only once a minute."""
_LOG, _KEPT = 200, 100
"""Entries of a timeline, and changes that a follower keeps for its readers."""
_KEYED = ("tiles", "rows", "log")  # Parts of a model whose items change one by one


class Follower(ABC):
    """Follows something in a thread of its own, as long as anybody reads it."""

    def __init__(self, session: Session) -> None:
        """Starts the thread."""
        self.session = session
        self.model: dict[str, Any] = {}
        self._lock = threading.Lock()
        # A version names the follower as well: those of another one mean nothing here.
        self._own, self._number = secrets.token_hex(4), 0
        self._changes: deque[dict[str, Any]] = deque(maxlen=_KEPT)
        self._read_until = time.monotonic() + _IDLE
        self._changed, self._stopped = threading.Event(), threading.Event()
        self._watched: list[Watched] = []
        threading.Thread(target=self._run, daemon=True).start()

    @property
    def is_read(self) -> bool:
        """True until the follower is stopped or no page has asked for long enough."""
        return time.monotonic() <= self._read_until and not self._stopped.is_set()

    def stop(self) -> None:
        """Ends it, and its watches."""
        self._stopped.set()
        self._changed.set()
        for each in self._watched:
            each.stop()

    def publish(self, **parts: Any) -> None:
        """Puts these parts into the model, and notes for the readers what of them is new."""
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
        """Returns the changes since `version`, in order, and the version that they lead to.

        The only change is the whole model if `version` is empty, too old, or of another follower.
        `hidden`: the page is in a tab that nobody sees, and asks again less often.
        """
        with self._lock:
            until = time.monotonic() + (_HIDDEN if hidden else _IDLE)
            self._read_until = max(self._read_until, until)
            known = {f"{self._own}.{self._number - n}": n for n in range(len(self._changes) + 1)}
            behind = known.get(version)
            if behind is None:
                changes = [{**self.model, "whole": True}]
            else:
                changes = [*self._changes][len(self._changes) - behind :]
            return {"version": f"{self._own}.{self._number}", "changes": changes}

    def _run(self) -> None:
        while self.is_read:
            try:
                self._follow()
            except CommandError as error:
                self.publish(lost=str(error))
            for each in self._watched:
                each.stop()
            self._stopped.wait(_AGAIN)
        self.stop()

    @abstractmethod
    def _follow(self) -> None:
        """Begins the watches, and looks."""

    def _watch(self, resource: str, *words: str) -> Watched:
        watched = Watched(self.session.cluster.watch(resource, *words), self._changed.set)
        self._watched.append(watched)
        return watched

    def _look(self, look: Callable[[], None]) -> None:
        """Looks whenever something has changed, as long as all watches go on."""
        while self.is_read and not any(each.ended for each in self._watched):
            self._changed.clear()
            begun = time.monotonic()
            look()
            if any(each.ended for each in self._watched):
                break  # as a look may find
            self._stopped.wait(max(_PAUSE, _SHARE * (time.monotonic() - begun)))
            self._changed.wait(_LOOK)
        if error := next((each.error for each in self._watched if each.error), ""):
            raise CommandError(error)


class FollowedList(Follower):
    """All TApps that the user may see: of all namespaces, or else of the user's own."""

    def _follow(self) -> None:
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
            for each in (found := {it["metadata"]["uid"]: it for it in watched.over(known)}):
                if each not in rows or rows[each][0] != found[each]:
                    rows[each] = found[each], model.row_of(found[each])
            shown = {uid: rows[uid][1] for uid in found}
            self.publish(rows=shown, lost="", now=self.session.now())
            watched.ended |= watched.forbidden and time.monotonic() - begun > _LOOK

        self._look(look)


class FollowedTApp(Follower):
    """One TApp with all that belongs to it."""

    def __init__(self, session: Session, namespace: str, name: str) -> None:
        """`session` is of any namespace."""
        self._name, self._asked = name, 0.0
        self.view: Inspection | None = None
        self._log: dict[str, model.Model] = {}
        super().__init__(session.narrowed(namespace=namespace))

    def note(self, text: str, ids: str = "", key: str = "", at: float | None = None) -> None:
        """Writes into the timeline."""
        at = self.session.now() if at is None else at
        log = {**self._log, key or f"{at}{ids}{text}": {"at": at, "text": text, "ids": ids}}
        self._log = dict(sorted(log.items(), key=lambda it: float(it[1]["at"]))[-_LOG:])

    def _follow(self) -> None:
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
        plain = plain_kinds(tapp)
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
        history: tuple[object, list[revisions.Entry]] = (None, [])

        def look() -> None:
            nonlocal observed, history
            tapps = watched[TAPPS].over([observed.tapp])
            if not tapps or tapps[0]["metadata"]["uid"] != uid:
                self.publish(gone=f"TApp {self._name} is gone")
                watched[TAPPS].ended = True
                return
            # Who may not watch but read looks again from time to time.
            deaf = (kind for kind, it in watched.items() if it.forbidden and kind != EVENTS)
            if time.monotonic() - begun > _LOOK and not {*deaf} <= {*observed.unread}:
                watched[TAPPS].ended = True
            watched[TAPPS].ended |= plain_kinds(tapps[0]) != plain  # others to watch then

            def there(kind: str, known: list[Document]) -> list[Document]:
                return [each for each in watched[kind].over(known) if belongs(each, uid)]

            owned: dict[str, Any] = {
                part: there(kind, getattr(observed, part)) for part, kind in parts.items()
            }
            owned["plain"] = {
                kind: there(kind.qualified, observed.plain.get(kind, [])) for kind in plain
            }
            observed = replace(observed, tapp=tapps[0], **owned)
            for event in watched[EVENTS].over([]):
                self.note(**model.note_of(event))
            if PODS in observed.unread:
                found = model.told(observed)
            else:
                now, patient = time.monotonic(), time.monotonic() - self._asked > _PATIENT
                self.view = inspect(
                    cluster, replace(observed, events=[] if patient else observed.events),
                    self.session.now(), registration, memo, refusals=patient,
                )  # fmt: skip
                observed, self._asked = self.view.observed, now if patient else self._asked
                version = (tapps[0]["metadata"].get("generation"), observed.revisions)
                if history[0] != version:
                    unread = REVISIONS in observed.unread
                    history = version, [] if unread else revisions.entries(observed)
                found = model.shown(self.view, history[1])
            for ids, text in model.news(self.model.get("tiles"), found["tiles"]):
                self.note(text, ids)
            self.publish(**found, log=self._log, lost="", gone="", now=self.session.now())

        self._look(look)

    def why(self, id: int) -> model.Model:
        """All that is known of one instance, with the events of its pod."""
        if self.view is None or id not in self.view.cases:
            raise CommandError(f"there is no instance {id} now")
        about = f"--field-selector=involvedObject.name={self._name}-{id},involvedObject.kind=Pod"
        observed = self.view.observed
        with suppress(KubectlError):
            observed = self.session.cluster.with_events(replace(observed, events=[]), about)
        return model.why(self.view, id, observed.events)


class Live:
    """All that is followed."""

    def __init__(self, session: Session) -> None:
        """Nothing is, before somebody asks."""
        self._session, self._lock = session, threading.Lock()
        self._known: dict[tuple[str, str], Follower] = {}

    def everything(self) -> Follower:
        """All TApps."""
        return self._followed(("", ""), lambda: FollowedList(self._session))

    def one(self, namespace: str, name: str) -> FollowedTApp:
        """One TApp."""
        found = self._followed(
            (namespace, name), lambda: FollowedTApp(self._session, namespace, name)
        )
        assert isinstance(found, FollowedTApp)  # noqa: S101 - it has a name
        return found

    def _followed(self, key: tuple[str, str], begin: Callable[[], Follower]) -> Follower:
        with self._lock:
            self._known = {other: each for other, each in self._known.items() if each.is_read}
            return self._known.setdefault(key, self._known.get(key) or begin())

    def stop(self) -> None:
        """Ends all watches."""
        for each in self._known.values():
            each.stop()
