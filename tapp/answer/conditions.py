"""The conditions of a TApp, as findings (conditions without their time).

Available, Progressing, Ready and Degraded always exist. A refusal exists as long as its cause
exists (`refusals.py`). Stalled and Reconciling exist for tools such as kstatus. These findings are
the source of the conditions in the status, of Events, and of the time of the next sync.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from tapp.answer.kstatus import for_kstatus
from tapp.answer.partition_sentence import kept_back
from tapp.answer.refusals import refusals
from tapp.decide.instances import Instance
from tapp.decide.pulls import pulled_where
from tapp.decide.rollout import BUDGET_REASONS
from tapp.plan import Plan
from tapp.words.conditions import HARMLESS, Finding, Type
from tapp.words.groups import grouped
from tapp.words.ranges import each_instance, instance_list, joined
from tapp.words.reasons import Reason
from tapp.words.times import written
from tapp.words.vocabulary import InstanceStatus

_SHOWN = 5  # Most broken instances that a message describes; of further ones it has the number


@dataclass(frozen=True)
class Conditions:
    """All conditions of a TApp in one sync, as findings (conditions without their times)."""

    available: Finding
    progressing: Finding
    ready: Finding
    degraded: Finding
    refused: Sequence[Finding]
    for_tools: Sequence[Finding]  # Stalled or Reconciling, or empty if neither is True

    @property
    def all(self) -> list[Finding]:
        """Returns all findings in the order of `status.conditions`."""
        return [
            *(self.available, self.progressing, self.ready, self.degraded),
            *self.refused,
            *self.for_tools,
        ]


def conditions_of(plan: Plan) -> Conditions:
    """Returns the conditions that describe the plan of a sync."""
    refused = refusals(plan)
    degraded = _degraded(refused, _broken(plan))
    kept = kept_back(plan)
    progressing = _unless_degraded(_progress(plan, refused, kept), degraded, kept)
    rollout = plan.findings.rollout
    return Conditions(
        available=_available(plan),
        progressing=progressing,
        ready=_ready(progressing, degraded, kept),
        degraded=degraded,
        refused=refused,
        # After the deadline, `refused` contains Stalled already.
        for_tools=[]
        if any(finding.type is Type.STALLED for finding in refused)
        else for_kstatus(progressing, degraded, rollout.patience),
    )


def recheck(plan: Plan, conditions: Conditions) -> float | None:
    """Returns the seconds until the next sync; None if only an event of the cluster has to start
    it.

    The next sync is needed at the earliest of two times:

    - the time that the plan asks for (`plan.recheck`),
    - for a Degraded TApp, the time from which its rollout no longer counts as making progress
      (`Rollout.patience`). The TApp then becomes Stalled.
    """
    degraded, patience = conditions.degraded.status == "True", plan.findings.rollout.patience
    waits = [patience] if degraded and patience > 0 else []
    return min([*waits, *([] if plan.recheck is None else [plan.recheck])], default=None)


def _available(plan: Plan) -> Finding:
    """Returns the condition Available.

    Available is True if at least as many instances are available as the budget (`maxUnavailable`)
    requires.
    """
    should_run, available = plan.budgets.should_run, len(plan.available)
    rolling = plan.budgets.rolling
    least = rolling.least if rolling.least is not None else should_run
    enough = available >= max(least, min(1, should_run))
    return Finding(
        Type.AVAILABLE,
        "True" if enough else "False",
        Reason.ENOUGH if enough else Reason.TOO_FEW,
        f"{available} of {should_run} instances that should run are available",
    )


def _progress(plan: Plan, refused: list[Finding], kept: str) -> Finding:
    """Returns the condition Progressing. Its message includes the sentence about kept instances.

    Args:
        plan: the decisions of the sync.
        refused: the refusals: conditions that say what the service does not do.
        kept: the sentence about instances that a partition keeps at an older revision; empty if the
            partition keeps no instance.
    """
    found = _under_way(plan, refused)
    if not kept or found.reason in (Reason.PROGRESS_DEADLINE_EXCEEDED, Reason.ROLLED_BACK):
        return found
    if found.reason == Reason.COMPLETE:
        total = [instance for instance in plan.instances if instance.should_run]
        done = sum(not instance.kept for instance in total)
        updated = f"{done} of {len(total)} instances {'is' if done == 1 else 'are'}"
        return replace(found, message=f"{updated} updated; {kept}")
    return replace(found, message=f"{found.message}; {kept}")


def _under_way(plan: Plan, refused: list[Finding]) -> Finding:
    """Returns the condition Progressing without the sentence about kept instances.

    Its message names the actions that are under way, or says why there are none. `refused` are the
    refusals of the sync. If one of them is Stalled, the rollout has exceeded its deadline or was
    rolled back, and Progressing is False with the same reason and message.
    """
    for finding in refused:
        if finding.type is Type.STALLED:
            return Finding(Type.PROGRESSING, "False", finding.reason, finding.message)
    found = grouped((each.progress, id) for id, each in plan.standings.items())
    active = [(reason, found[reason]) for reason in _PHRASES if reason in found]
    if active:
        available = plan.available
        unavailable = {
            each.id: each for each in plan.instances if each.should_run and each.id not in available
        }
        message = "; ".join(_clause(plan, reason, ids, unavailable) for reason, ids in active)
        return Finding(Type.PROGRESSING, "True", active[0][0], message)
    if paused := found.get(Reason.PAUSED):
        meta = plan.world.tapp.metadata
        message = (
            f"updates of {instance_list(paused)} are paused (spec.updateStrategy.paused); "
            f"`kubectl tapp resume {meta.name} -n {meta.namespace}` resumes them"
        )
        return Finding(Type.PROGRESSING, "False", Reason.PAUSED, message)
    if stuck := found.get(Reason.STUCK):
        message = f"{instance_list(stuck)} cannot continue; the condition Degraded says why"
        return Finding(Type.PROGRESSING, "False", Reason.STUCK, message)
    message = "every instance is as the spec asks"
    return Finding(Type.PROGRESSING, "False", Reason.COMPLETE, message)


def _clause(plan: Plan, reason: Reason, ids: list[int], unavailable: Mapping[int, Instance]) -> str:
    """Returns the clause of Progressing's message about the instances with one reason.

    Args:
        plan: the decisions of the sync.
        reason: the reason, a key of `_PHRASES`.
        ids: the numbers of the instances with this reason.
        unavailable: number -> instance, for all instances that should run and are not available.
    """
    one = len(ids) == 1
    text = _PHRASES[reason].format(instance_list(ids), "s"[:one], _are(ids), "s"[: not one])
    if reason is Reason.PULLING:
        text += f" ({pulled_where(plan.findings.pulls.running)})"
    if reason is Reason.WAITING_FOR_BUDGET:
        text += _arithmetic(plan)
    if reason is Reason.WAITING_FOR_DOMAIN:
        text += f", until {plan.findings.domains.awaited}"
    return text + _waits(plan, [unavailable[id] for id in ids if id in unavailable])


def _waits(plan: Plan, unavailable: list[Instance]) -> str:
    """Returns a text in parentheses that says what unavailable instances wait for.

    An instance waits for its node to report, or for what its pod waits for. Returns an empty string
    if neither is known of any instance.
    """
    silent = [item.id for item in unavailable if item.status is InstanceStatus.UNKNOWN]
    parts = [_silent(silent)] if silent else []
    waits = grouped(
        (found.waiting, item.id)
        for item in unavailable
        if item.id not in silent
        and (found := plan.troubles.get(item.id)) is not None
        and found.waiting
    )
    parts += [f"{each_instance(ids)}: {text}" for text, ids in waits.items()]
    return f" ({joined(parts)})" if parts else ""


def _silent(ids: list[int]) -> str:
    """Returns a clause such as `the node of instance 0 has stopped reporting`.

    `ids` are the numbers of the instances whose nodes have stopped reporting.
    """
    nodes = "node of {} has" if len(ids) == 1 else "nodes of {} have"
    return f"the {nodes.format(instance_list(ids))} stopped reporting"


def _are(ids: list[int]) -> str:
    """Returns "is" for one instance, and "are" for several instances."""
    return "is" if len(ids) == 1 else "are"


# Reason -> a clause about the instances with this reason, in the order of the message. The fields
# are: {0} the instances, {1} the "s" of a verb in the singular, {2} "is" or "are", {3} the "s" of a
# noun in the plural.
_PHRASES = {
    Reason.CREATING: "creating {0}",
    Reason.UPDATING: "updating {0}",
    Reason.PULLING: "pulling images before the update of {0}",
    Reason.DELETING: "deleting the pod{3} of {0}",
    Reason.WAITING_FOR_BUDGET: "{0} wait{1} for the budget",
    Reason.WAITING_FOR_DOMAIN: "{0} wait{1} for another failure domain",
    Reason.WAITING_FOR_INSTANCES: "{0} {2} not yet available",
    Reason.HELD: "{0} {2} on hold",
    Reason.WAITING_FOR_ORDER: "{0} wait{1} for another instance, which comes first "
    "(podManagementPolicy: OrderedReady)",
}


def _arithmetic(plan: Plan) -> str:
    """Returns a text in parentheses that names the instances that use up the budget.

    An example is ` (maxUnavailable 1 of 6 is used up by instance 0)`. An instance uses up the
    budget if it is not available, or if this sync updates it.
    """
    budgets, rolling_name = plan.budgets, plan.world.tapp.spec.rolling_name
    groups = {
        case.instance.template_name == rolling_name
        for reason in BUDGET_REASONS
        for case in plan.by_reason.get(reason, [])
    }
    limits = [
        f"{budget.name.removeprefix('spec.updateStrategy.')} {budget.value}"
        for rolling, budget in ((False, budgets.force), (True, budgets.rolling))
        if rolling in groups
    ]
    limits = list(dict.fromkeys(limits))
    taken = {case.instance.id for case in plan.notable if case.decision.is_update}
    serving = plan.available - taken
    users = [item.id for item in plan.instances if item.should_run and item.id not in serving]
    if not users:
        return " (updates of the previous spec may still be under way)"
    are = "is" if len(limits) == 1 else "are"
    of = budgets.should_run
    return f" ({' and '.join(limits)} of {of} {are} used up by {instance_list(users)})"


def _unless_degraded(progressing: Finding, degraded: Finding, kept: str) -> Finding:
    """Returns Progressing, with another message if it is complete although Degraded is True.

    The other message refers to Degraded. In all other cases, `progressing` is returned unchanged.

    Args:
        progressing: the condition Progressing.
        degraded: the condition Degraded.
        kept: the sentence about instances that a partition keeps at an older revision; empty if the
            partition keeps no instance.
    """
    if progressing.reason == Reason.COMPLETE and degraded.status == "True":
        message = (
            "the condition Degraded names a problem; the TApp service does nothing more until that "
            "problem is solved"
        )
        message += f"; {kept}" if kept else ""
        return Finding(Type.PROGRESSING, "False", Reason.COMPLETE, message)
    return progressing


def _ready(progressing: Finding, degraded: Finding, kept: str) -> Finding:
    """Returns the condition Ready, which kubectl, kstatus and Argo CD read.

    - If Progressing is complete and Degraded is False, Ready is True.
    - If Degraded is True, Ready is False with the reason and message of Degraded.
    - In all other cases, Ready is False with the reason and message of Progressing.

    Args:
        progressing: the condition Progressing.
        degraded: the condition Degraded.
        kept: the sentence about instances that a partition keeps at an older revision; empty if the
            partition keeps no instance.
    """
    if progressing.reason == Reason.COMPLETE and degraded.status == "False":
        reason = Reason.REACHED if kept else Reason.AS_SPECIFIED
        return Finding(Type.READY, "True", reason, progressing.message)
    trouble = degraded if degraded.status == "True" else progressing
    return Finding(Type.READY, "False", trouble.reason, trouble.message)


def _degraded(refused: list[Finding], broken: list[str]) -> Finding:
    """Returns the condition Degraded: True if there is a harmful refusal or a broken instance.

    Args:
        refused: the refusals. Refusals of the types in `HARMLESS` do not make the TApp Degraded.
        broken: one sentence for each broken instance.
    """
    harmful = [finding for finding in refused if finding.type not in HARMLESS]
    # If the first harmful refusal is a stalled rollout, broken instances are reported instead,
    # because they are the cause.
    if harmful and not (broken and harmful[0].type is Type.STALLED):
        message = "; ".join(finding.message for finding in harmful)
        return Finding(Type.DEGRADED, "True", harmful[0].type, message)
    if broken:
        more = f" and {len(broken) - _SHOWN} more" if len(broken) > _SHOWN else ""
        return Finding(Type.DEGRADED, "True", Reason.BROKEN, "; ".join(broken[:_SHOWN]) + more)
    message = "no problem is known: no instance is broken, and no part of the spec is refused"
    return Finding(Type.DEGRADED, "False", Reason.AS_EXPECTED, message)


def _broken(plan: Plan) -> list[str]:
    """Returns one sentence for each instance that has failed or whose pod has trouble."""
    result = []
    for instance in plan.instances:
        if not instance.wanted:
            continue
        if instance.status is InstanceStatus.FAILED:
            quote = instance.pod.message if instance.pod is not None else ""
            result.append(f"instance {instance.id} has failed" + (f" ({quote})" if quote else ""))
        elif (found := plan.troubles.get(instance.id)) is not None and found.text:
            result.append(f"instance {instance.id}: {found.text}{_next_pod(instance)}")
    return result


def _next_pod(instance: Instance) -> str:
    """Returns a clause that says when the next pod of a broken instance is created.

    Returns an empty string if the instance does not wait for that time.
    """
    if instance.pace is None or instance.pace.is_due:
        return ""
    at = written(instance.pace.due + 1)
    failures = instance.pace.failures
    failed = "1 pod has failed" if failures == 1 else f"{failures} pods have failed in a row"
    return f"; {failed}, and the next one is created at {at}"
