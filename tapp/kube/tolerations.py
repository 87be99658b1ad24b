"""Seconds that a pod tolerates a taint of its node (Kubernetes, "Taints and Tolerations")."""

from collections.abc import Iterable, Mapping
from typing import Any

Toleration = dict[str, Any]

NO_EXECUTE = "NoExecute"  # The effect of a taint that evicts pods
SILENT = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")  # Of a silent node
SECONDS = 300
"""For how long pods tolerate them that do not say: what a cluster has that does not say otherwise
(`--default-not-ready-toleration-seconds`)."""


def seconds_of(tolerations: Iterable[Toleration], taint: Mapping[str, Any]) -> float | None:
    """Seconds for which a taint is tolerated, 0 where it is not; None is without end.

    The first toleration that fits it decides (k8s.io/component-helpers, GetMatchingTolerations).
    """
    for item in tolerations:
        if _tolerates(item, taint):
            seconds = item.get("tolerationSeconds")
            if seconds is None:
                return None
            return max(seconds, 0) if isinstance(seconds, int | float) else 0
    return 0


def _tolerates(toleration: Toleration, taint: Mapping[str, Any]) -> bool:
    """True if a toleration fits a taint (core/v1, ToleratesTaint)."""
    if toleration.get("key") not in (taint["key"], None, ""):
        return False
    if toleration.get("effect") not in (taint["effect"], None, ""):
        return False
    operator = toleration.get("operator")
    if operator in ("Equal", None, ""):
        return (toleration.get("value") or "") == (taint.get("value") or "")
    return bool(operator == "Exists")


def is_limited(tolerations: Iterable[Toleration]) -> bool:
    """True if a node that is not heard of is tolerated for a limited time only, or not at all."""
    items = list(tolerations)
    return any(_limit(items, key) is not None for key in SILENT)


def without_limit(tolerations: Iterable[Toleration]) -> list[Toleration]:
    """The same, with no limit on how long such a node is tolerated.

    A limit for all taints stays, because it is meant for others, too: what says more stands before
    it then.
    """
    items = [
        {key: value for key, value in item.items() if key != "tolerationSeconds"}
        if item.get("key") in SILENT
        else item
        for item in tolerations
    ]
    return [_exists(key) for key in SILENT if _limit(items, key) is not None] + items


def of_pods(tolerations: Iterable[Toleration], seconds: int, *, moved: bool) -> list[Toleration]:
    """The tolerations of the pod that is made of a template with these.

    `seconds` is the cluster's limit for the two taints; there is none where this service moves pods
    from lost nodes (`moved`), because nobody else is to.
    """
    if moved:
        return with_defaults(without_limit(tolerations), None)
    return with_defaults(tolerations, seconds)


def with_defaults(tolerations: Iterable[Toleration], seconds: int | None) -> list[Toleration]:
    """The tolerations with those that DefaultTolerationSeconds adds; `seconds` None: no limit."""
    items = list(tolerations)
    limit = {} if seconds is None else {"tolerationSeconds": seconds}
    return items + [
        _exists(key) | limit for key in SILENT if not any(_is_about(item, key) for item in items)
    ]


def _exists(key: str) -> Toleration:
    return {"key": key, "operator": "Exists", "effect": NO_EXECUTE}


def _is_about(toleration: Toleration, key: str) -> bool:
    """True if admission adds nothing for a taint because of this one, whatever its value."""
    effects = (NO_EXECUTE, None, "")
    return toleration.get("key") in (key, None, "") and toleration.get("effect") in effects


def _limit(tolerations: list[Toleration], key: str) -> float | None:
    """The limit for a taint that a toleration is about; None for any other, and for no limit."""
    if not any(_is_about(item, key) for item in tolerations):
        return None
    return seconds_of(tolerations, {"key": key, "effect": NO_EXECUTE})
