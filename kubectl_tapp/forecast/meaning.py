"""Tells what an edit means for each instance, from one decision and without a simulation.

Verbs show this before they write. The order and the duration are only in the forecast that
`foresee.forecast` simulates for `kubectl tapp plan`.
"""

from dataclasses import replace

from kubectl_tapp.base.observed import Document, Observed
from kubectl_tapp.cluster.registration import Registration
from kubectl_tapp.decide.decisions import decide, decide_if_readable
from kubectl_tapp.forecast.forecast import Forecast
from kubectl_tapp.forecast.outcomes import Outcomes
from kubectl_tapp.forecast.run_log import RunLog, due_writes, unavailable
from kubectl_tapp.forecast.templates import other_fields, template_changes
from tapp.decide.cases import Case
from tapp.decide.standing import standings_of
from tapp.decide.verdicts import UP_TO_DATE
from tapp.plan import Plan
from tapp.words.ranges import instance_list
from tapp.words.times import written


def decide_edit(
    observed: Observed, edited: Document, registration: Registration, now: float
) -> tuple[Forecast, list[int]]:
    """Decides once about the edited TApp, without a simulation.

    Returns a forecast without order and times, and the numbers of the instances that the edit
    affects. Raises hooks.wire.decode.WireError if the edited TApp is invalid.

    Args:
        observed: the TApp before the edit, with its objects.
        edited: the TApp after the edit.
        registration: the CompositeController of the TApp, and the options of the service.
        now: the time of the decision, in seconds since the epoch.
    """
    # Without these limits the one decision covers all instances, also those that would wait for a
    # later sync or for another instance.
    options = replace(registration.options, max_new_pods_bytes=1 << 60)
    registration = registration._replace(options=options)
    after = decide(replace(observed, tapp=_without_order(edited)), registration, now)
    before = decide_if_readable(observed, registration, now)
    base = Forecast(
        observed.name,
        edited["metadata"].get("namespace") or "default",
        templates=template_changes(observed, edited),
        fields=other_fields(observed.tapp, edited),
        at_once=_updated_together(after),
        played=False,
    )
    outcomes = Outcomes(observed, edited, before, _as_run_log(after), now)
    concerned = (
        [each.id for each in after.instances if each.wanted]
        if before is None
        else affected_instances(before, after)
    )
    return outcomes.forecast(base, pace=(), notes=()), concerned


def _without_order(edited: Document) -> Document:
    """Returns the TApp with podManagementPolicy Parallel instead of OrderedReady.

    A single decision then covers all instances, because no instance waits for another.
    """
    spec = edited.get("spec") or {}
    if spec.get("podManagementPolicy") != "OrderedReady":
        return edited
    return {**edited, "spec": {**spec, "podManagementPolicy": "Parallel"}}


def _updated_together(after: Plan) -> str:
    """Returns a phrase about instances of other templates than the rolling one that the edit
    updates all together.

    The rolling template is the one that `updateStrategy.template` names. The budget of the other
    templates is 100%, unless updateStrategy.forceUpdate.maxUnavailable is set. Returns "" if at
    most one such instance is updated.
    """
    spec = after.world.tapp.spec
    rolling = spec.rolling_name
    ids = [
        case.instance.id
        for case in after.notable
        if case.decision.is_update and spec.template_name(case.instance.id) != rolling
    ]
    if len(ids) <= 1:
        return ""
    left = len(after.available - set(ids))
    stay = "stays" if left == 1 else "stay"
    return f"{instance_list(ids)} at once ({left or 'none'} {stay} available)"


def affected_instances(before: Plan, after: Plan) -> list[int]:
    """Returns the numbers of the instances whose desired state the edit changes, sorted.

    The desired state is the revision of the instance's template, and whether the instance should
    run. `before` and `after` are the decisions before and after the edit.
    """
    known, wanted = _desired_states(before), _desired_states(after)
    return sorted(id for id in {*known, *wanted} if known.get(id) != wanted.get(id))


def _desired_states(plan: Plan) -> dict[int, tuple[object, ...]]:
    return {
        each.id: (each.killed, each.template.revision if each.template else each.template_name)
        for each in plan.instances
        if each.wanted
    }


def _as_run_log(after: Plan) -> RunLog:
    """Returns the record of a simulation in which all decisions of `after` are carried out at
    once.
    """
    acts, left = due_writes(after)
    made = [act.instance for act in acts if act.verb == "create" and act.instance is not None]
    # The condition CreationBlocked covers only instances whose pod was requested. The pods that
    # this decision creates count as requested, so that the forecast has the condition.
    asked = {written(after.now): made} if made else {}
    missing = replace(after.findings.missing, pods=asked)
    cases = [Case(one, left.get(one.id, UP_TO_DATE)) for one in after.instances]
    last = replace(
        after,
        cases=cases,
        troubles={},
        standings=standings_of(cases, after.serving, {}, missing, after.now),
        findings=replace(after.findings, missing=missing),
    )
    looks = [(after.now, unavailable(after))]
    return RunLog(looks, acts, first=after, last=last, ended=after.now, played=False)
