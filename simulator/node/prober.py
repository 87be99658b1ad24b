"""A probe worker of a kubelet: one for each probe of a container, as long as the pod exists.

A worker checks the container that the kubelet has *published*, not the one that the runtime has. It
runs at its own ticks. After a restart in place, the first tick only detects the new container.
Source: Kubernetes v1.37.2, pkg/kubelet/prober.
"""

import math
from dataclasses import dataclass

from simulator.objects.objects import Object
from tapp.kube.stored import PROBE


@dataclass(slots=True)
class Prober:
    """The state of the kubelet's worker for one probe of a container.

    Times are in seconds of the simulated clock. `since` is the time from which the ticks of the
    worker count. `passed` is the result of the probe; it is None before the first result.
    """

    startup: bool  # True: a startup probe; False: a readiness probe
    since: float
    period: float = 10.0
    delay: float = 0.0
    threshold: int = 3
    """The number of failures after which the result of the probe is False.

    It applies to a startup probe, and to a readiness probe with an inherited result. For any other
    readiness probe of a new process, the first failure is enough.
    """
    run: str = ""  # id of the process that the worker has detected last
    passed: bool | None = None
    failures: int = 0
    last_probe: float = 0.0
    requested: float | None = None  # time of a requested probe before the next tick; None for none
    implied: bool = False  # True if a lever makes this probe, and not the spec
    inherits_from: str = ""  # id of the process that keeps its published state (see `restart`)

    def keeps_published_state(self, run: str) -> bool:
        """Returns True if the process `run` keeps its published state until the probe has a result.

        That is so after a restart of the kubelet (`PodWorker.restart`).
        """
        return self.inherits_from == run and (self.run != run or self.passed is None)

    def is_done(self, run: str) -> bool:
        """Returns True if further probes of the process `run` cannot change the result."""
        if self.startup and self.inherits_from == run:
            return True
        return self.run == run and self.passed is not None and (self.passed or self.startup)

    def next_tick(self, now: float) -> float:
        """Returns the time of the worker's first tick after `now`. The worker probes once at each
        tick.
        """
        ticks = math.floor((now - self.since) / self.period + 1e-9) + 1
        return self.since + ticks * self.period

    def note_new_run(self, now: float) -> None:
        """Records that a new process was started at time `now`, so that it is probed at the next
        tick.
        """
        self.last_probe = max(self.last_probe, now)

    def run_probe(
        self, run: str, started: float, passes_from: float, now: float, shown: bool
    ) -> bool:
        """Probes a process once.

        Args:
            run: the id of the process that the kubelet has published.
            started: the time when the process started.
            passes_from: the time from which the probe succeeds.
            now: the time of this probe.
            shown: the published value of `started` for the container.

        Returns True if the worker has detected a new process, or if the result of the probe has
        changed.
        """
        if self.requested is not None:
            self.requested, self.since = None, now  # the ticks count from here
        self.last_probe = now
        news = self.run != run
        if news:
            self.run, self.passed, self.failures = run, None, 0
        # A startup probe runs only before the container has started, a readiness probe only
        # afterwards.
        if now - started < self.delay or shown == self.startup:
            return news
        before = self.passed
        if now >= passes_from:
            self.passed = True
        else:
            self.failures += 1
            if self.failures >= self.threshold or not (self.startup or self.inherits_from == run):
                self.passed = False
        return news or self.passed != before


def prober(spec: Object | None, now: float, *, startup: bool) -> Prober | None:
    """Returns a new worker for a probe of a container; None if the container lacks the probe.

    Args:
        spec: the probe in the container's spec; None if there is none.
        now: the time from which the ticks of the worker count.
        startup: True for a startup probe and False for a readiness probe.
    """
    if spec is None:
        return None
    return Prober(
        startup,
        now,
        float(spec.get("periodSeconds") or PROBE["periodSeconds"]),
        float(spec.get("initialDelaySeconds") or 0),
        int(spec.get("failureThreshold") or PROBE["failureThreshold"]),
    )
