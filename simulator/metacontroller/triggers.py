"""Decides which parents have to be synced after a change of an object in the cache.

`Triggers` subscribes to the caches. A change may have several of these effects:

- A changed parent is synced.
- If a child changes that a parent controls, this parent is synced.
- If a child changes that has no controller, every parent that would adopt it is synced.
- With a customize hook, every parent is synced whose rules of related objects select the old or the
  new state of the object.

Source: the event handlers in Metacontroller 4.17.2, pkg/controller/composite/controller.go.
"""

from collections.abc import Callable

from simulator.metacontroller.cache import Entry, Environment
from simulator.metacontroller.claiming import selector_of
from simulator.metacontroller.composite import Composite
from simulator.metacontroller.related import Related
from simulator.objects.kinds import Kind
from simulator.objects.objects import (
    Key,
    Object,
    annotations_of,
    controller_of,
    deep_equal,
    generation_of,
    is_terminating,
    key_of,
    labels_of,
    namespace_of,
    selector_matches,
    uid_of,
)


def changes_only_status(old: Object, new: Object) -> bool:
    """Returns True if an update of a parent changes neither spec, labels nor annotations.

    Metacontroller ignores such an update if `ignoreStatusChanges` is set. It never ignores the
    deletion of a parent.

    Args:
        old: the parent before the update.
        new: the parent after the update.
    """
    return (
        not is_terminating(new)
        and generation_of(old) == generation_of(new)
        and deep_equal(labels_of(old), labels_of(new))
        and deep_equal(annotations_of(old), annotations_of(new))
    )


class Triggers:
    """Calls `enqueue` with the key of each parent that has to be synced after a change in the
    caches.

    `parent_kind` is the kind of the parents; None until the first parent appears in the cache.
    """

    def __init__(
        self,
        composite: Composite,
        environment: Environment,
        related: Related,
        enqueue: Callable[[Key], None],
    ) -> None:
        self.parent_kind: Kind | None = None
        self._composite = composite
        self._cache = environment.cache
        self._related = related
        self._enqueue = enqueue
        self._children = {(child.api_version, child.plural) for child in composite.children}
        self._cache.on_change(self._on_change)

    def parents(self, namespace: str = "") -> list[Entry]:
        """Returns the parents in the cache, sorted; an empty `namespace` means all namespaces."""
        if self.parent_kind is None:
            return []
        return self._cache.entries(self.parent_kind, namespace)

    def parent(self, key: Key) -> Entry | None:
        """Returns the cached parent with this key (namespace and name), or None."""
        return None if self.parent_kind is None else self._cache.get(self.parent_kind, key)

    def _on_change(self, kind: Kind, old: Entry | None, new: Entry | None) -> None:
        resource = kind.api_version, kind.plural
        if resource == (self._composite.parent_api_version, self._composite.parent_plural):
            self.parent_kind = kind
            self._on_parent(old, new)
        if resource in self._children:
            self._on_child(old, new)
        if self._composite.customize is not None:
            self._on_related(kind, old, new)

    def _on_parent(self, old: Entry | None, new: Entry | None) -> None:
        current = new or old
        if current is None or not self._composite.is_responsible_for(current.obj):
            return
        ignoring = self._composite.ignore_status_changes
        if (
            ignoring
            and old is not None
            and new is not None
            and changes_only_status(old.obj, new.obj)
        ):
            return
        self._enqueue(key_of(current.obj))

    def _on_child(self, old: Entry | None, new: Entry | None) -> None:
        current = new or old
        if current is None:
            return
        child = current.obj
        ref = controller_of(child)
        if ref is not None:
            parent = self._find_parent(child, ref)
            if parent is not None:
                self._enqueue(key_of(parent))
        elif new is not None and not is_terminating(child):
            for entry in self.parents(namespace_of(child)):
                if selector_matches(selector_of(entry.obj), labels_of(child)):
                    self._enqueue(key_of(entry.obj))

    def _find_parent(self, child: Object, ref: Object) -> Object | None:
        kind = self.parent_kind
        if kind is None or ref.get("kind") != kind.name:
            return None
        if str(ref.get("apiVersion", "")).rpartition("/")[0] != kind.group:
            return None
        entry = self.parent((namespace_of(child) if kind.namespaced else "", ref["name"]))
        if entry is None or uid_of(entry.obj) != ref["uid"]:
            return None
        return entry.obj if self._composite.is_responsible_for(entry.obj) else None

    def _on_related(self, kind: Kind, old: Entry | None, new: Entry | None) -> None:
        states = [entry.obj for entry in (old, new) if entry is not None]
        for parent in self.parents():
            if any(self._related.concerns(parent, kind, state) for state in states):
                self._enqueue(key_of(parent.obj))
