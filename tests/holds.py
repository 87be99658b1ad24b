"""Checks that a response of the hook obeys the holds on pods, for `tests.invariants`.

A hold is an annotation on a pod that asks the service not to update, replace or delete the pod.
`touched_on_hold` is the entry point. All functions read JSON documents and use no code of the
service.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from tests.hook_calls import drains, note, number, observed, phase
from tests.metacontroller_merge import Merged

Document = dict[str, Any]

GROUP = "apps.tkestack.io"
HOLD, HOLD_FOR, WANTED, WANTED_SINCE = (
    f"{GROUP}/{key}" for key in ("hold", "hold-for", "wanted", "wanted-since")
)
HELD = f"{GROUP}/held"
"""The label that the service sets on pods on hold."""
TOLD = (HOLD, HOLD_FOR, WANTED, WANTED_SINCE)
"""The annotations of a hold: the first two are set by users or programs, the others by the
service.
"""
AUTOSCALERS = (
    f"{GROUP}/held-annotations",
    "cluster-autoscaler.kubernetes.io/safe-to-evict",
    "karpenter.sh/do-not-disrupt",
)
"""The annotations that keep autoscalers away from a pod on hold, and the record of these."""
UPDATE, RECREATE, DELETE = "Update", "Recreate", "Delete"


def covers(pod: Document, action: str) -> bool:
    """Returns True if the pod is on hold and its hold applies to the action (Update, Recreate or
    Delete).

    A hold applies to neither a pod that is being deleted nor a pod that has ended. The annotation
    `hold-for` can restrict a hold to updates or to deletions; a hold always applies to Recreate.
    """
    if not note(pod, HOLD) or pod["metadata"].get("deletionTimestamp"):
        return False
    if phase(pod) in ("Succeeded", "Failed"):
        return False
    narrowed = note(pod, HOLD_FOR)
    return not (
        (narrowed == "update" and action == DELETE) or (narrowed == "delete" and action == UPDATE)
    )


def limit(spec: Document, action: str) -> int | None:
    """Returns the seconds after which a hold no longer prevents the action, from the TApp's spec.

    Returns None if the spec sets no limit, so that the hold has no end.
    """
    strategy = spec.get("updateStrategy") or {}
    found = spec.get("deletionHoldTimeoutSeconds")
    result: int | None = found if action == DELETE else strategy.get("holdTimeoutSeconds")
    return result


def is_kept(pod: Document, spec: Document, action: str, now: float | None) -> bool:
    """Returns True if the pod's hold still prevents the action at the time `now`, in seconds since
    the epoch.

    If `now` is None, a hold with a time limit counts as expired.
    """
    if not covers(pod, action):
        return False
    seconds = limit(spec, action)
    if seconds is None:
        return True
    if not seconds or now is None or note(pod, WANTED) != action:
        return bool(seconds) and now is not None
    since = datetime.fromisoformat(note(pod, WANTED_SINCE)).timestamp()
    return since > now or now < since + seconds


def touched_on_hold(
    request: Document, want: Mapping[str, Document], after: Mapping[str, Merged], now: float | None
) -> list[str]:
    """Returns a sentence for each pod on hold to which a response does an action that the hold
    prevents.

    Args:
        request: the request to the hook.
        want: the pods of the response, by name.
        after: observed pods that the response keeps, after Metacontroller's merge, by name.
        now: seconds since the epoch, or None if unknown.
    """
    parent, found = request["parent"], list[str]()
    if request["finalizing"] and not _is_ours_to_end(parent):
        return []
    for name, pod in observed(request, "Pod").items():
        if not note(pod, HOLD) or number(request, name) is None:
            continue
        action = _done(request, pod, name in want, after.get(name))
        if action and is_kept(pod, parent.get("spec") or {}, action, now):
            found.append(f"{name} is on hold ({note(pod, HOLD)!r}), and {action} is done to it")
    return found


def _done(request: Document, pod: Document, stays: bool, becomes: Merged | None) -> str:
    """Returns the action that a response takes on a pod: Update, Recreate or Delete, or "" for
    none.

    `stays` is True if the response contains the pod, and `becomes` is the pod after the merge.
    """
    if not stays or becomes is None:
        return action_of_deletion(request, pod)
    ours = (pod["metadata"].get("labels") or {}).get("tapp_template_hash_key", "")
    child = becomes.child
    moved = revisions_of(child) != revisions_of(pod) and str(ours).startswith("v1-")
    drained = drains(child) and not drains(pod)
    return UPDATE if becomes.updates or moved or drained else ""


def action_of_deletion(request: Document, pod: Document) -> str:
    """Returns the action that the deletion of a pod means: Recreate if a new pod follows, otherwise
    Delete.
    """
    spec, id = request["parent"].get("spec") or {}, number(request, pod["metadata"]["name"])
    killed = (spec.get("statuses") or {}).get(str(id)) == "Killed"
    going = request["finalizing"] or killed or (id or 0) >= spec.get("replicas", 1)
    return DELETE if going else RECREATE


def revisions_of(pod: Document) -> tuple[object, ...]:
    """Returns the values of the two labels that name the pod's revision; an update changes these
    labels.
    """
    labels = pod["metadata"].get("labels") or {}
    return labels.get("tapp_template_hash_key"), labels.get("tapp_uniq_hash_key")


def _is_ours_to_end(parent: Document) -> bool:
    others = {"orphan", "foregroundDeletion"} & set(parent["metadata"].get("finalizers") or [])
    return bool(parent["metadata"].get("deletionTimestamp")) and not others
