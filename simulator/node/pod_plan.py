"""Plans one sync of a pod worker: which containers the sync stops, and which it starts.

`make_plan` compares the running containers with the pod's spec. Source: Kubernetes v1.37.2,
pkg/kubelet/kuberuntime (computePodActions, computeInitContainerActions), without ephemeral
containers and resize.
"""

from dataclasses import dataclass, field

from simulator.node.container import Container, Run
from simulator.objects.objects import Object
from tapp.kube.restarts import NEVER, RESTART_ALL, restarts_in


@dataclass(slots=True)
class SyncPlan:
    """The containers that one sync of a pod stops first, and those that it then starts."""

    kill: list[Container] = field(default_factory=list)
    start: list[Container] = field(default_factory=list)
    kill_pod: bool = False  # True if no container has to run any more: all are stopped at once
    remove: list[Container] = field(default_factory=list)
    """Containers to stop at once and to remove in this order, before the whole pod starts again.

    If the list is not empty, the sync does nothing else.
    """


def specs_of(pod: Object) -> dict[str, Object]:
    """Returns container name -> the container in the pod's spec, init containers included."""
    spec = pod["spec"]
    return {
        container["name"]: container
        for container in [*(spec.get("initContainers") or []), *spec["containers"]]
    }


def must_be_started(pod: Object, container: Container) -> bool:
    """Returns True if the kubelet has to start a container that does not run now.

    The restart policy, the restart rules and the exit code decide. The result is False if the pod
    is being deleted. Source: ShouldContainerBeRestarted.
    """
    run = container.run
    if "deletionTimestamp" in pod["metadata"]:
        return False
    if run is None:
        return True
    restarts = restarts_in(pod["spec"], specs_of(pod)[container.name])
    return not run.alive and restarts.restarts_after(run.exit_code)


def restart_all_causes(pod: Object, containers: list[Container]) -> list[Container]:
    """Returns the ended containers that make the kubelet restart all containers of the pod.

    A restart rule with the action RestartAllContainers matches the exit code of each of them.
    `containers` are all containers of the pod.
    """
    specs = specs_of(pod)
    return [
        container
        for container in containers
        if container.run is not None
        and not container.run.alive
        and restarts_in(pod["spec"], specs[container.name]).action(container.run.exit_code)
        == RESTART_ALL
    ]


def make_plan(pod: Object, inits: list[Container], mains: list[Container]) -> SyncPlan:
    """Returns the plan of a sync, from the pod's spec and the state of its containers.

    Args:
        pod: the API object.
        inits: the init containers, including sidecars, in the order of the spec.
        mains: the other containers, in the order of the spec.
    """
    plan, specs = SyncPlan(), specs_of(pod)
    if causes := restart_all_causes(pod, [*mains, *inits]):
        plan.remove = [
            container for container in [*mains, *inits] if container not in causes
        ] + causes
        return plan
    if not _initialized(pod, inits, mains, plan) or plan.kill_pod:
        return plan
    kept, planned_before = 0, len(plan.start)
    for container in mains:
        run = container.run
        if container.is_left_alone(specs[container.name]["image"]):
            kept += 1
        elif run is None or not run.alive:
            if must_be_started(pod, container):
                plan.start.append(container)
        elif run.image != specs[container.name]["image"]:
            plan.kill.append(container)  # even with restartPolicy Never
            plan.start.append(container)
        elif run.unhealthy:
            plan.kill.append(container)
            # Restart rules are about exit codes, so only the policy counts here.
            if restarts_in(pod["spec"], specs[container.name]).policy != NEVER:
                plan.start.append(container)
        else:
            kept += 1
    # computePodActions: without a container that keeps running or has to start, the kubelet stops
    # the whole pod and its sandbox.
    if not kept and len(plan.start) == planned_before:
        return SyncPlan(kill_pod=True)
    return plan


def _initialized(
    pod: Object, inits: list[Container], mains: list[Container], plan: SyncPlan
) -> bool:
    """Adds the init containers that have to be stopped or started to `plan`.

    The function goes from the last init container to the first. Returns True if the main containers
    may run.

    Args:
        pod: the API object.
        inits: the init containers, including sidecars, in the order of the spec.
        mains: the other containers, in the order of the spec.
        plan: the plan, which the function changes.
    """
    specs, progress = (
        specs_of(pod),
        InitProgress(later_has_begun=any(container.alive for container in mains)),
    )
    progress.mains_may_run = progress.later_has_begun or not inits
    # From the last to the first: only the last init container that has begun counts, because all
    # earlier ones have succeeded.
    for number in reversed(range(len(inits))):
        container, next_container = inits[number], inits[number + 1 : number + 2]
        if container.is_left_alone(specs[container.name]["image"]):
            if not progress.later_has_begun:
                return False
            continue
        if container.run is None:
            if progress.later_has_begun and container.sidecar:
                progress.start.append(container)
            continue
        if container.sidecar:
            _plan_sidecar(
                container,
                container.run,
                next_container,
                specs[container.name]["image"],
                progress,
                plan,
            )
        elif not progress.later_has_begun and not container.alive:
            if not container.run.exit_code:
                progress.mains_may_run = progress.mains_may_run or not next_container
                progress.start += next_container
            elif must_be_started(pod, container):
                progress.start.append(container)
            else:
                plan.kill_pod = True
                return False
        progress.later_has_begun = True
    # No init container has begun, so the first one is next.
    if inits and not progress.later_has_begun:
        progress.start.append(inits[0])
    plan.start += reversed(progress.start)
    return progress.mains_may_run


@dataclass(slots=True)
class InitProgress:
    """The progress of the init containers, which `_initialized` finds from last to first."""

    later_has_begun: bool  # True if a later init container has begun, or a main container runs
    mains_may_run: bool = False
    start: list[Container] = field(default_factory=list)


def _plan_sidecar(  # noqa: PLR0913, PLR0917
    container: Container,
    run: Run,
    next_container: list[Container],
    image: str,
    progress: InitProgress,
    plan: SyncPlan,
) -> None:
    if not run.alive:
        progress.start.append(container)
        return
    if _waits_for_startup(container) and not run.unhealthy:
        return
    progress.mains_may_run = progress.mains_may_run or not next_container
    progress.start += [] if progress.later_has_begun else next_container
    if run.image != image or run.unhealthy:
        plan.kill.append(container)
        progress.start.append(container)


def _waits_for_startup(container: Container) -> bool:
    probe, run = container.startup, container.run
    return probe is not None and run is not None and (probe.run != run.id or not probe.passed)
