"""One container of a pod on a node: its processes, and the data about it in the kubelet's memory.

A `Run` is one process as the container runtime knows it, so it is the true state. The kubelet
publishes the state later (`pod_worker.py`). A `Container` has the newest processes, and the
back-offs after crashes and failed pulls. Sources: Kubernetes v1.37.2, pkg/kubelet/kuberuntime, and
client-go's flowcontrol.Backoff.
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
    ends_at: float | None = None  # the time when it ends by itself; None: it runs until stopped
    exit_code: int = 0
    finished: float | None = None
    stopping: bool = False  # True if the kubelet has told the process to stop
    unhealthy: bool = False  # True if its liveness or startup probe has failed too often
    metadata: Object = field(default_factory=dict)  # the pod's metadata when the process started

    @property
    def alive(self) -> bool:
        return self.finished is None

    def state(self, format_time: FormatTime) -> Object:
        """Returns the field `state` of a container status for this process: `running` or
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
    """Growing delays of the kubelet, such as those between restarts or between pulls of an image.

    Each key, an image name, has its own delay, which doubles with each attempt up to a limit. A
    failure that happens later than twice the limit after the last attempt starts again with the
    shortest delay.
    """

    def __init__(self) -> None:
        self._entries: dict[str, tuple[float, float]] = {}
        self._over: set[str] = set()

    def count_attempt(self, key: str, event: float, now: float, first: float, limit: float) -> None:
        """Counts an attempt at time `now`, which sets the next delay of the key.

        Args:
            key: the image name.
            event: the time of the failure that caused the attempt. If it is later than twice the
                limit after the last attempt, the delay is `first`. If it is not, the delay doubles.
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
        """Returns the time when a delay ends that began at the time `since`; None if there is no
        delay.

        There is no delay before the first attempt for the key, and after `end_all`. There is none
        if `since` is later than twice the limit after the last attempt. `limit` is the longest
        delay, in seconds.
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
        """Ends all present delays, so that the next attempts happen at once.

        This does not change the lengths of later delays.
        """
        self._over = set(self._entries)


@dataclass(slots=True)
class Container:
    """One container of the pod's spec: its newest processes, and the kubelet's data about it."""

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
    # the image with which the container does not start; while it has this image, its status stays
    stuck_image: str = ""

    def is_left_alone(self, image: str) -> bool:
        """Returns True if the kubelet neither starts nor stops the container while it has this
        image.

        That is so if another kubelet has run the container before, and the container does not start
        or become ready with the image `stuck_image` (`takeover.py`).
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
        """True if the container is an init container that runs until it succeeds; False for
        sidecars.
        """
        return self.init and not self.sidecar

    @property
    def last_exited(self) -> Run | None:
        """The newest process that has ended, or None if no process has ended."""
        return next((run for run in self.runs if not run.alive), None)

    @property
    def probers(self) -> list[Prober]:
        """The probe workers of the container: at most one for startup and one for readiness."""
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
        """Drops the state that is only in the kubelet's memory: back-offs, and errors of starts and
        pulls.

        A restarted kubelet has lost this state.
        """
        self.start_failure = None
        self.crashes, self.pulls = BackOff(), BackOff()
        self.pull_errors.clear()
