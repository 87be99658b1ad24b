"""The meaning of an edit for each instance: one decision of the service's code, nothing played.

A verb asks this before it writes. How it goes on, in which order and how long, only
`foresee.forecast` plays, for `kubectl tapp plan`.
"""

from dataclasses import replace

from kubectl_tapp.base.observed import Document, Observed
from kubectl_tapp.cluster.registration import Registration
from kubectl_tapp.decide.decisions import decide, decide_if_readable
from kubectl_tapp.forecast.forecast import Forecast
from kubectl_tapp.forecast.outcomes import Outcomes
from kubectl_tapp.forecast.run_log import RunLog, due_writes, unavailable
from kubectl_tapp.forecast.templates import other_fields, template_changes
from tapp.decide.rollout import is_update
from tapp.plan import Plan
from tapp.words.ranges import id_list
from tapp.words.times import written


def meaning(
    observed: Observed, edited: Document, registration: Registration, now: float
) -> tuple[Forecast, list[int]]:
    """Decides once about the edited TApp: a forecast without order and times, and whom it concerns.

    Raises hooks.wire.decode.WireError: the service could not read the edited TApp.
    """
    # Who waits for a turn, or for others to come first, is created or deleted, too.
    options = replace(registration.options, max_new_pods_bytes=1 << 60)
    registration = registration._replace(options=options)
    after = decide(replace(observed, tapp=_at_once(edited)), registration, now)
    before = decide_if_readable(observed, registration, now)
    base = Forecast(
        observed.name,
        edited["metadata"].get("namespace") or "default",
        templates=template_changes(observed, edited),
        fields=other_fields(observed.tapp, edited),
        at_once=_at_once_said(after),
        played=False,
    )
    outcomes = Outcomes(observed, edited, before, _run_log(after), now)
    concerned = (
        [each.id for each in after.instances if each.wanted]
        if before is None
        else touched(before, after)
    )
    return outcomes.forecast(base, pace=(), notes=()), concerned


def _at_once(edited: Document) -> Document:
    """The same without an order."""
    spec = edited.get("spec") or {}
    if spec.get("podManagementPolicy") != "OrderedReady":
        return edited
    return {**edited, "spec": {**spec, "podManagementPolicy": "Parallel"}}


def _at_once_said(after: Plan) -> str:
    """Says that instances off the rolling template are updated together, if more than one is.

    Their budget is all of them, unless updateStrategy.forceUpdate.maxUnavailable says otherwise.
    """
    spec = after.world.tapp.spec
    rolling = spec.rolling_name
    ids = [
        instance.id
        for instance, verdict in after.cases
        if is_update(verdict) and spec.template_name(instance.id) != rolling
    ]
    if len(ids) <= 1:
        return ""
    left = len(after.available - set(ids))
    stay = "stays" if left == 1 else "stay"
    return f"{id_list(ids)} at once ({left or 'none'} {stay} available)"


def touched(before: Plan, after: Plan) -> list[int]:
    """The instances to which an edit means something else than before."""
    known, wanted = _meanings(before), _meanings(after)
    return sorted(id for id in {*known, *wanted} if known.get(id) != wanted.get(id))


def _meanings(plan: Plan) -> dict[int, tuple[object, ...]]:
    return {
        each.id: (each.killed, getattr(each.template, "revision", each.template.name))
        for each in plan.instances
        if each.wanted
    }


def _run_log(after: Plan) -> RunLog:
    """The decision as a run that has done all of it at once."""
    acts, left = due_writes(after)
    made = [act.instance for act in acts if act.verb == "create" and act.instance is not None]
    # What is asked for is refused where no pod can be made.
    asked = {written(after.now): made} if made else {}
    last = replace(after, cases=left, troubles={}, not_created=asked)
    looks = [(after.now, unavailable(after))]
    return RunLog(looks, acts, first=after, last=last, ended=after.now, played=False)
