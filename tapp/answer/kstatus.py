"""Stalled and Reconciling: conditions for tools that wait for objects of any kind.

kstatus (sigs.k8s.io/cli-utils) considers a TApp failed if Stalled is True, and current if Ready is
True. In all other cases it considers the TApp in progress. A failed TApp ends the wait of such a
tool. So a Degraded TApp is not Stalled while its rollout makes progress (`Rollout.patience`),
because the rollout may repair the broken instances. A rollout that exceeds its deadline is Stalled,
too.
"""

from tapp.decide.cases import ids_of
from tapp.decide.standing import InstanceStanding
from tapp.plan import Plan
from tapp.words.conditions import Finding, Type
from tapp.words.groups import grouped
from tapp.words.ranges import each_instance
from tapp.words.times import written

_SHOWN = 5  # Most different waits in a message; of all further instances it has the number


def for_kstatus(progressing: Finding, degraded: Finding, patience: float) -> list[Finding]:
    """Returns a list with the condition Stalled or Reconciling; empty if neither is True.

    Args:
        progressing: the condition Progressing.
        degraded: the condition Degraded.
        patience: seconds in which the rollout may still repair broken instances
            (`Rollout.patience`). If it is 0, the rollout makes no progress, so a Degraded TApp is
            Stalled.
    """
    if degraded.status == "True" and patience <= 0:
        return [Finding(Type.STALLED, "True", degraded.reason, degraded.message)]
    if progressing.status == "True":
        return [Finding(Type.RECONCILING, "True", progressing.reason, progressing.message)]
    return []


def stalled(plan: Plan) -> str:
    """Returns the message about a rollout that has exceeded its deadline.

    Returns an empty string if no rollout has exceeded its deadline.
    """
    rollout = plan.findings.rollout
    if not rollout.exceeded:
        return ""
    waits = grouped((_timed(plan.standings[id]), id) for id in ids_of(rollout.waiting))
    parts = [f"{each_instance(ids)}: {text}" for text, ids in list(waits.items())[:_SHOWN]]
    more = sum(len(ids) for ids in list(waits.values())[_SHOWN:])
    parts += [f"and {more} more instance{'s'[: more != 1]}"] if more else []
    limit = plan.world.tapp.spec.progress_deadline_seconds
    return (
        f"the rollout has made no progress since {rollout.since} (spec.progressDeadlineSeconds: "
        f"{limit}): {'; '.join(parts)}. It continues as soon as one of these instances makes "
        "progress. To repair it, change the template: instances that are not available are updated "
        "at once"
    )


def _timed(found: InstanceStanding) -> str:
    """Returns the sentence about how an instance stands, and since when, if that time is known."""
    return found.sentence + ("" if found.since is None else f" since {written(found.since)}")
