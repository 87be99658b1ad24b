"""Forecasts an edit of a TApp by running the service's decisions on a simulated cluster.

`forecast` is the entry point for `kubectl tapp plan`. The simulation starts with the objects of the
real cluster. It estimates times from the TApp's own pods, and assumes that images which fail now go
on failing. `as_running` makes the starting point for a plan of files without a cluster.
"""

import copy
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from hooks.wire.decode import WireError
from kubectl_tapp.base.observed import Document, Observed
from kubectl_tapp.base.words import plural
from kubectl_tapp.cluster.registration import Registration
from kubectl_tapp.decide.decisions import decide_if_readable
from kubectl_tapp.forecast import assumed
from kubectl_tapp.forecast.behaviour import (
    Behaviour,
    BrokenImage,
    behaviour,
    broken_images,
    in_ticks,
    mark_as_broken,
)
from kubectl_tapp.forecast.forecast import Assumptions, Forecast
from kubectl_tapp.forecast.outcomes import Outcomes
from kubectl_tapp.forecast.run import Run
from kubectl_tapp.forecast.templates import (
    other_fields,
    template_bodies,
    template_changes,
    unaffected_children,
)
from kubectl_tapp.forecast.timing import Durations, Timing, timing
from simulator.api.store import ApiError
from simulator.objects.kinds import NAMESPACE
from simulator.seed import SPARE_NODE
from tapp.declared.model import TAppSpec
from tapp.plan import Plan
from tapp.words.kinds import PLAIN
from tapp.words.ranges import name_list

QUIET_SECONDS = 900.0  # A forecast ends after at least this many seconds without a change
_NOTHING = Assumptions()


def forecast(
    observed: Observed,
    edited: Document,
    registration: Registration,
    now: float,
    assumptions: Assumptions = _NOTHING,
) -> Forecast:
    """Returns the forecast of an edit, from a simulation of the TApp after the edit.

    Args:
        observed: the TApp before the edit, with its objects. A TApp without a uid does not exist
            yet.
        edited: the TApp after the edit.
        registration: the CompositeController of the TApp, and the options of the service.
        now: the time, in seconds since the epoch.
        assumptions: facts that the cluster does not show.
    """
    edited, now = _without_server_fields(edited, observed.tapp), in_ticks(now)
    base = Forecast(
        observed.name,
        edited["metadata"]["namespace"],
        templates=template_changes(observed, edited),
        fields=other_fields(observed.tapp, edited),
        remarks=(*assumptions.remarks, *unaffected_children(observed.tapp, edited)),
    )
    if observed.tapp["metadata"].get("deletionTimestamp"):
        return replace(base, refused=(f"TApp {observed.name} is being deleted",))
    if assumptions.refused:
        return replace(base, refused=assumptions.refused)
    before = decide_if_readable(observed, registration, now)
    times = Timing() if assumptions.made_up else _observed_times(observed, before)
    known, broken = _behaviour(observed, edited, times, now, assumptions)
    try:
        runner = Run(observed, registration, known, now)
        log = runner.play(edited, _quiet_seconds(edited, known))
    except ApiError as error:
        return replace(base, refused=(str(error),))
    if log.refused:
        return replace(base, refused=(log.refused,))
    notes = [
        f"image {item.image} is assumed to fail as in {name_list(item.pods)} now: {item.reason}"
        for item in broken
    ]
    notes += [f"image {image} is assumed to fail" for image in assumptions.broken]
    if log.gave_up:
        notes.append("the forecast ends after 30 days")
    outcomes = Outcomes(observed, edited, before, log, now)
    return outcomes.forecast(base, pace=_timing_sentences(edited, times), notes=notes)


def _behaviour(
    observed: Observed, edited: Document, times: Timing, now: float, assumptions: Assumptions
) -> tuple[Behaviour, list[BrokenImage]]:
    """Returns the settings of the simulated kubelets, and the images that fail now."""
    known = behaviour(_paces(observed.tapp, edited, times), observed.pods, now)
    broken = broken_images(observed.pods, now, max(known.patience, 60.0))
    mark_as_broken(known, broken, assumptions.broken)
    return known, broken


@dataclass(frozen=True)
class Start:
    """The common starting point of several simulations of one edit.

    Each simulation gets a `Behaviour` of its own from `behaviour()`, because a simulation may
    change it.
    """

    observed: Observed  # the TApp before the edit, with its objects
    edited: Document  # the TApp after the edit, as its author would write it
    registration: Registration
    now: float  # seconds since the epoch
    times: Timing
    assumptions: Assumptions

    def behaviour(self) -> Behaviour:
        """Returns a new copy of the settings of the simulated kubelets, for one simulation."""
        return _behaviour(self.observed, self.edited, self.times, self.now, self.assumptions)[0]

    def quiet_seconds(self, known: Behaviour) -> float:
        """Returns the number of seconds without a change after which a simulation ends."""
        return _quiet_seconds(self.edited, known)

    def assumed_times(self) -> list[str]:
        """Returns a sentence for each template about its assumed times and their sources."""
        return _timing_sentences(self.edited, self.times)


def start_of(
    observed: Observed,
    edited: Document,
    registration: Registration,
    now: float,
    assumptions: Assumptions = _NOTHING,
) -> Start:
    """Returns the common starting point of several simulations of an edit.

    The arguments have the meanings that the docstring of `forecast` gives.
    """
    edited, now = _without_server_fields(edited, observed.tapp), in_ticks(now)
    before = decide_if_readable(observed, registration, now)
    times = Timing() if assumptions.made_up else _observed_times(observed, before)
    return Start(observed, edited, registration, now, times, assumptions)


def as_running(
    tapp: Document, registration: Registration, now: float, nodes: Iterable[str] = (SPARE_NODE,)
) -> Observed:
    """Returns the objects that the TApp of a file has after an hour on a simulated cluster.

    `assumed.py` makes up the other objects of the cluster. `now` is the time at the end of this
    hour, in seconds since the epoch. `nodes` are the names of the nodes over which the pods are
    spread. Raises hooks.wire.decode.WireError if the TApp is invalid.
    """
    tapp, now = _without_server_fields(tapp, tapp), in_ticks(now)
    nothing = {**tapp, "metadata": {**tapp["metadata"], "uid": None}}
    empty = Observed(nothing, storage_classes=assumed.storage_classes())
    known = behaviour(_paces(tapp, tapp, Timing()), [], now)
    runner = Run(empty, registration, known, now - 3600, nodes)
    try:
        log = runner.play(tapp, _quiet_seconds(tapp, known))
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


def _without_server_fields(edited: Document, live: Document) -> Document:
    """Returns the edited TApp as its author would write it, with a namespace and a number of
    instances.

    The status and the metadata that only the API server sets are removed. `live` is the TApp before
    the edit. The result gets the namespace of `live` if `edited` has none.
    """
    edited = copy.deepcopy(edited)
    metadata = edited.setdefault("metadata", {})
    metadata.setdefault("namespace", live["metadata"].get("namespace") or "default")
    for name in _SERVER_METADATA:
        metadata.pop(name, None)
    edited.pop("status", None)
    if isinstance(edited.get("spec"), dict):
        edited["spec"].setdefault("replicas", TAppSpec.model_fields["replicas"].default)
    return edited


_SERVER_METADATA = (
    "uid", "resourceVersion", "generation", "creationTimestamp", "managedFields",
    "ownerReferences",
)  # fmt: skip
"""Fields of `metadata` that the API server sets, and that files read from a cluster contain.
`ownerReferences` is among them because the owner does not exist on the simulated cluster. Its
garbage collection would delete the TApp.
"""


def _observed_times(observed: Observed, plan: Plan | None) -> Timing:
    instances = [] if plan is None else plan.instances
    templates = {i.pod.name: i.template_name for i in instances if i.pod is not None}
    return timing(observed, templates) if instances else Timing()


def _paces(live: Document, edited: Document, times: Timing) -> list[tuple[Durations, Document]]:
    """Returns the assumed durations and the content of each template.

    The templates before the edit come first, and the templates after the edit follow.
    """
    return [
        (times.pace(name, body), body)
        for tapp in (live, edited)
        for name, body in template_bodies(tapp).items()
    ]


def _timing_sentences(edited: Document, times: Timing) -> list[str]:
    """Returns a sentence for each template that says which times the forecast assumes, and why."""
    found = []
    for name, body in template_bodies(edited).items():
        pace = times.pace(name, body)
        median = f"the median of {pace.starts} {plural(pace.starts, 'start')}"
        start = f"{name}: {pace.start:.0f} s from a new pod to Ready"
        start += f", {median if pace.starts else 'assumed'}"
        swap = f"{pace.stop:.0f} s to stop"
        swap += f" (of {pace.stops})" if pace.stops else " (assumed)"
        swap += f", {pace.swap:.0f} s to update an image in place"
        swap += f" (of {pace.swaps})" if pace.swaps else " (assumed)"
        found.append(f"{start}; {swap}")
    return found


def _quiet_seconds(edited: Document, known: Behaviour) -> float:
    """Returns the number of seconds without a change after which a simulation ends."""
    spec: dict[str, Any] = edited.get("spec") or {}
    strategy = spec.get("updateStrategy")
    in_place = strategy.get("inPlaceUpdateStrategy") if isinstance(strategy, dict) else None
    grace = in_place.get("gracePeriodSeconds") if isinstance(in_place, dict) else None
    waits = [value for value in (spec.get("minReadySeconds"), grace) if isinstance(value, int)]
    return max(QUIET_SECONDS, 4 * known.patience) + sum(waits)
