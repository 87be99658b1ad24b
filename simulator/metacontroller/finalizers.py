"""A controller's finalizer on its parents.

Source: Metacontroller's pkg/controller/common/finalizer.
"""

from dataclasses import dataclass

from simulator.api.cluster import FOREGROUND, ORPHAN
from simulator.metacontroller.claiming import atomic_update
from simulator.metacontroller.environment import Environment
from simulator.objects.objects import Object, finalizers_of, is_terminating, with_meta


@dataclass(frozen=True, slots=True)
class Finalizer:
    """The finalizer of one controller; `enabled` if it has a finalize hook."""

    name: str
    enabled: bool
    environment: Environment

    def on(self, parent: Object) -> bool:
        """Tell whether the parent carries it."""
        return self.name in finalizers_of(parent)

    def sync(self, parent: Object) -> Object:
        """Add or remove it as it should be; return the parent, the same one if it was right."""
        if self.on(parent) == self.enabled:
            return parent
        if self.enabled and is_terminating(parent):
            return parent
        return self._edit(parent, add=self.enabled)

    def remove(self, parent: Object) -> Object:
        """Let the parent go; return it as it is then."""
        return self._edit(parent, add=False)

    def should_finalize(self, parent: Object) -> bool:
        """Tell whether children of a parent that is being deleted are still to be managed."""
        present = finalizers_of(parent)
        if FOREGROUND in present or ORPHAN in present or not self.on(parent):
            return False
        return self.enabled

    def _edit(self, parent: Object, *, add: bool) -> Object:
        def changed(live: Object) -> Object:
            present = finalizers_of(live)
            if self.on(live) == add:
                return live
            rest = [other for other in present if other != self.name]
            return with_meta(live, finalizers=[*rest, self.name] if add else rest)

        kind = self.environment.kinds.of(parent)
        return atomic_update(self.environment.store, kind, parent, changed)
