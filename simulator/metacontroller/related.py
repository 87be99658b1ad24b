"""Related objects: the rules of the customize hook, and the objects that the rules select.

`Related` calls the hook and caches its rules for 20 minutes for each parent's uid and generation. A
rule without a selector selects all objects of its resource. Source: Metacontroller 4.17.2,
pkg/controller/common/customize. Not modeled: namespace selectors, and the validation of rules.
"""

from collections.abc import Callable

from simulator.metacontroller.cache import Entry, Environment
from simulator.metacontroller.composite import Composite
from simulator.metacontroller.hook_client import HookError
from simulator.objects.kinds import Kind
from simulator.objects.objects import (
    Object,
    generation_of,
    labels_of,
    name_of,
    namespace_of,
    selector_matches,
    uid_of,
)

CACHE_SECONDS = 1200.0
_NOT_CACHED: tuple[list[Object], float] = [], float("-inf")


class Related:
    """Finds the objects that the rules of the customize hook relate to a parent.

    It also checks whether a changed object is related to a parent, so that the parent has to be
    synced. `call_hook` calls the customize hook for a parent and returns its rules.
    """

    def __init__(
        self,
        composite: Composite,
        environment: Environment,
        call_hook: Callable[[Entry], list[Object]],
    ) -> None:
        self._hook = composite.customize
        self._cache = environment.cache
        self._kinds = environment.kinds
        self._clock = environment.clock
        self._version = composite.customize.version if composite.customize else "v1"
        self._call_hook = call_hook
        self._cached: dict[tuple[str, int], tuple[list[Object], float]] = {}

    def rules(self, parent: Entry) -> list[Object]:
        """Returns the rules of a parent: from the cache, or from the hook if the cache has none."""
        key = uid_of(parent.obj), generation_of(parent.obj)
        rules, expires = self._cached.get(key, _NOT_CACHED)
        if expires <= self._clock.now:
            rules, expires = self._call_hook(parent), self._clock.now + CACHE_SECONDS
            self._cached[key] = rules, expires
        return rules

    def forget(self) -> None:
        """Empties the cache of rules, so that the hook is called again for every parent."""
        self._cached.clear()

    def objects(self, parent: Entry) -> dict[Kind, list[Entry]]:
        """Returns kind -> related objects of a parent; empty without a customize hook."""
        found: dict[Kind, dict[str, Entry]] = {}
        if self._hook is None:
            return {}
        for rule in self.rules(parent):
            kind = self._kinds.by_plural(rule["apiVersion"], rule["resource"])
            group = found.setdefault(kind, {})
            for entry in self._cache.entries(kind):
                if self._selects(rule, kind, entry.obj, parent.obj):
                    group[uid_of(entry.obj)] = entry
        return {kind: list(group.values()) for kind, group in found.items()}

    def concerns(self, parent: Entry, kind: Kind, obj: Object) -> bool:
        """Returns True if a rule of the parent selects the object `obj`.

        Returns False if the hook fails, because the parent's own sync reports the failure.
        """
        try:
            rules = self.rules(parent)
        except HookError:
            return False
        return any(
            (rule["apiVersion"], rule["resource"]) == (kind.api_version, kind.plural)
            and self._selects(rule, kind, obj, parent.obj)
            for rule in rules
        )

    def _selects(self, rule: Object, kind: Kind, obj: Object, parent: Object) -> bool:
        if not selector_matches(rule.get("labelSelector"), labels_of(obj)):
            return False
        if rule.get("names") and name_of(obj) not in rule["names"]:
            return False
        if not kind.namespaced:
            return True
        parent_namespace = namespace_of(parent)
        if self._version != "v2" and parent_namespace and namespace_of(obj) != parent_namespace:
            return False
        return not rule.get("namespace") or bool(namespace_of(obj) == rule["namespace"])
