"""Other resources for pods that run, `resources: InPlace`: what each pod lacks, and for how long.

docs/design.md, "Resources of containers". The PATCH of a pod's subresource is no part of an answer:
whoever answers a sync sends it. One that is lost is found out by the next sync, which decides the
same again.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import msgspec

from tapp.decide.changes import Mark, Resize
from tapp.decide.instances import Instance
from tapp.decide.judge import Verdict
from tapp.declared.model import TApp
from tapp.declared.templates import Template
from tapp.pod.pod import Pod
from tapp.pod.resize import DEFERRED, INFEASIBLE, Resizing, Wanted, resizing_of, wanted_of
from tapp.words.notes import ResizeNote, decoded
from tapp.words.times import UNKNOWN, noted_since, seconds
from tapp.world import Options, World

AGAIN = 10.0  # Seconds after which the same resize is asked for once more
LATE_AFTER = 60.0  # Seconds that a resize may take before a person is told of it
LAST = 20.0  # Seconds after that in which the API server may still take it; then there is a new pod
_NO_COMPONENT = Wanted(obstacle="resources: InPlace needs the component resize")


@dataclass
class Resizes:
    """Waits of pods for the resources of their template."""

    # resize -> since when its pod is to have others, or the API server seems not to take it, RFC
    # 3339
    since: dict[ResizeNote, str] = field(default_factory=dict)
    late: dict[int, str] = field(default_factory=dict)  # those that have lasted -> what is known
    deferred: set[int] = field(default_factory=set)  # those of them whose node has no room
    waits: list[float] = field(default_factory=list)  # seconds after which to look again


class ResizeState(msgspec.Struct, frozen=True, gc=False):
    """The part of an `Instance` that is about other resources of its pod."""

    resize: Wanted | None
    resizing: Resizing | None = None
    infeasible: str = ""


def resize_states(
    instances: Iterable[Instance], world: World, options: Options, now: float
) -> dict[int, ResizeState]:
    """Finds what each pod lacks of its template's resources, and whether it can ever have it."""
    states, found = {}, dict[tuple[str, tuple[tuple[str, str], ...]], Wanted]()
    noted = decoded(ResizeNote, world.tapp.status.resizing)
    for instance in instances:
        pod, template = instance.pod, instance.template
        if pod is None or pod.unreadable or pod.foreign or not isinstance(template, Template):
            continue
        if not options.resize:
            states[instance.id] = ResizeState(_NO_COMPONENT)
            continue
        key = template.revision, tuple(pod.spec.resources.items())
        if key not in found:
            found[key] = wanted_of(pod.spec, template)
        wanted, state, infeasible = found[key], None, ""
        if not wanted.resources and not wanted.obstacle:
            state = resizing_of(pod)
        if pod.terminating:
            states[instance.id] = ResizeState(wanted, state)
            continue
        note = _note(instance)
        since, refused = noted.get(note, ""), seconds(noted.get(note._replace(is_refused=True)))
        if wanted.resources and refused != UNKNOWN and now - refused >= LAST:
            infeasible = _not_given("it", since)
        if state is not None and state.pending == INFEASIBLE and _is_meant(pod, since, now):
            infeasible = f"its node can never give it these resources: {state.message}"
        states[instance.id] = ResizeState(wanted, state, infeasible)
    return states


def _note(instance: Instance) -> ResizeNote:
    template = instance.template
    return ResizeNote(instance.id, template.revision if isinstance(template, Template) else "")


def _is_meant(pod: Pod, since: str, now: float) -> bool:
    """True if the kubelet means the newest spec: before Kubernetes 1.34 only time can tell."""
    if pod.tells_generation:
        return not pod.kubelet_is_behind
    return bool(since) and now - seconds(since) >= AGAIN


def restarts_soon(instance: Instance, tapp: TApp, now: float) -> bool:
    """True if the kubelet of its pod is about to start containers again for other resources.

    One that has no room, or has not done it for long, is waited for no longer.
    """
    pod, state = instance.pod, instance.resizing
    if pod is None or state is None or not state.restarts:
        return False
    noted = seconds(tapp.status.resizing.get(_note(instance).encode()))
    waits = state.pending and not pod.kubelet_is_behind
    return not waits and (noted == UNKNOWN or now - noted < LATE_AFTER)


def track_resizes(
    world: World, instances: Sequence[Instance], decisions: Sequence[Verdict], now: float
) -> Resizes:
    """Takes the time of pods that are asked to have other resources, until they have them."""
    found, noted = Resizes(), decoded(ResizeNote, world.tapp.status.resizing)
    for instance, decision in zip(instances, decisions, strict=True):
        asked, note = isinstance(decision.change, Resize), _note(instance)
        # A mark may come between two of its requests.
        known = asked or (isinstance(decision.change, Mark) and note in noted)
        if not known and instance.resizing is None and not instance.infeasible:
            continue
        since, at = noted_since(noted.get(note, ""), now)
        found.since[note] = since
        left = at + LATE_AFTER - now
        if left <= 0 and instance.resizing is None:
            note = note._replace(is_refused=True)
            found.since[note], _ = noted_since(noted.get(note, ""), now)
        if left <= 0 and not instance.infeasible:
            found.late[instance.id] = _why(instance, since)
            if instance.resizing is not None and instance.resizing.pending == DEFERRED:
                found.deferred.add(instance.id)
        if asked or left > 0:
            found.waits.append(AGAIN)
    return found


def _not_given(who: str, since: str) -> str:
    return (
        f"{who} is asked since {since} to have other resources, and is not given them: the "
        "log of tapp-hooks has the API server's words"
    )


def _why(instance: Instance, since: str) -> str:
    state = instance.resizing
    if state is None:
        return _not_given("its pod", since)
    quote = f": {state.message}" if state.message else ""
    if state.pending == DEFERRED:
        return f"its node has had no room since {since} for the resources of its template{quote}"
    return f"its kubelet has not given it the resources of its template since {since}{quote}"
