"""Related objects: the customize hook's rules, their cache, and what they select.

Source: Metacontroller's pkg/controller/common/customize. Answers are cached for 20 minutes per
(parent uid, generation). No selector means everything. Not modelled: namespace selectors, and what
is refused of rules.
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
    selects,
    uid_of,
)

CACHE_SECONDS = 1200.0
_NOT_ASKED: tuple[list[Object], float] = [], float("-inf")


class Related:
    """Answers which related objects a parent has, and which parents an object concerns."""

    def __init__(
        self, composite: Composite, environment: Environment, ask: Callable[[Entry], list[Object]]
    ) -> None:
        self._hook = composite.customize
        self._cache = environment.cache
        self._kinds = environment.kinds
        self._clock = environment.clock
        self._version = composite.customize.version if composite.customize else "v1"
        self._ask = ask
        self._answers: dict[tuple[str, int], tuple[list[Object], float]] = {}

    def rules(self, parent: Entry) -> list[Object]:
        """Return the parent's rules, asking the hook if they are not cached."""
        key = uid_of(parent.obj), generation_of(parent.obj)
        rules, until = self._answers.get(key, _NOT_ASKED)
        if until <= self._clock.now:
            rules, until = self._ask(parent), self._clock.now + CACHE_SECONDS
            self._answers[key] = rules, until
        return rules

    def forget(self) -> None:
        """Forget all cached answers."""
        self._answers.clear()

    def objects(self, parent: Entry) -> dict[Kind, list[Entry]]:
        """Return the related objects of a parent, by kind."""
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
        """Tell whether a change of this object is a reason to sync the parent."""
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
        if not selects(rule.get("labelSelector"), labels_of(obj)):
            return False
        if rule.get("names") and name_of(obj) not in rule["names"]:
            return False
        if not kind.namespaced:
            return True
        home = namespace_of(parent)
        if self._version != "v2" and home and namespace_of(obj) != home:
            return False
        return not rule.get("namespace") or bool(namespace_of(obj) == rule["namespace"])
