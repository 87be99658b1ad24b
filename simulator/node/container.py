"""One container of a pod on a node: its processes, and the kubelet's memory of it.

A `Run` is one process as the container runtime knows it, so it is the truth. The kubelet publishes
it later (`pod_worker.py`). A `Container` has the newest runs and the back-offs of crashes and
pulls. Sources: Kubernetes v1.37.2, pkg/kubelet/kuberuntime, and client-go's flowcontrol.Backoff.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

from simulator.node.prober import Prober
from simulator.objects.objects import Object

KEPT_RUNS = 2
FormatTime = Callable[[float], str]


@dataclass(slots=True)
class Run:
    """One process of a container, running or ended, as the container runtime knows it."""

    id: str
    image: str  # as the pod's spec spells it
    shown: str  # as the node reports it in the container's status
    image_id: str
    restarts: int
    started: float
    ready_from: float  # the time from which its readiness probe succeeds
    started_from: float  # the time from which its startup probe succeeds
    ends_at: float | None = None  # the time when it will end; None: it does not end without a cause
    exit_code: int = 0
    finished: float | None = None
    stopping: bool = False  # the kubelet has told it to stop
    unhealthy: bool = False  # its liveness or startup probe has finally failed
    metadata: Object = field(default_factory=dict)  # the pod's metadata when the process started

    @property
    def alive(self) -> bool:
        return self.finished is None

    def state(self, format_time: FormatTime) -> Object:
        """Returns the state of a containerStatus that shows this process: `running` or
        `terminated`.

        `format_time` turns seconds of the simulated clock into a timestamp.
        """
        if self.finished is None:
            return {"running": {"startedAt": format_time(self.started)}}
        return {
            "terminated": {
                "containerID": self.id,
                "exitCode": self.exit_code,
                "finishedAt": format_time(self.finished),
                "reason": "Completed" if self.exit_code == 0 else "Error",
                "startedAt": format_time(self.started),
            }
        }


class BackOff:
    """The kubelet's growing delays between attempts, such as restarts of a container or pulls of an
    image.

    Each key, an image name, has its own delay. The delay starts again with its first length if no
    attempt was made for longer than twice the limit.
    """

    def __init__(self) -> None:
        self._entries: dict[str, tuple[float, float]] = {}
        self._over: set[str] = set()

    def count_attempt(self, key: str, event: float, now: float, first: float, limit: float) -> None:
        """Counts an attempt at time `now`, which doubles the delay of the key.

        Args:
            key: the image name.
            event: the time of the failure that caused the attempt. If it is more than twice the
                limit after the last attempt, the delay starts again with `first`.
            now: the time of the attempt.
            first: the delay after the first attempt, in seconds.
            limit: the longest delay, in seconds.
        """
        entry = self._entries.get(key)
        fresh = entry is None or event - entry[1] > 2 * limit
        delay = first if entry is None or fresh else min(2 * entry[0], limit)
        self._entries[key] = delay, now
        self._over.discard(key)

    def end_of(self, key: str, since: float, limit: float) -> float | None:
        """Returns the time when a delay that began at `since` ends; None if the key has no delay.

        A key has no delay before its first attempt, after `end_all`, and if `since` is more than
        twice the limit after the last attempt.
        """
        entry = self._entries.get(key)
        if entry is None or key in self._over or since - entry[1] > 2 * limit:
            return None
        return since + entry[0]

    def last_attempt(self, key: str) -> float:
        """Returns the time of the last attempt for this key; 0 if there was no attempt."""
        return self._entries[key][1] if key in self._entries else 0.0

    def delay_of(self, key: str) -> float:
        """Returns the delay of a key in seconds; 0 if there was no attempt for the key."""
        return self._entries[key][0] if key in self._entries else 0.0

    def end_all(self) -> None:
        """Ends all delays that run now, so that the next attempts happen at once.

        Later delays are as long as they would be without this call.
        """
        self._over = set(self._entries)


@dataclass(slots=True)
class Container:
    """One container of the pod's spec, with its newest processes and the kubelet's memory of it."""

    name: str
    init: bool = False
    sidecar: bool = False
    runs: list[Run] = field(default_factory=list)  # newest first, at most two
    start_failure: tuple[str, str] | None = None  # reason and message of the last start's failure
    crashes: BackOff = field(default_factory=BackOff)
    pulls: BackOff = field(default_factory=BackOff)
    pull_errors: dict[str, str] = field(default_factory=dict)
    startup: Prober | None = None
    readiness: Prober | None = None
    restarts_after_removal: int = 0  # restartCount of the next process after `remove`
    stuck_image: str = ""  # the image with which it does not start; its status then stays

    def is_left_alone(self, image: str) -> bool:
        """Returns True if the kubelet neither starts nor stops the container while its spec has
        this image.

        That is so for a container of an earlier kubelet that does not start or become ready with
        the image `stuck_image` (`takeover.py`).
        """
        return bool(self.stuck_image) and self.stuck_image == image

    @property
    def run(self) -> Run | None:
        """The newest process, running or ended; None if the container was never started."""
        return self.runs[0] if self.runs else None

    @property
    def alive(self) -> bool:
        """True if a process of the container runs now, even if it is being stopped."""
        return bool(self.runs) and self.runs[0].alive

    @property
    def runs_to_completion(self) -> bool:
        """True if the container is an init container but no sidecar, so that it runs until it
        succeeds.
        """
        return self.init and not self.sidecar

    @property
    def last_exited(self) -> Run | None:
        """The newest process that has ended, or None if no process has ended."""
        return next((run for run in self.runs if not run.alive), None)

    @property
    def probers(self) -> list[Prober]:
        """The probe workers of the container: those of its startup probe and readiness probe that
        exist.
        """
        return [probe for probe in (self.startup, self.readiness) if probe is not None]

    def probes_pass_from(self, run: Run) -> float:
        """Returns the time from which all probes of the container succeed for the process `run`.

        The time is in seconds of the simulated clock; 0 for a container without probes.
        """
        return max(
            run.started_from if self.startup is not None else 0.0,
            run.ready_from if self.readiness is not None else 0.0,
        )

    def add(self, run: Run) -> None:
        """Adds a new process to `runs`, and drops all but the newest two."""
        self.runs = [run, *self.runs][:KEPT_RUNS]

    def remove(self) -> None:
        """Drops all processes, as the runtime does before all containers of the pod start again."""
        if self.run is not None:
            self.restarts_after_removal, self.runs = self.run.restarts + 1, []

    def forget(self) -> None:
        """Drops the state that only the kubelet's memory holds: back-offs and errors of starts and
        pulls.

        A restarted kubelet has lost this state.
        """
        self.start_failure = None
        self.crashes, self.pulls = BackOff(), BackOff()
        self.pull_errors.clear()
