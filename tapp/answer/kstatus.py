"""Stalled and Reconciling: conditions for tools that wait for objects of any kind.

kstatus (sigs.k8s.io/cli-utils) considers a TApp failed if Stalled is True, current if Ready is
True, and in progress otherwise. So Stalled means more than Degraded: waiting does not help. A
Degraded TApp is not Stalled while its rollout makes progress (`Rollout.patience`), because the
rollout may repair the broken instances. A rollout that exceeds its deadline is Stalled, too.
"""

from tapp.decide.standing import awaited
from tapp.plan import Plan
from tapp.words.conditions import Finding, Type
from tapp.words.groups import grouped
from tapp.words.ranges import each_instance

_SHOWN = 5  # Number of different waits in a message before it says how many more instances wait


def for_kstatus(progressing: Finding, degraded: Finding, patience: float) -> list[Finding]:
    """Returns the condition Stalled or Reconciling as a list; empty if neither is True.

    Args:
        progressing: the condition Progressing.
        degraded: the condition Degraded.
        patience: seconds in which the rollout may still repair broken instances
            (`Rollout.patience`). If it is 0, a Degraded TApp is Stalled: its rollout makes no
            progress.
    """
    if degraded.status == "True" and patience <= 0:
        return [Finding(Type.STALLED, "True", degraded.reason, degraded.message)]
    if progressing.status == "True":
        return [Finding(Type.RECONCILING, "True", progressing.reason, progressing.message)]
    return []


def stalled(plan: Plan) -> str:
    """Returns the message about a rollout that has exceeded its deadline.

    Returns an empty string if no rollout has.
    """
    rollout = plan.findings.rollout
    if not rollout.exceeded:
        return ""
    ids = ((case, case.instance.id) for case in rollout.waiting)
    waits = grouped(
        (awaited(case, available=id in plan.available, trouble=plan.troubles.get(id)), id)
        for case, id in ids
    )
    parts = [f"{each_instance(ids)}: {text}" for text, ids in list(waits.items())[:_SHOWN]]
    more = sum(len(ids) for ids in list(waits.values())[_SHOWN:])
    parts += [f"and {more} more instance{'s'[: more != 1]}"] if more else []
    limit = plan.world.tapp.spec.progress_deadline_seconds
    return (
        f"the rollout has made no progress since {rollout.since} (spec.progressDeadlineSeconds: "
        f"{limit}): {'; '.join(parts)}. It continues as soon as one of these instances makes "
        "progress; a changed template is applied at once to instances that are not available"
    )
