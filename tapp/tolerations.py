"""How long a pod tolerates that its node is not heard of (Kubernetes, "Taints and Tolerations")."""

from collections.abc import Iterable
from typing import Any

Toleration = dict[str, Any]

SILENT = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
"""The taints of a node that is not heard of."""


def in_time(toleration: Toleration) -> bool:
    """Whether it names one of these taints, and only for a limited time."""
    return toleration.get("key") in SILENT and toleration.get("tolerationSeconds") is not None


def without_limit(tolerations: Iterable[Toleration]) -> list[Toleration]:
    """The same, with no limit on how long such a node is tolerated."""
    return [
        {key: value for key, value in item.items() if key != "tolerationSeconds"}
        if in_time(item)
        else item
        for item in tolerations
    ]


def with_defaults(tolerations: Iterable[Toleration], seconds: int | None) -> list[Toleration]:
    """The tolerations, and those that the DefaultTolerationSeconds admission would add.

    Args:
        tolerations: the author's.
        seconds: for the added ones; None is without limit.
    """
    items = list(tolerations)
    limit = {} if seconds is None else {"tolerationSeconds": seconds}
    return items + [
        {"key": key, "operator": "Exists", "effect": "NoExecute", **limit}
        for key in SILENT
        if not any(
            item.get("key") in (key, None, "") and item.get("effect") in ("NoExecute", None, "")
            for item in items
        )
    ]
