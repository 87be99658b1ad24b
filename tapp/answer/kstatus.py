"""What tools that wait for any kind of object read: Reconciling and Stalled, beside Ready.

kstatus (sigs.k8s.io/cli-utils) takes a TApp that is Stalled for failed and one that is Ready for
current; all else is in progress. So `Stalled` says more than that something is degraded: waiting
does not help. That is not known of a roll that has come further just now, as it has with every
change of the spec: an instance that is broken is what the change may be there for.
"""

from typing import Any

from tapp.plan import Plan
from tapp.words.conditions import Finding, Type

Document = dict[str, Any]


def for_kstatus(progressing: Finding, degraded: Finding, patience: float) -> Finding | None:
    """Which of the two is True, if one is; that a roll is too late is found elsewhere.

    Args:
        progressing: the condition.
        degraded: the condition.
        patience: of the roll.
    """
    if degraded.status == "True" and patience <= 0:
        return Finding(Type.STALLED, "True", degraded.reason, degraded.message)
    if progressing.status == "True":
        return Finding(Type.RECONCILING, "True", progressing.reason, progressing.message)
    return None


def recheck(plan: Plan, status: Document) -> float | None:
    """Seconds after which to sync again: what the plan waits for, or the end of patience."""
    degraded = any(
        item["type"] == Type.DEGRADED and item["status"] == "True" for item in status["conditions"]
    )
    waits = [plan.roll.patience] if degraded and plan.roll.patience > 0 else []
    return min([*waits, *([] if plan.recheck is None else [plan.recheck])], default=None)
