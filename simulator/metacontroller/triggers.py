"""Changes of objects that are a reason to sync a parent.

Source: the event handlers in Metacontroller's pkg/controller/composite/controller.go. A child
counts for its controller; an orphan for every parent that would adopt it; a related object for
every parent whose rules select its old or new form.
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
    generation_of,
    is_terminating,
    key_of,
    labels_of,
    namespace_of,
    same,
    selects,
    uid_of,
)


def only_status(old: Object, new: Object) -> bool:
    """Tell whether an update is none for those who ignore status changes."""
    return (
        not is_terminating(new)
        and generation_of(old) == generation_of(new)
        and same(labels_of(old), labels_of(new))
        and same(annotations_of(old), annotations_of(new))
    )


class Triggers:
    """Listens to the caches and enqueues parents."""

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
        """Return all parents in the cache."""
        if self.parent_kind is None:
            return []
        return self._cache.entries(self.parent_kind, namespace)

    def parent(self, key: Key) -> Entry | None:
        """Return one parent from the cache."""
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
        if current is None or not self._composite.cares_for(current.obj):
            return
        ignoring = self._composite.ignore_status_changes
        if ignoring and old is not None and new is not None and only_status(old.obj, new.obj):
            return
        self._enqueue(key_of(current.obj))

    def _on_child(self, old: Entry | None, new: Entry | None) -> None:
        current = new or old
        if current is None:
            return
        child = current.obj
        ref = controller_of(child)
        if ref is not None:
            parent = self._resolve(child, ref)
            if parent is not None:
                self._enqueue(key_of(parent))
        elif new is not None and not is_terminating(child):
            for entry in self.parents(namespace_of(child)):
                if selects(selector_of(entry.obj), labels_of(child)):
                    self._enqueue(key_of(entry.obj))

    def _resolve(self, child: Object, ref: Object) -> Object | None:
        kind = self.parent_kind
        if kind is None or ref.get("kind") != kind.name:
            return None
        if str(ref.get("apiVersion", "")).rpartition("/")[0] != kind.group:
            return None
        entry = self.parent((namespace_of(child) if kind.namespaced else "", ref["name"]))
        if entry is None or uid_of(entry.obj) != ref["uid"]:
            return None
        return entry.obj if self._composite.cares_for(entry.obj) else None

    def _on_related(self, kind: Kind, old: Entry | None, new: Entry | None) -> None:
        forms = [entry.obj for entry in (old, new) if entry is not None]
        for parent in self.parents():
            if any(self._related.concerns(parent, kind, form) for form in forms):
                self._enqueue(key_of(parent.obj))
