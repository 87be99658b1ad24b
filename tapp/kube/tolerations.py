"""Tolerations: for how many seconds a pod tolerates a taint of its node.

Source: Kubernetes' documentation, "Taints and Tolerations".
"""

from collections.abc import Iterable, Mapping
from typing import Any

Toleration = dict[str, Any]

# The effect of a taint that evicts pods.
NO_EXECUTE = "NoExecute"
# The taints of a node that does not report.
SILENT = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
# Seconds for which a pod tolerates the taints in `SILENT` by default (API server,
# `--default-not-ready-toleration-seconds`).
SECONDS = 300


def seconds_of(tolerations: Iterable[Toleration], taint: Mapping[str, Any]) -> float | None:
    """Returns the seconds for which tolerations tolerate a taint.

    Returns None if there is no time limit, and 0 if the taint is not tolerated. The first matching
    toleration decides (k8s.io/component-helpers, GetMatchingTolerations).
    """
    for item in tolerations:
        if _tolerates(item, taint):
            seconds = item.get("tolerationSeconds")
            if seconds is None:
                return None
            return max(seconds, 0) if isinstance(seconds, int | float) else 0
    return 0


def _tolerates(toleration: Toleration, taint: Mapping[str, Any]) -> bool:
    """Returns True if a toleration matches a taint (core/v1, ToleratesTaint)."""
    if toleration.get("key") not in (taint["key"], None, ""):
        return False
    if toleration.get("effect") not in (taint["effect"], None, ""):
        return False
    operator = toleration.get("operator")
    if operator in ("Equal", None, ""):
        return (toleration.get("value") or "") == (taint.get("value") or "")
    return bool(operator == "Exists")


def is_limited(tolerations: Iterable[Toleration]) -> bool:
    """Returns True if a pod tolerates a node that does not report for a limited time or not at all.

    `tolerations` are the tolerations of the pod.
    """
    items = list(tolerations)
    return any(_limit(items, key) is not None for key in SILENT)


def without_limit(tolerations: Iterable[Toleration]) -> list[Toleration]:
    """Returns tolerations that tolerate a node that does not report for an unlimited time.

    A toleration of all taints keeps its time limit, because it also applies to other taints.
    Tolerations without a limit are put before it, because the first matching toleration decides.
    """
    items = [
        {key: value for key, value in item.items() if key != "tolerationSeconds"}
        if item.get("key") in SILENT
        else item
        for item in tolerations
    ]
    return [_exists(key) for key in SILENT if _limit(items, key) is not None] + items


def of_pods(tolerations: Iterable[Toleration], seconds: int, *, moved: bool) -> list[Toleration]:
    """Returns the tolerations of a pod that is created from a template.

    Args:
        tolerations: the tolerations of the template.
        seconds: the seconds for which the cluster's pods tolerate a node that does not report by
            default.
        moved: True if this service moves pods from lost nodes. The pods then tolerate such a node
            for an unlimited time, so that Kubernetes does not evict them.
    """
    if moved:
        return with_defaults(without_limit(tolerations), None)
    return with_defaults(tolerations, seconds)


def with_defaults(tolerations: Iterable[Toleration], seconds: int | None) -> list[Toleration]:
    """Returns the tolerations of a pod after the admission plugin DefaultTolerationSeconds.

    The plugin adds tolerations for the taints of a node that does not report. `seconds` is the time
    limit of these tolerations; None means no limit.
    """
    items = list(tolerations)
    limit = {} if seconds is None else {"tolerationSeconds": seconds}
    return items + [
        _exists(key) | limit for key in SILENT if not any(_is_about(item, key) for item in items)
    ]


def _exists(key: str) -> Toleration:
    """Returns a toleration of the taint `key` without a time limit."""
    return {"key": key, "operator": "Exists", "effect": NO_EXECUTE}


def _is_about(toleration: Toleration, key: str) -> bool:
    """Returns True if a toleration covers the taint `key`.

    The admission plugin DefaultTolerationSeconds then adds no toleration for the taint.
    """
    effects = (NO_EXECUTE, None, "")
    return toleration.get("key") in (key, None, "") and toleration.get("effect") in effects


def _limit(tolerations: list[Toleration], key: str) -> float | None:
    """Returns the seconds for which tolerations tolerate the taint `key`.

    Returns None if there is no time limit, and also if no toleration covers the taint.
    """
    if not any(_is_about(item, key) for item in tolerations):
        return None
    return seconds_of(tolerations, {"key": key, "effect": NO_EXECUTE})
