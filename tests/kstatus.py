"""Computes the state of an object as kstatus does; Flux, helm and kpt wait for objects with
kstatus.

`compute` is `status.Compute` of kubernetes-sigs/cli-utils for kinds without their own rules
(`checkGenericProperties`, then `checkReadyCondition`). This implementation was compared with the
original, and with Flux's copy that helm uses, for all states of tests/scenarios/gitops.py.
"""

from typing import Any

Document = dict[str, Any]


def compute(obj: Document) -> str:
    """Returns the state of a Kubernetes object: InProgress, Current, Failed or Terminating."""
    if obj["metadata"].get("deletionTimestamp"):
        return "Terminating"
    status: Document = obj.get("status") or {}
    generation = obj["metadata"]["generation"]
    if status.get("observedGeneration", generation) != generation:
        return "InProgress"
    conditions = status.get("conditions") or []
    for each in conditions:
        if each["status"] == "True" and each["type"] in _ABNORMAL:
            return _ABNORMAL[each["type"]]
    ready = next((each["status"] for each in conditions if each["type"] == "Ready"), "True")
    return "Current" if ready == "True" else "InProgress"


_ABNORMAL = {"Reconciling": "InProgress", "Stalled": "Failed"}
"""Type of a condition -> the state that it means if its status is True; the first such condition
counts.
"""
