"""Foresees an edit: the real decisions run on the simulator, which begins as the cluster is now."""

import copy
from dataclasses import replace
from typing import Any

from hooks.wire.decode import WireError
from kubectl_tapp.base.observed import Document, Observed
from kubectl_tapp.base.plural import plural
from kubectl_tapp.decide.decisions import decide
from kubectl_tapp.forecast.bar import Tell
from kubectl_tapp.forecast.behaviour import (
    Behaviour,
    behaviour,
    broken_images,
    in_ticks,
    take_as_broken,
)
from kubectl_tapp.forecast.claim_changes import unreached
from kubectl_tapp.forecast.fold import long_row, shortened, without
from kubectl_tapp.forecast.forecast import Assumptions, Forecast
from kubectl_tapp.forecast.outcomes import Outcomes
from kubectl_tapp.forecast.record import Record
from kubectl_tapp.forecast.run import Run, behaviour_patience
from kubectl_tapp.forecast.templates import other_fields, template_bodies, template_changes
from kubectl_tapp.forecast.timing import Durations, Timing, timing
from kubectl_tapp.forecast.unfold import unfold
from simulator.api.store import ApiError
from simulator.objects.kinds import NAMESPACE
from tapp.plan import Plan
from tapp.world import Options

QUIET = 900.0
"""Seconds without any change after which a forecast takes it that nothing more comes."""
_FEW = 3
"""How many pods a note names."""


def forecast(  # noqa: PLR0913 - five are what there is, one what is assumed
    observed: Observed,
    edited: Document,
    controller: Document,
    options: Options,
    now: float,
    *,
    assumptions: Assumptions | None = None,
) -> Forecast:
    """What would become of a TApp with this edit.

    Args:
        observed: the TApp and what belongs to it; a TApp without a uid is not there yet.
        edited: the TApp as it would be, with the API server's defaults where it is known.
        controller: the CompositeController that is registered, or the shipped one.
        options: the operator's choices.
        now: seconds since the epoch.
        assumptions: what else is known.
    """
    assumptions = assumptions or Assumptions()
    edited, now = _placed(edited, observed.tapp), in_ticks(now)
    base = Forecast(
        observed.name,
        edited["metadata"]["namespace"],
        templates=template_changes(observed, edited),
        fields=other_fields(observed.tapp, edited),
        remarks=(*assumptions.remarks, *_unreached(observed.tapp, edited)),
    )
    if observed.tapp["metadata"].get("deletionTimestamp"):
        return _refused(base, f"TApp {observed.name} is being deleted")
    if assumptions.refused:
        return _refused(base, *assumptions.refused)
    before, times = _before(observed, controller, options, now)
    times = Timing() if assumptions.made_up else times
    paces = _paces(observed.tapp, edited, times)
    known = behaviour(paces, observed.pods, now)
    patience = max(behaviour_patience(known), 60.0)
    broken = broken_images(observed.pods, now, patience)
    take_as_broken(known, broken, assumptions.broken)
    try:
        record = _played(observed, edited, controller, options, known, now, assumptions.tell)
    except ApiError as error:
        return _refused(base, str(error))
    if record.refused:
        return _refused(base, record.refused)
    notes = [
        f"image {item.image} is taken as broken: {item.reason} in {', '.join(item.pods[:_FEW])}"
        + (f" and {len(item.pods) - _FEW} more" if len(item.pods) > _FEW else "")
        for item in broken
    ]
    notes += [f"image {image} is assumed not to come up" for image in assumptions.broken]
    if record.gave_up:
        notes.append("it was not followed for longer than 30 days")
    outcomes = Outcomes(observed, edited, before, record, now)
    return outcomes.forecast(base, pace=_sources(edited, times), notes=notes)


def _played(  # noqa: PLR0913, PLR0917 - what a runner is given, and the edit
    observed: Observed,
    edited: Document,
    controller: Document,
    options: Options,
    known: Behaviour,
    now: float,
    tell: Tell,
) -> Record:
    """The edit, played to its end.

    Raises:
        simulator.api.store.ApiError: the simulated API server refuses it.
    """
    first = _decided(observed, edited, controller, options, now)
    row = None if first is None else long_row(first, observed.pods)
    while first is not None and row is not None:
        runner = Run(without(observed, row), controller, options, known, now)
        runner.watched, runner.tell = frozenset(row.ids), tell
        runner.apply(shortened(edited, row, first))
        found = unfold(runner.until_rest(_quiet(edited, known)), runner.marks, row, first)
        if isinstance(found, Record):
            return found
        row = found
    runner = Run(observed, controller, options, known, now)
    runner.tell = tell
    runner.apply(edited)
    return runner.until_rest(_quiet(edited, known))


def _decided(
    observed: Observed, edited: Document, controller: Document, options: Options, now: float
) -> Plan | None:
    """What is decided about the edited TApp, before anything is done; None: it is not there yet."""
    if not observed.tapp["metadata"].get("uid"):
        return None
    try:
        tapp = {**observed.tapp, "spec": edited.get("spec")}
        return decide(observed.with_tapp(tapp), controller, options, now)
    except WireError:
        return None


def as_running(tapp: Document, controller: Document, options: Options, now: float) -> Observed:
    """The TApp as if it were running, with all that it asks for done: a plan without a cluster.

    Args:
        tapp: a TApp from a file.
        controller: the CompositeController.
        options: the operator's choices.
        now: seconds since the epoch.
    """
    tapp, now = _placed(tapp, tapp), in_ticks(now)
    empty = Observed({**tapp, "metadata": {**tapp["metadata"], "uid": None}})
    paces = _paces(tapp, tapp, Timing())
    known = behaviour(paces, [], now)
    hour = 3600.0
    runner = Run(empty, controller, options, known, now - hour)
    try:
        runner.apply(tapp)
    except ApiError as error:
        raise WireError("", str(error)) from None
    record = runner.until_rest(_quiet(tapp, known))
    if record.refused:
        raise WireError("", record.refused)
    world, space = runner.world, tapp["metadata"]["namespace"]
    return Observed(
        next(
            each
            for each in world.list("TApp", space)
            if each["metadata"]["name"] == tapp["metadata"]["name"]
        ),
        pods=world.list("Pod", space),
        claims=world.list("PersistentVolumeClaim", space),
        revisions=_revisions(runner, space),
        services=world.list("Service", space),
        namespace=world.cluster.get(NAMESPACE, "", space),
        controller=controller,
    )


def _unreached(before: Document, after: Document) -> tuple[str, ...]:
    return unreached(before, after) if before["metadata"].get("uid") else ()


def _revisions(runner: Run, space: str) -> list[Document]:
    try:
        return runner.world.list("ControllerRevision", space)
    except LookupError:
        return []


def _placed(edited: Document, live: Document) -> Document:
    """The edited TApp with a namespace, and with nothing that only a server writes."""
    edited = copy.deepcopy(edited)
    metadata = edited.setdefault("metadata", {})
    metadata.setdefault("namespace", live["metadata"].get("namespace") or "default")
    for name in ("uid", "resourceVersion", "generation", "creationTimestamp", "managedFields"):
        metadata.pop(name, None)
    edited.pop("status", None)
    return edited


def _refused(base: Forecast, *messages: str) -> Forecast:
    return replace(base, refused=messages)


def _before(
    observed: Observed, controller: Document, options: Options, now: float
) -> tuple[Plan | None, Timing]:
    """What is decided about the TApp as it is, and how long its instances take."""
    if not observed.tapp["metadata"].get("uid"):
        return None, Timing()
    try:
        plan = decide(observed, controller, options, now)
    except WireError:
        return None, Timing()
    templates = {i.pod.name: i.template.name for i in plan.instances if i.pod is not None}
    return plan, timing(observed, templates)


def _paces(live: Document, edited: Document, times: Timing) -> list[tuple[Durations, Document]]:
    """How long the containers of all templates take, those of the old spec first."""
    return [
        (times.pace(name, body), body)
        for tapp in (live, edited)
        for name, body in template_bodies(tapp).items()
    ]


def _sources(edited: Document, times: Timing) -> list[str]:
    """What the durations are from, a sentence for each template."""
    found = []
    for name, body in template_bodies(edited).items():
        pace = times.pace(name, body)
        start = f"{name}: {pace.start:.0f} s from a new pod to Ready"
        start += (
            f", the median of {pace.starts} {plural(pace.starts, 'start')}"
            if pace.starts
            else ", assumed"
        )
        swap = f"{pace.stop:.0f} s to stop"
        swap += f" (of {pace.stops})" if pace.stops else " (assumed)"
        swap += f", {pace.swap:.0f} s to put an image in place"
        swap += f" (of {pace.swaps})" if pace.swaps else " (assumed)"
        found.append(f"{start}; {swap}")
    return found


def _quiet(edited: Document, known: Behaviour) -> float:
    """Seconds without any change after which nothing more comes."""
    spec: dict[str, Any] = edited.get("spec") or {}
    strategy = spec.get("updateStrategy")
    in_place = strategy.get("inPlaceUpdateStrategy") if isinstance(strategy, dict) else None
    grace = in_place.get("gracePeriodSeconds") if isinstance(in_place, dict) else None
    waits = [value for value in (spec.get("minReadySeconds"), grace) if isinstance(value, int)]
    return max(QUIET, 4 * behaviour_patience(known)) + sum(waits)
