"""Conditions for tools that wait for any kind of object: Reconciling and Stalled, beside Ready.

kstatus (sigs.k8s.io/cli-utils) takes a TApp that is Stalled for failed and one that is Ready for
current; all else is in progress. So `Stalled` says more than that something is degraded: waiting
does not help. That is not known of a roll that has come further just now, as it has with every
change of the spec: an instance that is broken is what the change may be there for. And a
roll may be too late.
"""

from typing import Any

from tapp.decide.instances import Instance
from tapp.decide.judge import Verdict
from tapp.plan import Plan
from tapp.words.conditions import Finding, Type
from tapp.words.groups import grouped
from tapp.words.ranges import id_list
from tapp.words.reasons import Disposition

Document = dict[str, Any]

_SHOWN = 5  # Number of different waits in a message before it says how many more instances wait


def for_kstatus(progressing: Finding, degraded: Finding, patience: float) -> list[Finding]:
    """Stalled, Reconciling or neither, by `Roll.patience`; a late roll is a refusal (`stalled`)."""
    if degraded.status == "True" and patience <= 0:
        return [Finding(Type.STALLED, "True", degraded.reason, degraded.message)]
    if progressing.status == "True":
        return [Finding(Type.RECONCILING, "True", progressing.reason, progressing.message)]
    return []


def recheck(plan: Plan, status: Document) -> float | None:
    """Seconds after which to sync again: what the plan waits for, or the end of patience."""
    degraded = any(
        item["type"] == Type.DEGRADED and item["status"] == "True" for item in status["conditions"]
    )
    waits = [plan.roll.patience] if degraded and plan.roll.patience > 0 else []
    return min([*waits, *([] if plan.recheck is None else [plan.recheck])], default=None)


def stalled(plan: Plan) -> str:
    """The instances that a late roll waits for, for what and since when; "" in time."""
    roll = plan.roll
    if not roll.late:
        return ""
    waits = grouped((_wait(plan, *waiting), waiting[0].id) for waiting in roll.waiting)
    parts = [
        f"instance{'s'[: len(ids) != 1]} {id_list(ids)}: {text}"
        for text, ids in list(waits.items())[:_SHOWN]
    ]
    more = sum(len(ids) for ids in list(waits.values())[_SHOWN:])
    parts += [f"and {more} more"] if more else []
    limit = plan.world.tapp.spec.progress_deadline_seconds
    return (
        f"nothing has come further since {roll.since} (spec.progressDeadlineSeconds: {limit}): "
        f"{'; '.join(parts)}. The roll goes on as soon as one of them does; a changed template "
        "reaches at once those that are not available"
    )


def _wait(plan: Plan, instance: Instance, decision: Verdict) -> str:
    pod, trouble = instance.pod, plan.troubles.get(instance.id)
    held = decision.reason.disposition is Disposition.HELD
    if held or instance.id in plan.available:
        return decision.message
    if pod is None:
        return "it has no pod"
    if trouble is not None and trouble.text:
        return trouble.text
    if pod.terminating:
        return "its pod is ending"
    if instance.update.unfinished:
        return "its update in place is not finished"
    if trouble is not None and trouble.waiting:
        return trouble.waiting
    since = f" since {pod.ready_since}" if pod.ready_since else ""
    if pod.ready is not True:
        return f"its pod is not Ready{since}"
    return f"its pod is Ready{since}, and not available yet"
