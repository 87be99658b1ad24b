"""Seconds that a pod tolerates a silent node (Kubernetes, "Taints and Tolerations")."""

from collections.abc import Iterable
from typing import Any

Toleration = dict[str, Any]

SILENT = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
"""The taints of a node that is not heard of."""
SECONDS = 300
"""For how long pods tolerate them that do not say: what a cluster has that does not say otherwise
(`--default-not-ready-toleration-seconds`)."""


def is_limited(tolerations: Iterable[Toleration]) -> bool:
    """True if a node that is not heard of is tolerated for a limited time only.

    For each taint the first toleration that fits it decides (k8s.io/component-helpers,
    GetMatchingTolerations).
    """
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

    Args:
        tolerations: the template's.
        seconds: the cluster's default for the two taints.
        moved: whether this service moves pods from lost nodes: then nobody else is to.
    """
    if moved:
        return with_defaults(without_limit(tolerations), None)
    return with_defaults(tolerations, seconds)


def with_defaults(tolerations: Iterable[Toleration], seconds: int | None) -> list[Toleration]:
    """The tolerations, and those that the DefaultTolerationSeconds admission would add.

    Args:
        tolerations: the author's.
        seconds: for the added ones; None is without limit.
    """
    items = list(tolerations)
    limit = {} if seconds is None else {"tolerationSeconds": seconds}
    return items + [
        _exists(key) | limit for key in SILENT if not any(_fits(item, key) for item in items)
    ]


def _exists(key: str) -> Toleration:
    return {"key": key, "operator": "Exists", "effect": "NoExecute"}


def _fits(toleration: Toleration, key: str) -> bool:
    effects = ("NoExecute", None, "")
    return toleration.get("key") in (key, None, "") and toleration.get("effect") in effects


def _limit(tolerations: list[Toleration], key: str) -> Any:
    """`tolerationSeconds` of the first one that fits a taint; None is without limit."""
    first = next((item for item in tolerations if _fits(item, key)), None)
    return None if first is None else first.get("tolerationSeconds")
