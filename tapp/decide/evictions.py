"""The budget of evictions: how many Ready pods evictions must leave (`spec.disruptionBudget`).

The API server allows an eviction while more pods are Ready than `minAvailable` of the TApp's
PodDisruptionBudget. It counts all Ready pods of the TApp. This service counts only available
instances that should run, as for updates (`serving.py`). So

    minAvailable = should run - maxUnavailable + Ready pods that do not count as available

With this value, evictions are allowed while more than `should run - maxUnavailable` instances are
available. The same rule applies to updates (`rollout.py`). An evicted instance is not available for
updates, and an updated instance is not available for evictions.
"""

from collections.abc import Iterable, Sequence, Set

from tapp.decide.cases import Case
from tapp.decide.rollout import portion
from tapp.declared.policies import DisruptionBudget
from tapp.pod.pod import Pod


def max_evictions(budget: DisruptionBudget, should_run: int) -> int:
    """Returns how many instances evictions may make unavailable at the same time.

    Raises ValueError if the value of `budget` is neither a number nor a percentage.

    Args:
        budget: `spec.disruptionBudget`.
        should_run: the number of instances that should run, to which a percentage refers.
    """
    try:
        return portion(budget.max_unavailable, should_run, 0)
    except ValueError as error:
        raise ValueError(f"spec.disruptionBudget.maxUnavailable: {error}") from None


def min_available(
    budget: DisruptionBudget, cases: Sequence[Case], available: Set[int], foreign: Iterable[Pod]
) -> int:
    """Returns `minAvailable` for the PodDisruptionBudget of a TApp.

    Raises ValueError if the value of `budget` is neither a number nor a percentage.

    Args:
        budget: `spec.disruptionBudget`.
        cases: the instances with the decisions of this sync.
        available: the numbers of the instances that are available before this sync updates any.
        foreign: pods of the TApp that belong to no instance.
    """
    should_run = sum([case.instance.should_run for case in cases])
    allowed = max_evictions(budget, should_run)
    if not should_run:
        # Pods that remain are about to be deleted, and no eviction takes anything from the TApp.
        return 0
    others = [
        case.instance.pod
        for case in cases
        if case.instance.id not in available or _is_taken_down_in_place(case)
    ]
    ready = [pod for pod in (*others, *foreign) if pod is not None and _counts_as_healthy(pod)]
    return max(0, should_run - allowed + len(ready))


def _counts_as_healthy(pod: Pod) -> bool:
    """Returns True if the disruption controller counts a pod as healthy.

    Source: Kubernetes 1.37, pkg/controller/disruption/disruption.go, `countHealthyPods`.
    """
    return pod.ready is True and not pod.terminating


def _is_taken_down_in_place(case: Case) -> bool:
    """Returns True if this sync takes an instance down while its pod stays Ready for a moment.

    The kubelet restarts the containers of the pod, or the pod leaves its Services first. Deletions
    do not count: a pod that is being deleted no longer counts as healthy.
    """
    return case.delay is None and case.verdict.is_update and case.decision.change is not None
