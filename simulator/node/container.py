"""One container of a pod on a node: the processes that it has been, and what is known of them.

A `Run` is the truth of the container runtime. What the kubelet has noticed of it is another matter:
`pod_worker.py`. Sources: pkg/kubelet/kuberuntime, client-go's flowcontrol.Backoff.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

from simulator.node.prober import Prober
from simulator.objects.objects import Object

KEPT = 2
Stamp = Callable[[float], str]


@dataclass(slots=True)
class Run:
    """One process, alive or dead."""

    id: str
    image: str  # As the spec spelt it
    shown: str  # The name that the node reports for it
    image_id: str
    restarts: int
    started: float
    serves_from: float  # From when on its readiness probe would succeed
    starts_from: float  # From when on its startup probe would
    ends_at: float | None = None  # The time of its end, if nothing else happens
    exit_code: int = 0
    finished: float | None = None
    stopping: bool = False  # It was asked to stop
    unhealthy: bool = False  # Its liveness or startup probe has failed for good
    metadata: Object = field(default_factory=dict)  # What its environment took at the start

    @property
    def alive(self) -> bool:
        """Tell whether the process runs."""
        return self.finished is None

    def state(self, stamp: Stamp) -> Object:
        """Return it as the state of a containerStatus."""
        if self.finished is None:
            return {"running": {"startedAt": stamp(self.started)}}
        return {
            "terminated": {
                "containerID": self.id,
                "exitCode": self.exit_code,
                "finishedAt": stamp(self.finished),
                "reason": "Completed" if self.exit_code == 0 else "Error",
                "startedAt": stamp(self.started),
            }
        }


class BackOff:
    """Waits before the next attempt, by key; forgotten after twice the limit."""

    def __init__(self) -> None:
        self._entries: dict[str, tuple[float, float]] = {}
        self._over: set[str] = set()

    def next(self, key: str, event: float, now: float, first: float, limit: float) -> None:
        """Count one attempt; the wait after it is twice as long as the one before."""
        entry = self._entries.get(key)
        fresh = entry is None or event - entry[1] > 2 * limit
        wait = first if entry is None or fresh else min(2 * entry[0], limit)
        self._entries[key] = wait, now
        self._over.discard(key)

    def ends(self, key: str, since: float, limit: float) -> float | None:
        """Return when the wait that began then is over, None if there is no wait."""
        entry = self._entries.get(key)
        if entry is None or key in self._over or since - entry[1] > 2 * limit:
            return None
        return since + entry[0]

    def updated(self, key: str) -> float:
        """Return when the key was counted last."""
        return self._entries[key][1] if key in self._entries else 0.0

    def wait(self, key: str) -> float:
        """Return how long the key waits."""
        return self._entries[key][0] if key in self._entries else 0.0

    def end_all(self) -> None:
        """Let every wait be over; the next one is as long as it would have been."""
        self._over = set(self._entries)


@dataclass(slots=True)
class Container:
    """A container of the spec, with the kubelet's memory of it."""

    name: str
    init: bool = False
    sidecar: bool = False
    runs: list[Run] = field(default_factory=list)  # Newest first; one dead one is kept
    reason: tuple[str, str] | None = None  # The reason why the last attempt to start it failed
    crashes: BackOff = field(default_factory=BackOff)
    pulls: BackOff = field(default_factory=BackOff)
    pull_errors: dict[str, str] = field(default_factory=dict)
    startup: Prober | None = None
    readiness: Prober | None = None
    removed: int = 0  # The number of its starts when the runtime forgot it, for all to start again
    stuck: str = ""  # The image under which it was found not to come up: it stays as it is shown

    def stays(self, image: str) -> bool:
        """Tell whether nothing is done about it while it is to run this image."""
        return bool(self.stuck) and self.stuck == image

    @property
    def run(self) -> Run | None:
        """Return the newest run."""
        return self.runs[0] if self.runs else None

    @property
    def alive(self) -> bool:
        """Tell whether a process of it runs."""
        return bool(self.runs) and self.runs[0].alive

    @property
    def once(self) -> bool:
        """Tell whether it is done when it has succeeded, whatever the policy."""
        return self.init and not self.sidecar

    @property
    def last_exited(self) -> Run | None:
        """Return the newest run that has ended."""
        return next((run for run in self.runs if not run.alive), None)

    @property
    def probers(self) -> list[Prober]:
        """Return those that there are."""
        return [one for one in (self.startup, self.readiness) if one is not None]

    def passes_from(self, run: Run) -> float:
        """Return from when on every probe of it that there is would succeed."""
        return max(
            run.starts_from if self.startup is not None else 0.0,
            run.serves_from if self.readiness is not None else 0.0,
        )

    def add(self, run: Run) -> None:
        """Take note of a new process."""
        self.runs = [run, *self.runs][:KEPT]

    def remove(self) -> None:
        """Let the runtime forget it."""
        if self.run is not None:
            self.removed, self.runs = self.run.restarts + 1, []

    def forget(self) -> None:
        """Lose what is only in the kubelet's memory."""
        self.reason = None
        self.crashes, self.pulls = BackOff(), BackOff()
        self.pull_errors.clear()
