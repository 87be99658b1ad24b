"""Stalled and Reconciling: conditions for tools that wait for objects of any kind.

kstatus (sigs.k8s.io/cli-utils) considers a TApp failed if Stalled is True, and current if Ready is
True. In all other cases it considers the TApp in progress. A failed TApp ends the wait of such a
tool. So a Degraded TApp is not Stalled while its rollout makes progress (`Rollout.patience`),
because the rollout may repair the broken instances. A rollout that exceeds its deadline is Stalled,
too, and stays so after its rollback.
"""

from tapp.decide.cases import ids_of
from tapp.decide.standing import InstanceStanding
from tapp.plan import Plan
from tapp.words.conditions import Finding, Type
from tapp.words.groups import grouped
from tapp.words.notes import RolledBackNote
from tapp.words.ranges import each_instance, instance_list
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
    """Returns the message about a rollout that has exceeded its deadline, or was rolled back.

    Returns an empty string if there is no such rollout.
    """
    rollout, rollback = plan.findings.rollout, plan.rollback
    limit = plan.world.tapp.spec.progress_deadline_seconds
    since = f"has made no progress since {rollout.since} (spec.progressDeadlineSeconds: {limit})"
    if rollback.active is not None:
        text = _rolled_back(plan, rollback.active)
        if rollout.exceeded:
            text += (
                f". The return {since}: {waits_of(plan)}. The TApp service does not roll back "
                "twice, so a person has to repair these instances"
            )
        return text
    if not rollout.exceeded:
        return ""
    text = f"the rollout {since}: {waits_of(plan)}. "
    if rollback.begins:
        return (
            f"{text}Revision {rollback.update} is rolled back now: the instances return to "
            f"revision {rollback.to} (spec.updateStrategy.onDeadline: Rollback)"
        )
    text += (
        "It continues as soon as one of these instances makes progress. To repair it, change the "
        "template: instances that are not available are updated at once"
    )
    if rollback.obstacle:
        text += (
            ". It is not rolled back (spec.updateStrategy.onDeadline: Rollback), because "
            f"{rollback.obstacle}"
        )
    return text


def waits_of(plan: Plan) -> str:
    """Returns the instances that a rollout waits for, each with the reason, as one text."""
    waiting = ids_of(plan.findings.rollout.waiting)
    waits = grouped((_timed(plan.standings[id]), id) for id in waiting)
    parts = [f"{each_instance(ids)}: {text}" for text, ids in list(waits.items())[:_SHOWN]]
    more = sum(len(ids) for ids in list(waits.values())[_SHOWN:])
    parts += [f"and {more} more instance{'s'[: more != 1]}"] if more else []
    return "; ".join(parts)


def _rolled_back(plan: Plan, note: RolledBackNote) -> str:
    """Returns the sentences about a revision that was rolled back, as `note` says.

    They say when and why, how far the instances have returned, and how to go on.
    """
    to, meta = plan.rollback.to, plan.world.tapp.metadata
    left = [
        case.instance.id
        for case in plan.notable
        if case.instance.is_rolled_back and case.instance.should_run and not case.instance.updated
    ]
    returned = f"all instances of the rolling template run revision {to} again"
    if left:
        verb = "has" if len(left) == 1 else "have"
        returned = f"{instance_list(left)} still {verb} to return to revision {to}"
    return (
        f"revision {note.revision} was rolled back at {note.at}, because its rollout had made no "
        f"progress for spec.progressDeadlineSeconds ({note.why}); {returned}. The spec still asks "
        f"for revision {note.revision}: change the template, or roll the revision out once more "
        f"with `kubectl tapp retry {meta.name} -n {meta.namespace}`"
    )


def _timed(found: InstanceStanding) -> str:
    """Returns the sentence about how an instance stands, and since when, if that time is known."""
    return found.sentence + ("" if found.since is None else f" since {written(found.since)}")
