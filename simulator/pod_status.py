"""What a kubelet knows of one pod, and the status it reports for it.

Source: pkg/kubelet's generateAPIPodStatus: phase from the main containers, readiness from main
containers, native sidecars and readiness gates, observedGeneration of the spec that was acted on.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from simulator.clock import Timer
from simulator.containers import Container, State, conditions, phase_of
from simulator.objects import Object, generation_of

FINISHED = ("Succeeded", "Failed")


@dataclass(slots=True)
class Worker:
    """The kubelet's knowledge of one pod."""

    uid: str
    init: list[Container]
    main: list[Container]
    initialized: bool = False
    timer: Timer | None = None
    stopping: Timer | None = None
    hanging: bool = False
    reason: Object = field(default_factory=dict)

    @property
    def all(self) -> list[Container]:
        """Return every container, init containers first."""
        return self.init + self.main

    @property
    def restarting(self) -> bool:
        """Tell whether a container is between its old and its new run."""
        return any(
            one.state is State.STOPPING or (one.state is State.STARTING and one.container_id)
            for one in self.all
        )


def pod_status(worker: Worker, pod: Object, phase: str, now: str) -> Object:
    """Build the pod's status; `phase`, if given, overrides what the containers say."""
    spec, generation = pod["spec"], generation_of(pod)
    policy = spec.get("restartPolicy", "Always")
    status: Object = {**(pod.get("status") or {}), "observedGeneration": generation}
    status["phase"] = phase or phase_of(policy, worker.main)
    creating = "ContainerCreating" if worker.initialized else "PodInitializing"
    if worker.init:
        status["initContainerStatuses"] = [_init_report(one, creating) for one in worker.init]
    status["containerStatuses"] = [one.report(creating=creating) for one in worker.main]
    status.update(worker.reason)
    status.setdefault("startTime", now)
    ready = all(one.ready for one in worker.main + _sidecars(worker, spec))
    reason = "PodCompleted" if status["phase"] in FINISHED else "ContainersNotReady"
    known = {c["type"]: c["status"] for c in status.get("conditions") or []}
    gates = all(
        known.get(gate["conditionType"]) == "True" for gate in spec.get("readinessGates") or []
    )
    truths = {
        "Initialized": (worker.initialized, "ContainersNotInitialized"),
        "ContainersReady": (ready, reason),
        "Ready": (ready and gates, reason if not ready else "ReadinessGatesNotReady"),
    }
    status["conditions"] = conditions(pod, truths, now, generation)
    return status


def _init_report(one: Container, creating: str) -> Object:
    """Report an init container, which is ready once it has done its work."""
    done = one.state is State.TERMINATED and one.exit_code == 0
    return {**one.report(creating=creating), "ready": one.ready or done}


def _sidecars(worker: Worker, spec: Object) -> list[Container]:
    native = [c.get("restartPolicy") == "Always" for c in spec.get("initContainers") or []]
    return [one for one, is_sidecar in zip(worker.init, native, strict=True) if is_sidecar]
