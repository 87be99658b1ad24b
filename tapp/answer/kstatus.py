"""Stalled and Reconciling: conditions for tools that wait for any kind of object.

For kstatus (sigs.k8s.io/cli-utils) a TApp that is Stalled has failed, a TApp that is Ready is
current, and any other TApp is in progress. So Stalled says more than Degraded: waiting does not
help. While a rollout makes progress (`Rollout.patience`), that is not known: the change may be
there to repair the broken instances. A rollout that exceeds its deadline is Stalled, too.
"""

from tapp.decide.cases import Case
from tapp.plan import Plan
from tapp.words.conditions import Finding, Type
from tapp.words.groups import grouped
from tapp.words.ranges import id_list
from tapp.words.reasons import Disposition

_SHOWN = 5  # Number of different waits in a message before it says how many more instances wait


def for_kstatus(progressing: Finding, degraded: Finding, patience: float) -> list[Finding]:
    """Returns Stalled, Reconciling or nothing. `patience` is `Rollout.patience`."""
    if degraded.status == "True" and patience <= 0:
        return [Finding(Type.STALLED, "True", degraded.reason, degraded.message)]
    if progressing.status == "True":
        return [Finding(Type.RECONCILING, "True", progressing.reason, progressing.message)]
    return []


def stalled(plan: Plan) -> str:
    """Returns what a rollout that has exceeded its deadline waits for, "" if it has not."""
    rollout = plan.findings.rollout
    if not rollout.exceeded:
        return ""
    waits = grouped((_wait(plan, case), case.instance.id) for case in rollout.waiting)
    parts = [
        f"instance{'s'[: len(ids) != 1]} {id_list(ids)}: {text}"
        for text, ids in list(waits.items())[:_SHOWN]
    ]
    more = sum(len(ids) for ids in list(waits.values())[_SHOWN:])
    parts += [f"and {more} more"] if more else []
    limit = plan.world.tapp.spec.progress_deadline_seconds
    return (
        f"nothing has come further since {rollout.since} (spec.progressDeadlineSeconds: {limit}): "
        f"{'; '.join(parts)}. The roll goes on as soon as one of them does; a changed template "
        "reaches at once those that are not available"
    )


def _wait(plan: Plan, case: Case) -> str:
    instance, decision = case.instance, case.decision
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
