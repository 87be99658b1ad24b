"""Resizes of running pods (`resources: InPlace`): which resources each pod lacks, and since when.

The PATCH of a pod's subresource `resize` is no part of the response: the service sends it after the
response (docs/resize.md). If the PATCH is lost, the next sync decides on it again. The status notes
since when each resize is due (`status.resizing`):

* After `AGAIN` seconds the PATCH is sent once more.
* After `OVERDUE_AFTER` seconds a condition names the pod.
* If the API server has not accepted the PATCH `LAST` seconds later, the pod is replaced instead.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from tapp.decide.cases import Case
from tapp.decide.changes import Mark, Resize
from tapp.decide.instances import Instance, ResizeState
from tapp.declared.model import TApp
from tapp.pod.pod import Pod
from tapp.pod.resize import RESIZE_DEFERRED, RESIZE_INFEASIBLE, Wanted, resizing_of, wanted_of
from tapp.words.notes import ResizeNote, decoded
from tapp.words.times import UNKNOWN, noted_since, seconds
from tapp.world import Options, World

AGAIN = 10.0
OVERDUE_AFTER = 60.0
LAST = 20.0
_NO_COMPONENT = Wanted(
    obstacle="resources: InPlace needs the component resize, which is not installed"
)


@dataclass
class Resizes:
    """The resizes of pods that are under way, with their times and delays."""

    # Resize -> since when the resize is due, RFC 3339. With `is_refused` in the key: since when the
    # resize is overdue and the API server has not accepted it
    since: dict[ResizeNote, str] = field(default_factory=dict)
    overdue: dict[int, str] = field(default_factory=dict)  # instance -> why its resize takes long
    # Instances whose resize is overdue because their node has no room for the resources
    deferred: set[int] = field(default_factory=set)
    waits: list[float] = field(default_factory=list)  # seconds until another sync is needed


def resize_states(
    instances: Iterable[Instance], world: World, options: Options, now: float
) -> dict[int, ResizeState]:
    """Returns instance number -> which resources of its template the pod lacks.

    The state also says whether the kubelet has finished a resize, and whether the pod can never get
    the resources. If the operator has not installed the component that resizes, the state says only
    that. There is no entry if the instance has no pod or no template, and if the pod is unreadable
    or belongs to another controller.

    Args:
        instances: all instances of the TApp.
        world: the TApp with its children.
        options: the operator's settings.
        now: the time of this sync, in seconds since the epoch.
    """
    states, known = dict[int, ResizeState](), dict[object, Wanted]()
    noted = decoded(ResizeNote, world.tapp.status.resizing)
    for instance in instances:
        pod, template = instance.pod, instance.template
        if pod is None or pod.unreadable or pod.foreign or template is None:
            continue
        if not options.resize:
            states[instance.id] = ResizeState(_NO_COMPONENT)
            continue
        key = template.revision, tuple(pod.spec.resources.items())
        if key not in known:
            known[key] = wanted_of(pod.spec, template)
        wanted, state, infeasible = known[key], None, ""
        # The spec has the template's resources already, so only the kubelet can be behind.
        if not wanted.resources and not wanted.obstacle:
            state = resizing_of(pod)
        if pod.terminating:
            states[instance.id] = ResizeState(wanted, state)
            continue
        note = _note(instance)
        since, refused = noted.get(note, ""), seconds(noted.get(note._replace(is_refused=True)))
        # The resize has been overdue since `refused`, and the spec still lacks the resources.
        if wanted.resources and refused != UNKNOWN and now - refused >= LAST:
            infeasible = _not_accepted(since)
        if (
            state is not None
            and state.pending == RESIZE_INFEASIBLE
            and _is_current(pod, since, now)
        ):
            infeasible = (
                f"its node can never provide the resources of its template: {state.message}"
            )
        states[instance.id] = ResizeState(wanted, state, infeasible)
    return states


def _note(instance: Instance) -> ResizeNote:
    """Returns the key under which the status stores since when an instance's resize is due.

    The key has the number of the instance and the revision of its template.
    """
    template = instance.template
    return ResizeNote(instance.id, "" if template is None else template.revision)


def _is_current(pod: Pod, since: str, now: float) -> bool:
    """Returns True if the kubelet's report about a resize is about the newest spec of the pod.

    Before Kubernetes 1.34 the report does not show which spec it is about. It then counts as
    current when the resize has been due for `AGAIN` seconds.

    Args:
        pod: the pod.
        since: since when the resize is due, RFC 3339; an empty string if no sync has noted that
            yet.
        now: the time of this sync, in seconds since the epoch.
    """
    if pod.reports_generation:
        return not pod.kubelet_is_behind
    return bool(since) and now - seconds(since) >= AGAIN


def restarts_soon(instance: Instance, tapp: TApp, now: float) -> bool:
    """Returns True if the kubelet is about to restart containers of a pod for a resize.

    Returns False if the resize waits for resources of the node, or has been due for more than
    `OVERDUE_AFTER` seconds. The pod then returns to its Services.
    """
    pod, state = instance.pod, instance.resizing
    if pod is None or state is None or not state.restarts:
        return False
    noted = seconds(tapp.status.resizing.get(_note(instance).encode()))
    # A pending report of a kubelet that has not seen the newest spec is about an earlier resize.
    waits = state.pending and not pod.kubelet_is_behind
    return not waits and (noted == UNKNOWN or now - noted < OVERDUE_AFTER)


def track_resizes(world: World, cases: Sequence[Case], now: float) -> Resizes:
    """Returns the resizes that are under way, with the time since when each of them is due.

    A resize is under way until the kubelet has finished it. The times come from the status, or from
    `now` for a new resize.
    """
    found, noted = Resizes(), decoded(ResizeNote, world.tapp.status.resizing)
    for case in cases:
        instance, change = case.instance, case.decision.change
        requested, note = isinstance(change, Resize), _note(instance)
        # Markers may be written between two PATCHes of the same resize.
        known = requested or (isinstance(change, Mark) and note in noted)
        if not known and instance.resizing is None and not instance.infeasible:
            continue
        since, at = noted_since(noted.get(note, ""), now)
        found.since[note] = since
        left = at + OVERDUE_AFTER - now
        if left <= 0 and instance.resizing is None:
            note = note._replace(is_refused=True)
            found.since[note], _ = noted_since(noted.get(note, ""), now)
        if left <= 0 and not instance.infeasible:
            found.overdue[instance.id] = _why(instance, since)
            if instance.resizing is not None and instance.resizing.pending == RESIZE_DEFERRED:
                found.deferred.add(instance.id)
        if requested or left > 0:
            found.waits.append(AGAIN)
    return found


def _not_accepted(since: str) -> str:
    """Returns the sentence that the API server has not accepted the resize of a pod.

    `since` is when the resize was first requested, RFC 3339.
    """
    return (
        f"a resize of its pod was requested at {since}, and the API server has not accepted it; "
        "the log of the TApp service (tapp-hooks) shows the error"
    )


def _why(instance: Instance, since: str) -> str:
    """Returns the sentence that says why the resize of an instance's pod takes long.

    `since` is when the resize was first requested, RFC 3339.
    """
    state = instance.resizing
    if state is None:
        return _not_accepted(since)
    quote = f": {state.message}" if state.message else ""
    if state.pending == RESIZE_DEFERRED:
        return f"its node has had no room for the resources of its template since {since}{quote}"
    return (
        f"the kubelet has not finished the resize of its pod that was requested at {since}{quote}"
    )
