"""The serving state of each instance, by which the budget counts the instance.

An instance is available if its pod has been Ready for `minReadySeconds`
(`tapp/pod/availability.py`) and nothing shows that the pod is about to stop (docs/design.md, "The
budget"). Other instances may serve as well. The budget does not count on them, but their updates
are limited, too. `ServingState` lists these cases. An instance that certainly does not serve has no
state, and may be updated at any time.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum

from tapp.decide.instances import Instance
from tapp.decide.overdue import trouble_of_deletion
from tapp.declared.model import TApp
from tapp.pod.availability import NEVER, available_in
from tapp.pod.gate import has_closed_gate
from tapp.pod.lost import limit_of
from tapp.pod.pod import Pod
from tapp.pod.resize import Resizing, resizing_of
from tapp.pod.trouble import silence, trouble
from tapp.pod.waiting import Patience, Trouble
from tapp.words.conditions import Type
from tapp.words.reasons import Reason
from tapp.world import Options, World


class ServingState(Enum):
    """State of an instance that serves or may serve; the value says how the budget counts it.

    An instance that certainly does not serve has no state.
    """

    AVAILABLE = "counts as available, and its update takes a place in the budget"
    RESIZING = "counts as available, and takes a place in the budget while containers are resized"
    UNTRUSTED = "looks Ready and is not relied on yet, and its update takes a place in the budget"
    DELETION_UNCONFIRMED = (
        "looks available and may be deleted already, and its update takes a place in the budget"
    )
    SILENT = "may serve on a node that has stopped reporting, and is never updated"


_AVAILABLE = (ServingState.AVAILABLE, ServingState.RESIZING)


@dataclass
class Serving:
    """The instances that serve or may serve, before any update of this sync.

    The budget of updates is computed from these states.
    """

    # Instance -> its state; no entry if the instance certainly does not serve
    states: Mapping[int, ServingState] = field(default_factory=dict)
    # True if updates of the previous spec may have begun that the request does not show
    unsettled: bool = False
    waits: list[float] = field(default_factory=list)  # seconds until others may become available
    available: set[int] = field(init=False)  # the available instances

    def __post_init__(self) -> None:
        self.available = {id for id, state in self.states.items() if state in _AVAILABLE}

    def without(self, taken: set[int]) -> "Serving":
        """Returns the states without the instances in `taken`, as if these did not serve."""
        states = {id: state for id, state in self.states.items() if id not in taken}
        return Serving(states, self.unsettled)


def serving_of(
    world: World, instances: list[Instance], now: float, *, is_turned: bool = False
) -> Serving:
    """Returns the state of each instance that serves or may serve, and when others may do so.

    Args:
        world: the TApp with its children.
        instances: all instances of the TApp.
        now: the time of this sync, in seconds since the epoch.
        is_turned: True if this sync begins or ends a rollback. Like a change of the spec, it
            chooses other instances than the last sync, whose updates the request may not show yet.
    """
    tapp = world.tapp
    seconds, resizes = tapp.spec.min_ready_seconds, tapp.spec.resizes
    replacing = tapp.status.replacing
    states, waits = dict[int, ServingState](), list[float]()
    for instance in instances:
        pod = instance.pod
        if pod is None or not instance.should_run:
            continue
        if pod.ready is not True:
            # The node controller has set Ready to False; the processes may still run.
            if pod.ready is False and pod.silent:
                states[instance.id] = ServingState.SILENT
            continue
        # The update of a draining pod has used the budget already, so the pod may go at any time.
        if pod.spec.drains:
            continue
        missing = _missing_seconds(instance, pod, seconds, now)
        if missing is None or missing > 0:
            # Most of these pods serve, so their updates need a place in the budget.
            if missing is None or missing != NEVER:
                states[instance.id] = ServingState.UNTRUSTED
            if missing is not None and missing != NEVER:
                waits.append(missing)
        elif replacing and replacing.get(str(instance.id)) == pod.uid:
            # An earlier sync has replaced this pod while it was not available. It may have
            # recovered just before, and the cache does not show its deletion yet: the budget would
            # be spent on others. Or the deletion has failed, and the pod serves: then it waits for
            # the budget like any other.
            states[instance.id] = ServingState.DELETION_UNCONFIRMED
        elif resizes and _is_resized(instance):
            states[instance.id] = ServingState.RESIZING
        else:
            states[instance.id] = ServingState.AVAILABLE
    return Serving(states, is_turned or _unsettled(tapp), waits)


def _missing_seconds(
    instance: Instance, pod: Pod, min_ready_seconds: int, now: float
) -> float | None:
    """Returns the seconds until a Ready pod is available.

    - 0 if the pod is available.
    - `NEVER` if the pod is certainly about to stop.
    - None if nothing shows when the pod's condition Ready will be reliable.

    Args:
        instance: the instance.
        pod: its pod; the caller has checked that the pod is Ready.
        min_ready_seconds: `spec.minReadySeconds`.
        now: the time of this sync, in seconds since the epoch.
    """
    # A pod that is Ready with a closed gate is leaving its Services: its kubelet has not looked
    # yet.
    if pod.spec.gates and has_closed_gate(pod):
        return None
    # Ready describes the old containers until the kubelet has restarted those of the update.
    if instance.update.unfinished:
        return None if instance.update.only_time_can_tell else NEVER
    if pod.spec.resize_restarts and _restarts_for_resources(instance, pod):
        return None
    return available_in(pod, min_ready_seconds, now, instance.seen_since)


def _restarts_for_resources(instance: Instance, pod: Pod) -> bool:
    """Returns True if the kubelet is resizing a pod and will restart containers for that."""
    state = resizing_of(pod)
    return state is not None and state.restarts and _is_at_work(instance, pod, state)


def _is_resized(instance: Instance) -> bool:
    """Returns True while the kubelet changes resources of an instance's pod.

    If the template has changed since the resize began, the kubelet may still set the resources of
    the previous template. That counts, too.
    """
    pod, resize = instance.pod, instance.resize
    if pod is None or resize is None or resize.progress is not None or not resize.wanted.resources:
        return instance.resizing is not None
    # The pod does not request the template's resources yet, so a resize that is under way is for an
    # earlier template.
    state = resizing_of(pod)
    return state is not None and _is_at_work(instance, pod, state)


def _is_at_work(instance: Instance, pod: Pod, state: Resizing) -> bool:
    """Returns True if the kubelet works on a resize that the pod's status shows.

    A resize to the resources of the current template always counts. A resize to the resources of an
    earlier template counts if the kubelet has begun it, or has not seen the newest spec yet.

    Args:
        instance: the instance.
        pod: its pod.
        state: the resize that the pod's status shows.
    """
    return instance.resizing is not None or not state.pending or pod.kubelet_is_behind


def _unsettled(tapp: TApp) -> bool:
    """Returns True if updates of the previous spec may have begun that the request does not show.

    Metacontroller's cache may lag behind its own writes. While the spec stays the same, that does
    no harm: the same instances are chosen again, and the API server refuses writes with an old
    resourceVersion. After a change of the spec during a rollout, other instances would be chosen in
    addition to those that the last sync has taken down. The next sync sees these.
    """
    observed, generation = tapp.status.observed_generation, tapp.metadata.generation
    if not observed or observed == generation:
        return False
    # A sync that found everything complete wrote nothing that the cache could lack. It has to be a
    # sync of the previous generation: one in between may have begun updates.
    quiet = any(
        condition.type == Type.PROGRESSING and condition.reason == Reason.COMPLETE
        for condition in tapp.status.conditions
    )
    return not (quiet and observed == generation - 1)


def troubles_of(
    tapp: TApp, instances: Sequence[Instance], options: Options, now: float
) -> dict[int, Trouble]:
    """Returns instance number -> trouble of its pod, for instances whose pod may have trouble.

    Instances that are available and whose pod has never restarted have no entry. If an instance
    should not run, only an overdue deletion of its pod can be trouble.
    """
    moved = tapp.spec.force_delete_pod and not tapp.spec.never_migrate
    limit, _ = limit_of(tapp.metadata.annotations, options.lost_node_seconds)
    patience = Patience(options.unschedulable_seconds, options.start_seconds, limit)
    ending = {
        instance.id: trouble_of_deletion(pod, tapp.metadata.namespace, now)
        for instance in instances
        if (pod := instance.pod) is not None and pod.terminating
    }
    return ending | {
        instance.id: silence(pod, since, now, moved=moved, limit=limit)
        if (since := instance.silent_since) is not None
        else trouble(pod, instance.update, now, patience)
        for instance in instances
        if instance.should_run
        and (pod := instance.pod) is not None
        and not pod.terminating
        and (pod.ready is not True or pod.restarts)
    }
