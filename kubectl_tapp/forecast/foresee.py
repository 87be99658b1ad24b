"""Foresees an edit: the real decisions run on the simulator, which begins as the cluster is now."""

import copy
from dataclasses import replace
from typing import Any

from hooks.wire.decode import WireError
from kubectl_tapp.base.observed import Document, Observed
from kubectl_tapp.base.words import plural
from kubectl_tapp.cluster.registration import Registration
from kubectl_tapp.decide.decisions import decide_if_readable
from kubectl_tapp.forecast import assumed
from kubectl_tapp.forecast.behaviour import (
    Behaviour,
    behaviour,
    broken_images,
    in_ticks,
    take_as_broken,
)
from kubectl_tapp.forecast.forecast import Assumptions, Forecast
from kubectl_tapp.forecast.outcomes import Outcomes
from kubectl_tapp.forecast.run import Run
from kubectl_tapp.forecast.templates import (
    other_fields,
    template_bodies,
    template_changes,
    unreached,
)
from kubectl_tapp.forecast.timing import Durations, Timing, timing
from simulator.api.store import ApiError
from simulator.objects.kinds import NAMESPACE
from tapp.declared.model import TAppSpec
from tapp.plan import Plan
from tapp.words.kinds import PLAIN
from tapp.words.ranges import name_list

QUIET = 900.0  # Seconds without any change after which a forecast takes it that nothing more comes
_NOTHING = Assumptions()


def forecast(
    observed: Observed,
    edited: Document,
    registration: Registration,
    now: float,
    assumptions: Assumptions = _NOTHING,
) -> Forecast:
    """Plays a TApp with this edit; one without a uid is not there yet."""
    edited, now = _placed(edited, observed.tapp), in_ticks(now)
    base = Forecast(
        observed.name,
        edited["metadata"]["namespace"],
        templates=template_changes(observed, edited),
        fields=other_fields(observed.tapp, edited),
        remarks=(*assumptions.remarks, *unreached(observed.tapp, edited)),
    )
    if observed.tapp["metadata"].get("deletionTimestamp"):
        return replace(base, refused=(f"TApp {observed.name} is being deleted",))
    if assumptions.refused:
        return replace(base, refused=assumptions.refused)
    before = decide_if_readable(observed, registration, now)
    times = Timing() if assumptions.made_up else _times(observed, before)
    paces = _paces(observed.tapp, edited, times)
    known = behaviour(paces, observed.pods, now)
    broken = broken_images(observed.pods, now, max(known.patience, 60.0))
    take_as_broken(known, broken, assumptions.broken)
    try:
        runner = Run(observed, registration, known, now)
        log = runner.play(edited, _quiet(edited, known))
    except ApiError as error:
        return replace(base, refused=(str(error),))
    if log.refused:
        return replace(base, refused=(log.refused,))
    notes = [
        f"image {item.image} is taken as broken: {item.reason} in {name_list(item.pods)}"
        for item in broken
    ]
    notes += [f"image {image} is assumed not to come up" for image in assumptions.broken]
    if log.gave_up:
        notes.append("it was not followed for longer than 30 days")
    outcomes = Outcomes(observed, edited, before, log, now)
    return outcomes.forecast(base, pace=_sources(edited, times), notes=notes)


def as_running(tapp: Document, registration: Registration, now: float) -> Observed:
    """A TApp from a file, as if it had run for an hour, all it asks done; WireError: it cannot run.

    What else its cluster has is assumed (`kubectl_tapp.forecast.assumed`).
    """
    tapp, now = _placed(tapp, tapp), in_ticks(now)
    nothing = {**tapp, "metadata": {**tapp["metadata"], "uid": None}}
    empty = Observed(nothing, storage_classes=assumed.storage_classes())
    known = behaviour(_paces(tapp, tapp, Timing()), [], now)
    runner = Run(empty, registration, known, now - 3600)
    try:
        log = runner.play(tapp, _quiet(tapp, known))
    except ApiError as error:
        raise WireError("", str(error)) from None
    if log.refused:
        raise WireError("", log.refused)
    world, space = runner.world, tapp["metadata"]["namespace"]
    claims = world.list("PersistentVolumeClaim", space)
    return Observed(
        world.get("TApp", tapp["metadata"]["name"], space),
        pods=world.list("Pod", space),
        claims=claims,
        storage_classes=assumed.storage_classes(claims),
        revisions=world.list("ControllerRevision", space),
        plain={kind: world.list(kind.name, space) for kind in PLAIN},
        namespace=world.cluster.get(NAMESPACE, "", space),
        controller=registration.controller,
    )


def _placed(edited: Document, live: Document) -> Document:
    """The edited TApp with a namespace and its CRD's default, without what only a server writes."""
    edited = copy.deepcopy(edited)
    metadata = edited.setdefault("metadata", {})
    metadata.setdefault("namespace", live["metadata"].get("namespace") or "default")
    for name in _OF_THE_SERVER:
        metadata.pop(name, None)
    edited.pop("status", None)
    if isinstance(edited.get("spec"), dict):
        edited["spec"].setdefault("replicas", TAppSpec.model_fields["replicas"].default)
    return edited


_OF_THE_SERVER = (
    "uid", "resourceVersion", "generation", "creationTimestamp", "managedFields",
    "ownerReferences",
)  # fmt: skip
"""Metadata that a file has if it was read from a cluster. Its owner is in that cluster: without it
the TApp would be collected."""


def _times(observed: Observed, plan: Plan | None) -> Timing:
    instances = [] if plan is None else plan.instances
    templates = {i.pod.name: i.template.name for i in instances if i.pod is not None}
    return timing(observed, templates) if instances else Timing()


def _paces(live: Document, edited: Document, times: Timing) -> list[tuple[Durations, Document]]:
    """The paces of all templates' containers, those of the old spec first."""
    return [
        (times.pace(name, body), body)
        for tapp in (live, edited)
        for name, body in template_bodies(tapp).items()
    ]


def _sources(edited: Document, times: Timing) -> list[str]:
    found = []
    for name, body in template_bodies(edited).items():
        pace = times.pace(name, body)
        median = f"the median of {pace.starts} {plural(pace.starts, 'start')}"
        start = f"{name}: {pace.start:.0f} s from a new pod to Ready"
        start += f", {median if pace.starts else 'assumed'}"
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
    return max(QUIET, 4 * known.patience) + sum(waits)
