"""The new status of one pod: its observed status with the changes of this service.

Metacontroller replaces the whole status of the pod by the status in the response. So the response
repeats every part of the observed status that does not change.
"""

from typing import Any

from tapp.decide.status_change import StatusChange
from tapp.pod.pod import Pod
from tapp.words.notes import GateNote
from tapp.words.times import written
from tapp.words.vocabulary import NODE_LOST

Document = dict[str, Any]

_REASONS = {True: "NoUpdateInPlace", False: "UpdateInPlace"}
_UPDATED = "the pod is being updated in place"


def status_of_pod(
    change: StatusChange, status: Document | None, pod: Pod, now: float
) -> Document | None:
    """Returns the new status of a pod, with the changes of this service.

    Args:
        change: the changes: readiness gates to open or close, or a failure of the pod. If there are
            no changes, `status` is returned.
        status: the observed status; None if the pod has none.
        pod: the pod.
        now: the time of the call, in seconds since the epoch.
    """
    if not (change.gates or change.start_clock or change.failed):
        return status
    document = status or {}
    if change.failed:
        return {**document, "phase": "Failed", "reason": NODE_LOST, "message": change.failed}
    conditions = [dict(item) for item in document.get("conditions") or []]
    for gate in change.start_clock:
        known = next(item for item in conditions if item.get("type") == gate)
        known |= GateNote(written(now), pod.generation).encode()
    for gate, is_open in change.gates.items():
        changed = {
            "type": gate,
            "status": str(is_open),
            "reason": _REASONS[is_open],
            "message": f"runs revision {pod.spec.template_hash}" if is_open else _UPDATED,
            "lastTransitionTime": written(now),
        }
        places = [i for i, item in enumerate(conditions) if item.get("type") == gate]
        if places:
            conditions[places[0]] = changed
        else:
            conditions.append(changed)
    return {**document, "conditions": conditions}
