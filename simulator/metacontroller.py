"""Metacontroller, running one CompositeController.

It reads the cluster through informer caches, asks the hook, and writes through a `store.Store`.
Sources: metacontroller.md 1.3 (errors), 3 (finalizers), 5 (status, resync). One sync: finalizer,
claim children, find related objects, ask the hook, manage children, write status.

Not modelled: Rolling strategies and ControllerRevisions, server-side apply, ETags, client QPS.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from simulator import protocol
from simulator.cache import Entry
from simulator.children import Children
from simulator.claiming import ClaimError, atomic_update, claim, parent_selector
from simulator.cluster import FOREGROUND, ORPHAN
from simulator.composite import Composite
from simulator.environment import Environment
from simulator.hook_calls import HookCall, HookCalls
from simulator.hook_client import HookClient, HookError
from simulator.kinds import Kind, UnknownKindError
from simulator.objects import (
    Key,
    Object,
    finalizers_of,
    generation_of,
    is_terminating,
    key_of,
    same,
    selects,
    uid_of,
    with_meta,
)
from simulator.related import Related
from simulator.store import ApiError, ConflictError, NotFoundError
from simulator.triggers import Triggers
from simulator.workqueue import WorkQueue

SYNC_DELAY = 0.1

_FAILURES = (ApiError, HookError, ClaimError, UnknownKindError)


class ManageError(ClaimError):
    """Some children could not be written; the others were."""


@dataclass(slots=True)
class _Sync:
    """What one sync has found out before it writes."""

    parent: Object
    observed: dict[Kind, dict[str, Entry]]
    answer: protocol.SyncAnswer


class Metacontroller:
    """Keeps all parents of one CompositeController in sync.

    `outcomes` holds the error of each parent's last sync, empty after a success. `hook_seconds`
    is the simulated time between what a sync observes and what it writes.
    """

    def __init__(
        self,
        composite: Composite,
        environment: Environment,
        client: HookClient,
        on_call: Callable[[HookCall], None] = lambda _call: None,
    ) -> None:
        self.composite = composite
        self.outcomes: dict[Key, str] = {}
        self.hook_seconds = 0.0
        self._environment = environment
        self._store = environment.store
        self._calls = HookCalls(composite, environment.clock, client, on_call)
        self._related = Related(composite, environment, self._calls.ask_customize)
        self.queue = WorkQueue(environment.clock, self._process, SYNC_DELAY)
        self._triggers = Triggers(composite, environment, self._related, self.queue.add)
        self._life = 0
        self._plan_resync(self._life)

    def restart(self) -> None:
        """Lose everything that is only in memory, and start over from the cache."""
        self._life += 1
        self.queue.clear()
        self._related.forget()
        self._plan_resync(self._life)
        self._enqueue_all()

    def _plan_resync(self, life: int) -> None:
        def resync() -> None:
            if life == self._life:
                self._enqueue_all()
                self._plan_resync(life)

        self._environment.clock.after(self.composite.resync_seconds, resync, background=True)

    def _enqueue_all(self) -> None:
        for entry in self._triggers.parents():
            self.queue.add(key_of(entry.obj))

    def _process(self, key: Key) -> None:
        try:
            sync = self._decide(key)
        except _FAILURES as error:
            self._fail(key, error)
            return
        if sync is None:
            self.outcomes.pop(key, None)
            self.queue.done(key)
        elif self.hook_seconds:
            life = self._life
            self._environment.clock.after(
                self.hook_seconds,
                lambda: self._conclude(key, sync) if life == self._life else None,
            )
        else:
            self._conclude(key, sync)

    def _conclude(self, key: Key, sync: _Sync) -> None:
        try:
            self._write(key, sync)
        except _FAILURES as error:
            self._fail(key, error)
        else:
            self.outcomes[key] = ""
            self.queue.done(key)

    def _fail(self, key: Key, error: Exception) -> None:
        self.outcomes[key] = str(error)
        if isinstance(error, protocol.TooManyRequestsError):
            self.queue.add_after(key, error.seconds)
            self.queue.done(key)
        else:
            self.queue.done(key, failed=True)

    def _decide(self, key: Key) -> _Sync | None:
        """Do all that comes before the first write of a child: the last step asks the hook."""
        entry, parent_kind = self._triggers.parent(key), self._triggers.parent_kind
        if entry is None or parent_kind is None or not self.composite.cares_for(entry.obj):
            return None
        parent = self._sync_finalizer(entry.obj)
        if parent is not entry.obj:
            entry = Entry(parent)
        if not self.composite.cares_for(parent):
            return None
        selector = parent_selector(parent, generated=self.composite.generate_selector)
        children: dict[Kind, list[Entry]] = {}
        for resource in self.composite.children:
            kind = self._environment.kinds.by_plural(resource.api_version, resource.plural)
            children[kind] = claim(self._environment, parent_kind, parent, kind, selector)
        related = self._related.objects(entry)
        answer = self._calls.ask_sync(entry, children, related)
        observed = {
            kind: {protocol.child_key(child.obj): child for child in entries}
            for kind, entries in children.items()
        }
        return _Sync(parent, observed, answer)

    def _write(self, key: Key, sync: _Sync) -> None:
        parent, answer = sync.parent, sync.answer
        if answer.resync_after > 0:
            self.queue.add_after(key, answer.resync_after)
        if answer.finalized:
            parent = self._edit_finalizers(parent, add=False)
        self._check_labels(parent, answer)
        errors: list[str] = []
        if not is_terminating(parent) or self._should_finalize(parent):
            errors = self._children().manage(parent, sync.observed, answer.children)
        try:
            self._write_status(parent, answer.status)
        except (NotFoundError, ConflictError):
            return
        if errors:
            message = f"can't reconcile children: {'; '.join(errors)}"
            raise ManageError(message)

    def _check_labels(self, parent: Object, answer: protocol.SyncAnswer) -> None:
        generated = self.composite.generate_selector
        selector = parent_selector(parent, generated=generated)
        for child in answer.children:
            labels = child.labels
            if generated and "controller-uid" not in labels:
                labels = {**labels, "controller-uid": uid_of(parent)}
            if not selects(selector, labels):
                message = f"labels on desired child {child.key} don't match parent selector"
                raise ClaimError(message)

    def _children(self) -> Children:
        kinds = self._environment.kinds
        methods = {
            kinds.by_plural(child.api_version, child.plural): child.method
            for child in self.composite.children
        }
        generate = self.composite.generate_selector
        return Children(self._store, kinds, methods, generate_selector=generate)

    def _write_status(self, parent: Object, status: Object) -> None:
        wanted = {**status, "observedGeneration": generation_of(parent)}

        def changed(live: Object) -> Object:
            return live if same(live.get("status"), wanted) else {**live, "status": wanted}

        kind = self._environment.kinds.of(parent)
        atomic_update(self._store, kind, parent, changed, status=True)

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

        return atomic_update(self._store, self._environment.kinds.of(parent), parent, changed)

    def _should_finalize(self, parent: Object) -> bool:
        present = finalizers_of(parent)
        if FOREGROUND in present or ORPHAN in present or self.composite.finalizer not in present:
            return False
        return self.composite.finalize is not None
