"""Plans one sync of a pod worker: which containers it kills, and which it starts.

`make_plan` compares the running containers with the pod's spec. Source: Kubernetes v1.37.2,
pkg/kubelet/kuberuntime (computePodActions, computeInitContainerActions), without ephemeral
containers and resize.
"""

from dataclasses import dataclass, field

from simulator.node.container import Container, Run
from simulator.objects.objects import Object
from tapp.kube.restarts import NEVER, RESTART_ALL, restarts_in


@dataclass(slots=True)
class Plan:
    """The containers to kill and the containers to start, each one after the other."""

    kill: list[Container] = field(default_factory=list)
    start: list[Container] = field(default_factory=list)
    kill_pod: bool = False  # no container has to run any more: all are stopped at once
    remove: list[Container] = field(default_factory=list)
    """Containers to kill at once and to remove in this order, before the whole pod starts again.

    If the list is not empty, the sync does nothing else.
    """


def specs_of(pod: Object) -> dict[str, Object]:
    """Returns the containers of a pod's spec by name, init containers included."""
    spec = pod["spec"]
    return {one["name"]: one for one in [*(spec.get("initContainers") or []), *spec["containers"]]}


def to_be_started(pod: Object, container: Container) -> bool:
    """Returns True if a container that does not run has to run (ShouldContainerBeRestarted)."""
    run = container.run
    if "deletionTimestamp" in pod["metadata"]:
        return False
    if run is None:
        return True
    restarts = restarts_in(pod["spec"], specs_of(pod)[container.name])
    return not run.alive and restarts.follow(run.exit_code)


def begins_anew(pod: Object, containers: list[Container]) -> list[Container]:
    """Returns the containers whose end restarts all containers (RestartAllContainers rules)."""
    specs = specs_of(pod)
    return [
        one
        for one in containers
        if one.run is not None
        and not one.run.alive
        and restarts_in(pod["spec"], specs[one.name]).action(one.run.exit_code) == RESTART_ALL
    ]


def make_plan(pod: Object, inits: list[Container], mains: list[Container]) -> Plan:
    """Plans the sync of a pod from its spec and the state of its containers."""
    plan, specs = Plan(), specs_of(pod)
    if sources := begins_anew(pod, [*mains, *inits]):
        plan.remove = [one for one in [*mains, *inits] if one not in sources] + sources
        return plan
    if not _initialized(pod, inits, mains, plan) or plan.kill_pod:
        return plan
    kept, begun = 0, len(plan.start)
    for one in mains:
        run = one.run
        if one.stays(specs[one.name]["image"]):
            kept += 1
        elif run is None or not run.alive:
            if to_be_started(pod, one):
                plan.start.append(one)
        elif run.image != specs[one.name]["image"]:
            plan.kill.append(one)  # even with restartPolicy Never
            plan.start.append(one)
        elif run.unhealthy:
            plan.kill.append(one)
            # Restart rules are about exit codes, so only the policy counts here.
            if restarts_in(pod["spec"], specs[one.name]).policy != NEVER:
                plan.start.append(one)
        else:
            kept += 1
    if not kept and len(plan.start) == begun:
        return Plan(kill_pod=True)
    return plan


def _initialized(pod: Object, inits: list[Container], mains: list[Container], plan: Plan) -> bool:
    """Plans the init containers, last one first; returns True if main containers may run."""
    specs, begin = specs_of(pod), Begin(seen=any(one.alive for one in mains))
    begin.done = begin.seen or not inits
    for number in reversed(range(len(inits))):
        one, following = inits[number], inits[number + 1 : number + 2]
        if one.stays(specs[one.name]["image"]):
            if not begin.seen:
                return False
            continue
        if one.run is None:
            if begin.seen and one.sidecar:
                begin.start.append(one)
            continue
        if one.sidecar:
            _sidecar(one, one.run, following, specs[one.name]["image"], begin, plan)
        elif not begin.seen and not one.alive:
            if not one.run.exit_code:
                begin.done = begin.done or not following
                begin.start += following
            elif to_be_started(pod, one):
                begin.start.append(one)
            else:
                plan.kill_pod = True
                return False
        begin.seen = True
    if inits and not begin.seen:
        begin.start.append(inits[0])
    plan.start += reversed(begin.start)
    return begin.done


@dataclass(slots=True)
class Begin:
    """The progress of the init containers, collected from the last one to the first."""

    seen: bool  # a later init container has begun, or a main container runs
    done: bool = False
    start: list[Container] = field(default_factory=list)


def _sidecar(  # noqa: PLR0913, PLR0917
    one: Container, run: Run, following: list[Container], image: str, begin: Begin, plan: Plan
) -> None:
    if not run.alive:
        begin.start.append(one)
        return
    if _waits_for_startup(one) and not run.unhealthy:
        return
    begin.done = begin.done or not following
    begin.start += [] if begin.seen else following
    if run.image != image or run.unhealthy:
        plan.kill.append(one)
        begin.start.append(one)


def _waits_for_startup(one: Container) -> bool:
    probe, run = one.startup, one.run
    return probe is not None and run is not None and (probe.run != run.id or not probe.passed)
