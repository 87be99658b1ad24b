"""Metacontroller, running one CompositeController.

`Metacontroller` reads the cluster through informer caches, calls the hooks, and writes through a
`store.Store`. One sync sets the finalizer, claims children, finds related objects, calls the hook,
writes children, and writes the status. Source: Metacontroller 4.17.2, pkg/controller/composite.

Not modeled: Rolling strategies and their revisions, selectors that are not generated, server-side
apply, ETags, limits of client QPS.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial

import msgspec

from simulator.api.deletion import FOREGROUND, ORPHAN
from simulator.api.store import ConflictError, NotFoundError
from simulator.metacontroller import protocol
from simulator.metacontroller.cache import Entry, Environment
from simulator.metacontroller.children import Children
from simulator.metacontroller.claiming import ClaimError, atomic_update, claim
from simulator.metacontroller.composite import Composite
from simulator.metacontroller.hook_calls import HookCall, HookCaller
from simulator.metacontroller.hook_client import HookClient, HookError
from simulator.metacontroller.loop import Loop, Writes
from simulator.metacontroller.related import Related
from simulator.metacontroller.triggers import Triggers
from simulator.objects.kinds import Kind
from simulator.objects.objects import (
    Key,
    Object,
    deep_equal,
    finalizers_of,
    generation_of,
    is_terminating,
    key_of,
    namespace_of,
    uid_of,
    with_meta,
)


@dataclass(frozen=True, slots=True)
class Finalizer:
    """Adds one controller's finalizer to parents, and removes it.

    Source: pkg/controller/common/finalizer.

    Attributes:
        name: the name of the finalizer.
        enabled: True if the controller has a finalize hook, so that parents need the finalizer.
        environment: the cluster in which the parents are written.
    """

    name: str
    enabled: bool
    environment: Environment

    def is_on(self, parent: Object) -> bool:
        """Returns True if the parent has the finalizer."""
        return self.name in finalizers_of(parent)

    def sync(self, parent: Object) -> Object:
        """Adds the finalizer if the controller has a finalize hook, and removes it if there is no
        hook.

        Returns the parent as written; returns it unchanged if nothing had to be done. A parent in
        deletion never gets the finalizer.
        """
        if self.is_on(parent) == self.enabled:
            return parent
        if self.enabled and is_terminating(parent):
            return parent
        return self._edit(parent, add=self.enabled)

    def remove(self, parent: Object) -> Object:
        """Removes the finalizer from a parent, so that the parent can be deleted.

        Returns the parent as written.
        """
        return self._edit(parent, add=False)

    def should_finalize(self, parent: Object) -> bool:
        """Returns True if Metacontroller still writes the children of a parent that is in deletion.

        The caller has checked that the parent is in deletion. The result is False if the parent
        lacks the finalizer. It is also False for foreground deletion and orphaning, which leave the
        children to the garbage collector.
        """
        present = finalizers_of(parent)
        if FOREGROUND in present or ORPHAN in present or not self.is_on(parent):
            return False
        return self.enabled

    def _edit(self, parent: Object, *, add: bool) -> Object:
        def changed(live: Object) -> Object:
            present = finalizers_of(live)
            if self.is_on(live) == add:
                return live
            rest = [other for other in present if other != self.name]
            return with_meta(live, finalizers=[*rest, self.name] if add else rest)

        kind = self.environment.kinds.of(parent)
        return atomic_update(self.environment.store, kind, parent, changed)


class ManageError(ClaimError):
    """Some children could not be written; all other children of the sync were written."""


def _aggregate(errors: list[str]) -> str:
    """Joins error messages as k8s.io/apimachinery/pkg/util/errors does.

    Equal messages are included only once.
    """
    known = list(dict.fromkeys(errors))
    return known[0] if len(known) == 1 else f"[{', '.join(known)}]"


class Metacontroller(Loop[Key]):
    """Syncs all parents of one CompositeController.

    `on_call` is called with each call of a hook before the request is sent to the hook.
    """

    def __init__(
        self,
        composite: Composite,
        environment: Environment,
        client: HookClient,
        on_call: Callable[[HookCall], None] = lambda _call: None,
    ) -> None:
        super().__init__(environment.clock, composite.resync_seconds)
        self.composite = composite
        self._environment = environment
        self._store = environment.store
        self._finalizer = Finalizer(
            composite.finalizer, composite.finalize is not None, environment
        )
        self._caller = HookCaller(environment.clock, client, on_call)
        self._controller = msgspec.json.encode(composite.manifest)
        self._related = Related(composite, environment, self._call_customize)
        self._triggers = Triggers(composite, environment, self._related, self.queue.add)

    def parent(self, key: Key) -> Object | None:
        """Returns the parent of this key from the cache, or None if the cache does not have it."""
        entry = self._triggers.parent(key)
        return None if entry is None else entry.obj

    def _keys(self) -> Iterable[Key]:
        return [key_of(entry.obj) for entry in self._triggers.parents()]

    def _forget(self) -> None:
        self._related.forget()

    def _decide(self, key: Key) -> Writes | None:
        """Runs a sync until the hook has responded; returns the function that then writes.

        Returns None if the controller is not responsible for the parent, or if the parent is gone.
        """
        entry, parent_kind = self._triggers.parent(key), self._triggers.parent_kind
        if entry is None or parent_kind is None or not self.composite.is_responsible_for(entry.obj):
            return None
        parent = self._finalizer.sync(entry.obj)
        if parent is not entry.obj:
            entry = Entry(parent)
        if not self.composite.is_responsible_for(parent):
            return None
        children: dict[Kind, list[Entry]] = {}
        for resource in self.composite.children:
            kind = self._environment.kinds.by_plural(resource.api_version, resource.plural)
            children[kind] = claim(self._environment, parent_kind, parent, kind)
        related = self._related.objects(entry)
        response = self._call_sync(entry, children, related)
        observed = {
            kind: {child.key: child for child in entries} for kind, entries in children.items()
        }
        return partial(self._write, key, parent, observed, response)

    def _call_sync(
        self, parent: Entry, children: protocol.Group, related: protocol.Group
    ) -> protocol.SyncResponse:
        composite, obj = self.composite, parent.obj
        is_ending = is_terminating(obj) or not composite.matches(obj)
        finalizing = composite.finalize is not None and is_ending
        hook = composite.finalize if finalizing else composite.sync
        if hook is None:
            raise HookError(f"sync hook not defined for {key_of(obj)}")
        groups = children, related
        parts = protocol.sync_request(hook, self._controller, parent, groups, finalizing=finalizing)
        body = self._caller.call(hook, "finalize" if finalizing else "sync", key_of(obj), parts)
        return protocol.decode_sync(body, hook, namespace_of(obj))

    def _call_customize(self, parent: Entry) -> list[Object]:
        hook = self.composite.customize
        if hook is None:
            return []
        parts = protocol.customize_request(self._controller, parent)
        body = self._caller.call(hook, "customize", key_of(parent.obj), parts)
        return protocol.decode_customize(body, hook)

    def _write(
        self,
        key: Key,
        parent: Object,
        observed: dict[Kind, dict[str, Entry]],
        response: protocol.SyncResponse,
    ) -> None:
        if response.resync_after > 0:
            # A delay beyond the resync period has no effect, because the resync comes first.
            is_after_resync = response.resync_after > self._resync_seconds
            self.queue.add_after(key, response.resync_after, background=is_after_resync)
        if response.finalized:
            parent = self._finalizer.remove(parent)
        self._check_labels(parent, response)
        errors: list[str] = []
        if not is_terminating(parent) or self._finalizer.should_finalize(parent):
            errors = self._children().manage(parent, observed, response.children)
        try:
            self._write_status(parent, response.status)
        except (NotFoundError, ConflictError):
            return
        if errors:
            about = f"{parent['kind']} {'/'.join(key)}"
            raise ManageError(f"can't reconcile children for {about}: {_aggregate(errors)}")

    def _check_labels(self, parent: Object, response: protocol.SyncResponse) -> None:
        for child in response.children:
            if child.labels.get("controller-uid", uid_of(parent)) != uid_of(parent):
                raise ClaimError(f"labels on desired child {child.key} don't match parent selector")

    def _children(self) -> Children:
        kinds = self._environment.kinds
        methods = {
            kinds.by_plural(child.api_version, child.plural): child.method
            for child in self.composite.children
        }
        return Children(self._store, kinds, methods)

    def _write_status(self, parent: Object, status: Object) -> None:
        wanted = {**status, "observedGeneration": generation_of(parent)}

        def changed(live: Object) -> Object:
            return live if deep_equal(live.get("status"), wanted) else {**live, "status": wanted}

        kind = self._environment.kinds.of(parent)
        atomic_update(self._store, kind, parent, changed, status=True)
