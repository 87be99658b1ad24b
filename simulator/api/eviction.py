"""The eviction API: deletes a pod unless a PodDisruptionBudget does not allow that.

`evict` is the entry point. Source: Kubernetes 1.37, pkg/registry/core/pod/storage/eviction.go, and
pkg/controller/disruption for the number of allowed disruptions. The simulator computes that number
at each request. The real API server reads it from the status of the PodDisruptionBudget, which may
be older.
"""

from math import ceil

from simulator.api.cluster import Cluster
from simulator.api.store import ApiError, DeleteOptions
from simulator.objects.kinds import POD
from simulator.objects.objects import (
    Object,
    is_terminating,
    key_of,
    labels_of,
    namespace_of,
    selector_matches,
    uid_of,
)

_BUDGET = "PodDisruptionBudget"
# Phases of pods that no PodDisruptionBudget protects
_WITHOUT_BUDGET = ("Pending", "Succeeded", "Failed")
_CONDITION = {
    "type": "DisruptionTarget",
    "status": "True",
    "reason": "EvictionByEvictionAPI",
    "message": "Eviction API: evicting",
}


class TooManyEvictionsError(ApiError):
    """The error 429 Too Many Requests: the eviction would violate a PodDisruptionBudget."""

    code = 429
    reason = "TooManyRequests"


def evict(cluster: Cluster, pod: Object, now: str) -> None:
    """Evicts a pod, as `kubectl drain` does for each pod of a node.

    The pod gets the condition DisruptionTarget and is deleted with its own grace period. If the pod
    is already being deleted, no budget is checked and the condition is not added. Raises
    TooManyEvictionsError if a PodDisruptionBudget does not allow that.

    Args:
        cluster: the API server.
        pod: the pod, as the API server stores it.
        now: the present time, as an RFC 3339 timestamp.
    """
    if not is_terminating(pod):
        if (pod.get("status") or {}).get("phase") not in _WITHOUT_BUDGET:
            _check_budgets(cluster, pod)
        pod = cluster.edit(POD, pod, lambda old: _with_condition(old, now))
    cluster.delete(POD, *key_of(pod), DeleteOptions(uid_of(pod)))


def _with_condition(pod: Object, now: str) -> Object:
    status = pod.get("status") or {}
    rest = [each for each in status.get("conditions") or [] if each["type"] != _CONDITION["type"]]
    condition = {**_CONDITION, "lastTransitionTime": now}
    return {**pod, "status": {**status, "conditions": [*rest, condition]}}


def _check_budgets(cluster: Cluster, pod: Object) -> None:
    """Raises TooManyEvictionsError if a PodDisruptionBudget does not allow the eviction of the pod
    now.

    Raises ApiError if several PodDisruptionBudgets select the pod.
    """
    space = namespace_of(pod)
    budgets = [
        budget
        for budget in cluster.list(cluster.kinds.find(_BUDGET), space)
        if selector_matches(budget["spec"].get("selector"), labels_of(pod))
    ]
    if not budgets:
        return
    if len(budgets) > 1:
        message = "This pod has more than one PodDisruptionBudget, which the eviction subresource "
        raise ApiError(f"{message}does not support.")
    spec = budgets[0]["spec"]
    chosen = [
        each
        for each in cluster.list(POD, space)
        if selector_matches(spec.get("selector"), labels_of(each))
    ]
    healthy = sum(_is_ready(each) and not is_terminating(each) for each in chosen)
    wanted = _desired_healthy(spec, len(chosen))
    # By the default policy IfHealthyBudget, a pod that is not Ready may be evicted if enough other
    # pods are Ready.
    is_free = spec.get("unhealthyPodEvictionPolicy") == "AlwaysAllow" or 0 < wanted <= healthy
    if not (is_free and not _is_ready(pod)) and healthy <= wanted:
        message = "Cannot evict pod as it would violate the pod's disruption budget."
        raise TooManyEvictionsError(message)


def _desired_healthy(spec: Object, expected: int) -> int:
    """Returns how many pods must be Ready by a PodDisruptionBudget.

    `spec` is its spec, and `expected` is the number of pods that it selects.

    For `maxUnavailable`, the real controller takes `expected` from the scale of the pods' owners
    instead.
    """
    if "minAvailable" in spec:
        return _scaled(spec["minAvailable"], expected)
    return max(0, expected - _scaled(spec.get("maxUnavailable", 1), expected))


def _scaled(value: int | str, total: int) -> int:
    """Returns the number that a field value means: a number itself, or a percentage of `total`,
    rounded up.
    """
    return ceil(int(value[:-1]) * total / 100) if isinstance(value, str) else value


def _is_ready(pod: Object) -> bool:
    found = (pod.get("status") or {}).get("conditions") or []
    return any(each["type"] == "Ready" and each["status"] == "True" for each in found)
