"""The status of one pod, written whole: as it was, with the one thing changed."""

from typing import Any

from tapp.decide.pod_status import StatusWish
from tapp.pod.pod import Pod
from tapp.words.notes import GateNote
from tapp.words.times import written
from tapp.words.vocabulary import NODE_LOST

Document = dict[str, Any]

_REASONS = {True: "NoUpdateInPlace", False: "UpdateInPlace"}
_UPDATED = "is updated in place"


def status_of_pod(
    wish: StatusWish, status: Document | None, pod: Pod, now: float
) -> Document | None:
    """The status with what is wished for; as it was, None for none, where that is nothing."""
    if not (wish.gates or wish.start_clock or wish.failed):
        return status
    document = status or {}
    if wish.failed:
        return {**document, "phase": "Failed", "reason": NODE_LOST, "message": wish.failed}
    conditions = [dict(item) for item in document.get("conditions") or []]
    for gate in wish.start_clock:
        known = next(item for item in conditions if item.get("type") == gate)
        known |= GateNote(written(now), pod.generation).encode()
    for gate, is_open in wish.gates.items():
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
