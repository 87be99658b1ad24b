"""Rules about pods on hold: the actions that a hold prevents, and whether a response obeys.

All functions read JSON documents only.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from tests.merged import Merged
from tests.reading import drains, note, number, observed, phase

Document = dict[str, Any]

GROUP = "apps.tkestack.io"
HOLD, HOLD_FOR, WANTED, WANTED_SINCE = (
    f"{GROUP}/{key}" for key in ("hold", "hold-for", "wanted", "wanted-since")
)
HELD = f"{GROUP}/held"
"""The label of pods on hold."""
TOLD = (HOLD, HOLD_FOR, WANTED, WANTED_SINCE)
UPDATE, RECREATE, DELETE = "Update", "Recreate", "Delete"


def covers(pod: Document, action: str) -> bool:
    """Returns True if the pod is on hold, and the hold prevents this action."""
    if not note(pod, HOLD) or pod["metadata"].get("deletionTimestamp"):
        return False
    if phase(pod) in ("Succeeded", "Failed"):
        return False
    narrowed = note(pod, HOLD_FOR)
    return not (
        (narrowed == "update" and action == DELETE) or (narrowed == "delete" and action == UPDATE)
    )


def limit(spec: Document, action: str) -> int | None:
    """Returns the seconds after which a hold no longer prevents the action.

    Returns None if it always does.
    """
    strategy = spec.get("updateStrategy") or {}
    found = spec.get("deletionHoldTimeoutSeconds")
    result: int | None = found if action == DELETE else strategy.get("holdTimeoutSeconds")
    return result


def is_kept(pod: Document, spec: Document, action: str, now: float | None) -> bool:
    """Returns True if a hold prevents the action at the time `now`.

    If `now` is None, any time limit counts as over.
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
    """Returns the changes that a response makes to pods that the request shows on hold.

    Args:
        request: the request of the hook.
        want: the pods of the response.
        after: the pods that stay, after the merge.
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
    """Returns the action that a response takes on a pod, or an empty string."""
    if not stays or becomes is None:
        return action_of_deletion(request, pod)
    ours = (pod["metadata"].get("labels") or {}).get("tapp_template_hash_key", "")
    child = becomes.child
    moved = revisions_of(child) != revisions_of(pod) and str(ours).startswith("v1-")
    drained = drains(child) and not drains(pod)
    return UPDATE if becomes.updates or moved or drained else ""


def action_of_deletion(request: Document, pod: Document) -> str:
    """Returns Recreate if a deleted pod is replaced, otherwise Delete."""
    spec, id = request["parent"].get("spec") or {}, number(request, pod["metadata"]["name"])
    killed = (spec.get("statuses") or {}).get(str(id)) == "Killed"
    going = request["finalizing"] or killed or (id or 0) >= spec.get("replicas", 1)
    return DELETE if going else RECREATE


def revisions_of(pod: Document) -> tuple[object, ...]:
    """Returns the labels of a pod's revision, which an update writes and a marker does not."""
    labels = pod["metadata"].get("labels") or {}
    return labels.get("tapp_template_hash_key"), labels.get("tapp_uniq_hash_key")


def _is_ours_to_end(parent: Document) -> bool:
    others = {"orphan", "foregroundDeletion"} & set(parent["metadata"].get("finalizers") or [])
    return bool(parent["metadata"].get("deletionTimestamp")) and not others
