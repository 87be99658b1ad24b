"""Metacontroller, running one CompositeController.

It reads the cluster through informer caches, asks the hook, and writes through a `store.Store`.
Sources: metacontroller.md 1 (protocol, errors and back-off), 3 (finalizers), 5 (status, resync).
One parent is never synced twice at a time; a queue keeps one entry per parent.

Not modelled: Rolling strategies and ControllerRevisions, server-side apply, ETags, client QPS.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

import msgspec

from simulator import protocol
from simulator.cache import Cache, Entry
from simulator.children import Children
from simulator.claiming import ClaimError, atomic_update, claim, parent_selector
from simulator.clock import Clock, Timer
from simulator.cluster import FOREGROUND, ORPHAN
from simulator.composite import Composite, Hook
from simulator.hook_client import Answer, HookClient, HookError
from simulator.kinds import Kind, Kinds, UnknownKindError
from simulator.objects import (
    Key,
    Object,
    annotations_of,
    controller_of,
    finalizers_of,
    generation_of,
    is_terminating,
    key_of,
    labels_of,
    namespace_of,
    same,
    selects,
    uid_of,
    with_meta,
)
from simulator.related import Related
from simulator.store import ApiError, ConflictError, NotFoundError, Store

FIRST_RETRY, LONGEST_RETRY = 0.005, 1000.0

_Failures = (ApiError, HookError, ClaimError, UnknownKindError)


@dataclass(slots=True)
class HookCall:
    """One call of a hook, for tests and timelines."""

    time: float
    hook: str
    parent: Key
    parts: list[bytes]
    answer: Answer | None = None
    error: str = ""

    @property
    def request(self) -> Object:
        """Return the decoded request."""
        decoded: Object = msgspec.json.decode(b"".join(self.parts))
        return decoded

    @property
    def response(self) -> Object:
        """Return the decoded answer, empty if there was none."""
        decoded: Object = msgspec.json.decode(self.answer.body) if self.answer else {}
        return decoded


@dataclass(slots=True)
class Settings:
    """Knobs of one Metacontroller; all times are simulated seconds."""

    sync_delay: float = 0.1
    hook_seconds: float = 0.0


@dataclass(slots=True)
class _Sync:
    """What one sync has found out before it writes."""

    parent: Object
    observed: dict[Kind, dict[str, Entry]]
    answer: protocol.SyncAnswer
    selector: Object = field(default_factory=dict)


class Metacontroller:
    """Keeps all parents of one CompositeController in sync."""

    def __init__(
        self,
        composite: Composite,
        store: Store,
        kinds: Kinds,
        cache: Cache,
        clock: Clock,
        hook: HookClient,
        on_call: Callable[[HookCall], None] = lambda _call: None,
    ) -> None:
        self.settings = Settings()
        self.composite = composite
        self.outcomes: dict[Key, str] = {}
        self._store = store
        self._kinds = kinds
        self._cache = cache
        self._clock = clock
        self._hook = hook
        self._on_call = on_call
        self._controller_json = msgspec.json.encode(composite.manifest)
        self._parent_kind: Kind | None = None
        self._soon: dict[Key, Timer] = {}
        self._later: dict[Key, Timer] = {}
        self._active: set[Key] = set()
        self._again: set[Key] = set()
        self._failures: dict[Key, int] = {}
        self._life = 0
        self._related = self._new_related()
        cache.on_change(self._on_change)
        self._plan_resync(self._life)

    def restart(self) -> None:
        """Lose everything that is only in memory, and start over from the cache."""
        self._life += 1
        for timer in (*self._soon.values(), *self._later.values()):
            self._clock.cancel(timer)
        for memory in (self._soon, self._later, self._active, self._again, self._failures):
            memory.clear()
        self._related = self._new_related()
        self._plan_resync(self._life)
        self._enqueue_all()

    def enqueue(self, key: Key) -> None:
        """Ask for a sync of this parent; repeated requests become one."""
        if key in self._active:
            self._again.add(key)
        elif key not in self._soon:
            self._soon[key] = self._clock.after(
                self.settings.sync_delay, lambda: self._take(key, self._soon)
            )

    def _new_related(self) -> Related:
        return Related(self._cache, self._kinds, self._clock, self._ask_customize)

    def _enqueue_after(self, key: Key, seconds: float) -> None:
        timer = self._later.get(key)
        if timer is not None:
            if timer.due <= self._clock.now + seconds:
                return
            self._clock.cancel(timer)
        self._later[key] = self._clock.after(seconds, lambda: self._take(key, self._later))

    def _take(self, key: Key, queue: dict[Key, Timer]) -> None:
        del queue[key]
        if key in self._active:
            self._again.add(key)
            return
        self._process(key)

    def _plan_resync(self, life: int) -> None:
        def resync() -> None:
            if life == self._life:
                self._enqueue_all()
                self._plan_resync(life)

        self._clock.after(self.composite.resync_seconds, resync, background=True)

    def _enqueue_all(self) -> None:
        for entry in self._parents():
            self.enqueue(key_of(entry.obj))

    def _parents(self, namespace: str = "") -> list[Entry]:
        if self._parent_kind is None:
            return []
        return self._cache.entries(self._parent_kind, namespace)

    # Which change is a reason to sync which parent.

    def _on_change(self, kind: Kind, old: Entry | None, new: Entry | None) -> None:
        resource = kind.api_version, kind.plural
        if resource == (self.composite.parent_api_version, self.composite.parent_plural):
            self._parent_kind = kind
            self._on_parent(old, new)
        if any(resource == (child.api_version, child.plural) for child in self.composite.children):
            self._on_child(old, new)
        if self.composite.customize is not None:
            self._on_related(kind, old, new)

    def _on_parent(self, old: Entry | None, new: Entry | None) -> None:
        current = new if new is not None else old
        if current is None or not self._cares(current.obj):
            return
        if (
            self.composite.ignore_status_changes
            and old is not None
            and new is not None
            and not is_terminating(new.obj)
            and generation_of(old.obj) == generation_of(new.obj)
            and same(labels_of(old.obj), labels_of(new.obj))
            and same(annotations_of(old.obj), annotations_of(new.obj))
        ):
            return
        self.enqueue(key_of(current.obj))

    def _on_child(self, old: Entry | None, new: Entry | None) -> None:
        current = new if new is not None else old
        if current is None:
            return
        child = current.obj
        ref = controller_of(child)
        if ref is not None:
            parent = self._resolve(child, ref)
            if parent is not None:
                self.enqueue(key_of(parent))
        elif new is not None and not is_terminating(child):
            for entry in self._parents(namespace_of(child)):
                if self._could_adopt(entry.obj, child):
                    self.enqueue(key_of(entry.obj))

    def _resolve(self, child: Object, ref: Object) -> Object | None:
        kind = self._parent_kind
        if kind is None or ref.get("kind") != kind.name:
            return None
        if str(ref.get("apiVersion", "")).rpartition("/")[0] != kind.group:
            return None
        home = namespace_of(child) if kind.namespaced else ""
        entry = self._cache.get(kind, (home, ref["name"]))
        if entry is None or uid_of(entry.obj) != ref["uid"] or not self._cares(entry.obj):
            return None
        return entry.obj

    def _could_adopt(self, parent: Object, child: Object) -> bool:
        try:
            return selects(self._selector(parent), labels_of(child))
        except ClaimError:
            return False

    def _on_related(self, kind: Kind, old: Entry | None, new: Entry | None) -> None:
        version = self.composite.customize.version if self.composite.customize else "v1"
        for parent in self._parents():
            for entry in (old, new):
                if entry is not None and self._related.concerns(parent, kind, entry.obj, version):
                    self.enqueue(key_of(parent.obj))
                    break

    def _cares(self, parent: Object) -> bool:
        return self.composite.finalizer in finalizers_of(parent) or self._matches(parent)

    def _matches(self, parent: Object) -> bool:
        return selects(self.composite.parent_selector, labels_of(parent))

    def _selector(self, parent: Object) -> Object:
        return parent_selector(parent, generated=self.composite.generate_selector)

    # One sync.

    def _process(self, key: Key) -> None:
        self._active.add(key)
        try:
            sync = self._decide(key)
        except _Failures as error:
            self._done(key, error)
            return
        if sync is None:
            self._done(key, None)
        elif self.settings.hook_seconds:
            life = self._life
            self._clock.after(
                self.settings.hook_seconds,
                lambda: self._conclude(key, sync) if life == self._life else None,
            )
        else:
            self._conclude(key, sync)

    def _conclude(self, key: Key, sync: _Sync) -> None:
        try:
            self._write(key, sync)
        except _Failures as error:
            self._done(key, error)
        else:
            self._done(key, None)

    def _done(self, key: Key, error: Exception | None) -> None:
        self._active.discard(key)
        self.outcomes[key] = "" if error is None else str(error)
        if isinstance(error, protocol.TooManyRequestsError):
            self._enqueue_after(key, error.seconds)
        elif error is not None:
            failures = self._failures.get(key, 0)
            self._failures[key] = failures + 1
            self._enqueue_after(key, min(FIRST_RETRY * 2**failures, LONGEST_RETRY))
        else:
            self._failures.pop(key, None)
        if key in self._again:
            self._again.discard(key)
            self.enqueue(key)

    def _decide(self, key: Key) -> _Sync | None:
        entry = self._cache.get(self._parent_kind, key) if self._parent_kind else None
        if entry is None or self._parent_kind is None:
            self.outcomes.pop(key, None)
            return None
        if not self._cares(entry.obj):
            return None
        parent = self._sync_finalizer(entry.obj)
        if parent is not entry.obj:
            entry = Entry(parent)
        if not self._cares(parent):
            return None
        selector = self._selector(parent)
        children: dict[Kind, list[Entry]] = {}
        for resource in self.composite.children:
            kind = self._kinds.by_plural(resource.api_version, resource.plural)
            children[kind] = claim(
                self._store, self._cache, self._parent_kind, parent, kind, selector
            )
        related: dict[Kind, list[Entry]] = {}
        if self.composite.customize is not None:
            related = self._related.objects(entry, self.composite.customize.version)
        answer = self._ask_sync(entry, children, related)
        observed = {
            kind: {protocol.child_key(child.obj): child for child in entries}
            for kind, entries in children.items()
        }
        return _Sync(parent, observed, answer, selector)

    def _write(self, key: Key, sync: _Sync) -> None:
        parent, answer = sync.parent, sync.answer
        if answer.resync_after > 0:
            self._enqueue_after(key, answer.resync_after)
        if answer.finalized:
            parent = self._edit_finalizers(parent, add=False)
        for child in answer.children:
            labels = child.labels
            if self.composite.generate_selector and "controller-uid" not in labels:
                labels = {**labels, "controller-uid": uid_of(parent)}
            if not selects(sync.selector, labels):
                message = f"labels on desired child {child.key} don't match parent selector"
                raise ClaimError(message)
        errors: list[str] = []
        if not is_terminating(parent) or self._should_finalize(parent):
            errors = self._children().manage(parent, sync.observed, answer.children)
        try:
            self._write_status(parent, answer.status)
        except (NotFoundError, ConflictError):
            return
        if errors:
            message = f"can't reconcile children: {'; '.join(errors)}"
            raise ClaimError(message)

    def _children(self) -> Children:
        methods = {
            self._kinds.by_plural(child.api_version, child.plural): child.method
            for child in self.composite.children
        }
        return Children(
            self._store, self._kinds, methods, generate_selector=self.composite.generate_selector
        )

    def _write_status(self, parent: Object, status: Object) -> None:
        wanted = {**status, "observedGeneration": generation_of(parent)}

        def changed(live: Object) -> Object:
            return live if same(live.get("status"), wanted) else {**live, "status": wanted}

        atomic_update(self._store, self._kinds.of(parent), parent, changed, status=True)

    def _sync_finalizer(self, parent: Object) -> Object:
        enabled = self.composite.finalize is not None
        if (self.composite.finalizer in finalizers_of(parent)) == enabled:
            return parent
        if enabled and is_terminating(parent):
            return parent
        return self._edit_finalizers(parent, add=enabled)

    def _edit_finalizers(self, parent: Object, *, add: bool) -> Object:
        name = self.composite.finalizer

        def changed(live: Object) -> Object:
            present = finalizers_of(live)
            if (name in present) == add:
                return live
            rest = [other for other in present if other != name]
            return with_meta(live, finalizers=[*rest, name] if add else rest)

        return atomic_update(self._store, self._kinds.of(parent), parent, changed)

    def _should_finalize(self, parent: Object) -> bool:
        present = finalizers_of(parent)
        if FOREGROUND in present or ORPHAN in present or self.composite.finalizer not in present:
            return False
        return self.composite.finalize is not None

    # Calling hooks.

    def _ask_sync(
        self, parent: Entry, children: protocol.Group, related: protocol.Group
    ) -> protocol.SyncAnswer:
        finalizing = self.composite.finalize is not None and (
            is_terminating(parent.obj) or not self._matches(parent.obj)
        )
        hook = self.composite.finalize if finalizing else self.composite.sync
        if hook is None:
            message = "sync hook nil//not defined"
            raise HookError(message)
        parts = protocol.sync_request(
            hook, self._controller_json, parent, (children, related), finalizing
        )
        name = "finalize" if finalizing else "sync"
        body = self._call(hook, name, key_of(parent.obj), parts)
        return protocol.decode_sync(body, hook, namespace_of(parent.obj))

    def _ask_customize(self, parent: Entry) -> list[Object]:
        hook = self.composite.customize
        if hook is None:
            return []
        parts = protocol.customize_request(self._controller_json, parent)
        body = self._call(hook, "customize", key_of(parent.obj), parts)
        return protocol.decode_customize(body, hook)

    def _call(self, hook: Hook, name: str, parent: Key, parts: Iterable[bytes]) -> bytes:
        call = HookCall(self._clock.now, name, parent, list(parts))
        self._on_call(call)
        try:
            call.answer = self._hook.post(hook.url, b"".join(call.parts), hook.seconds)
            protocol.check_status(call.answer)
        except HookError as error:
            call.error = str(error)
            raise
        return call.answer.body
