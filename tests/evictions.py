"""Checks the PodDisruptionBudget of a TApp: the evictions that it allows, and whose it is.

Like `tests/invariants.py`, which calls these checks, the module reads JSON documents and shares no
decisions with the service. The evictions that the API server allows are counted as the disruption
controller does: from the Ready pods that the selector matches.
"""

import json
from typing import Any

from simulator.api.apply import LAST_APPLIED
from tests.hook_calls import (
    applied,
    available,
    desired,
    drains,
    number,
    observed,
    ready,
    resolved,
    should_run,
)
from tests.metacontroller_merge import Merged
from tests.prepull import is_puller

Document = dict[str, Any]
KIND = "PodDisruptionBudget"


def too_many_evictions(
    request: Document, answer: Document, after: dict[str, Merged], now: float | None = None
) -> str:
    """Returns how evictions and updates together exceed `spec.disruptionBudget`, or "".

    Args:
        request: the request to the hook.
        answer: the response of the hook.
        after: the observed pods that the response keeps, after Metacontroller's merge.
        now: seconds since the epoch at the request, for `minReadySeconds`; None to ignore it.
    """
    if request["finalizing"]:
        return ""  # The spec may be invalid then.
    spec = request["parent"]["spec"]
    wanted = desired(answer, KIND).get(request["parent"]["metadata"]["name"], {})
    budget, running = spec.get("disruptionBudget"), should_run(request)
    most = None if budget is None else _allowed(budget.get("maxUnavailable", 1), len(running))
    least = (wanted.get("spec") or {}).get("minAvailable")
    # Without a number the PodDisruptionBudget is somebody else's.
    if most is None or not running or not isinstance(least, int):
        return ""
    pods = observed(request, "Pod")
    going = {
        number(request, name)
        for name in pods
        if name not in after or after[name].updates or drains(after[name].child)
    }
    healthy = [
        pod
        for pod in (pods[name] for name in after)
        if ready(pod) and "deletionTimestamp" not in pod["metadata"] and not is_puller(pod)
    ]
    evictions, gone = len(healthy) - least, len(running - (available(request, now) - going))
    if evictions <= max(0, most - gone):
        return ""
    return (
        f"{evictions} evictions are allowed, {gone} of {len(running)} instances are unavailable or "
        f"updated, and {most} may be"
    )


def _allowed(value: Any, of: int) -> int | None:
    """Returns how many of `of` instances may be evicted, or None if `value` is invalid."""
    return 0 if value in (0, "0%") else resolved(value, of)


def wrong_budgets(request: Document, answer: Document) -> str:
    """Returns which PodDisruptionBudget the response treats wrongly, or "".

    The TApp's own selects the pods of the TApp only. One that the service has not created must
    neither change nor be deleted.
    """
    have, want = observed(request, KIND), desired(answer, KIND)
    parent = request["parent"]
    for name, budget in have.items():
        notes = budget["metadata"].get("annotations") or {}
        if "spec" in json.loads(notes.get(LAST_APPLIED, "{}")):
            if request["finalizing"] or name in want:
                continue
            if parent["spec"].get("disruptionBudget") is not None:
                return f"{name} is deleted"
        elif name not in want:
            return f"{name} is somebody else's, and is deleted"
        elif applied(request, budget, want[name])["spec"] != budget["spec"]:
            return f"{name} is somebody else's, and changes"
    for name in want.keys() - have.keys():
        selector = want[name]["spec"]["selector"]["matchLabels"]
        if name != parent["metadata"]["name"] or selector != {
            "controller-uid": parent["metadata"]["uid"]
        }:
            return f"{name} is created, and selects {selector}"
    return ""
