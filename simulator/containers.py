"""What a kubelet does with one container, and what it reports about it.

Rules (workloads.md 2.5, 2.8): a running container whose image string changed is stopped and
started again with a new containerID, whatever the restart policy; one that has terminated for good
is never started again; a container that cannot pull waits and retries.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum

from simulator.objects import Object

KILLED = 137


class State(StrEnum):
    """Where a container is in its life."""

    CREATED = "created"
    STARTING = "starting"
    RUNNING = "running"
    STOPPING = "stopping"
    PULL_BACKOFF = "pull back-off"
    CRASH_BACKOFF = "crash back-off"
    TERMINATED = "terminated"


@dataclass(slots=True)
class Timing:
    """How long things take, in simulated seconds; `jitter` stretches each by up to that share."""

    schedule: float = 0.2
    react: float = 0.2
    start: float = 1.0
    ready: float = 0.0
    kill: float = 0.5
    stop: float = 1.0
    init: float = 0.5
    pull_retry: float = 10.0
    crash_retry: float = 10.0
    longest_retry: float = 300.0
    jitter: float = 0.5


@dataclass(slots=True)
class Behaviour:
    """How images and containers behave; every predicate may be replaced at any time."""

    bad_images: set[str] = field(default_factory=set)
    crashing_images: set[str] = field(default_factory=set)
    unready_images: set[str] = field(default_factory=set)
    crash_after: float = 1.0
    completes: Callable[[Object, str], tuple[float, int] | None] = lambda _pod, _container: None
    refuses: Callable[[Object], bool] = lambda _pod: False
    unschedulable: Callable[[Object], bool] = lambda _pod: False
    hangs_on_delete: Callable[[Object], bool] = lambda _pod: False
    digest: Callable[[str], str] = lambda image: hashlib.sha256(image.encode()).hexdigest()
    silent_restarts: bool = False


@dataclass(slots=True)
class Container:
    """One container on a node."""

    name: str
    image: str
    state: State = State.CREATED
    due: float | None = None
    container_id: str = ""
    image_id: str = ""
    restarts: int = 0
    ready: bool = False
    exits_at: float | None = None
    exit_code: int = 0
    started_at: str = ""
    finished_at: str = ""
    failures: int = 0
    crashes: int = 0
    last: Object = field(default_factory=dict)

    @property
    def retrying(self) -> bool:
        """Tell whether it only waits for the next attempt."""
        return self.state in (State.PULL_BACKOFF, State.CRASH_BACKOFF)

    @property
    def next_due(self) -> float | None:
        """Return when something happens to it by itself."""
        return min((due for due in (self.due, self.exits_at) if due is not None), default=None)

    def terminated_state(self) -> Object:
        """Describe how its last run ended."""
        reason = "Completed" if self.exit_code == 0 else "Error"
        return {
            "terminated": {
                "containerID": self.container_id,
                "exitCode": self.exit_code,
                "finishedAt": self.finished_at,
                "reason": reason,
                "startedAt": self.started_at,
            }
        }

    def report(self, *, creating: str = "ContainerCreating") -> Object:
        """Return its entry in the pod's containerStatuses."""
        status: Object = {
            "name": self.name,
            "image": self.image,
            "imageID": self.image_id,
            "ready": self.ready,
            "restartCount": self.restarts,
            "started": self.state in (State.RUNNING, State.STOPPING),
            "lastState": self.last,
            "state": self._state(creating),
        }
        if self.container_id:
            status["containerID"] = self.container_id
        return status

    def _state(self, creating: str) -> Object:
        match self.state:
            case State.RUNNING | State.STOPPING:
                return {"running": {"startedAt": self.started_at}}
            case State.TERMINATED:
                return self.terminated_state()
            case State.PULL_BACKOFF:
                message = f'Back-off pulling image "{self.image}"'
                return {"waiting": {"reason": "ImagePullBackOff", "message": message}}
            case State.CRASH_BACKOFF:
                message = f"back-off restarting failed container={self.name}"
                return {"waiting": {"reason": "CrashLoopBackOff", "message": message}}
            case _:
                return {"waiting": {"reason": creating}}


def restarts(policy: str, exit_code: int) -> bool:
    """Tell whether a container that ended is started again."""
    return policy == "Always" or (policy == "OnFailure" and exit_code != 0)


def phase_of(policy: str, containers: list[Container]) -> str:
    """Compute the pod's phase from its main containers, as the kubelet does."""
    if any(not c.container_id and c.state is not State.TERMINATED for c in containers):
        return "Pending"
    if any(c.state is not State.TERMINATED for c in containers) or policy == "Always":
        return "Running"
    return "Succeeded" if all(c.exit_code == 0 for c in containers) else "Failed"


def conditions(
    pod: Object, truths: dict[str, tuple[bool, str]], now: str, generation: int
) -> list[Object]:
    """Set the kubelet's conditions, keep all others, carry transition times over."""
    before = {c["type"]: c for c in (pod.get("status") or {}).get("conditions") or []}
    result = [condition for kind, condition in before.items() if kind not in truths]
    for kind, (truth, reason) in truths.items():
        condition: Object = {
            "type": kind,
            "status": "True" if truth else "False",
            "lastProbeTime": None,
            "lastTransitionTime": now,
            "observedGeneration": generation,
        }
        if reason and not truth:
            condition["reason"] = reason
        previous = before.get(kind)
        if previous is not None and previous["status"] == condition["status"]:
            condition["lastTransitionTime"] = previous["lastTransitionTime"]
        result.append(condition)
    return sorted(result, key=lambda condition: str(condition["type"]))
