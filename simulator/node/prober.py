"""A probe worker of a kubelet: one for each probe of a container, alive as long as the pod.

It looks at what the kubelet has *published*, not at the runtime, and it ticks by itself: after a
restart in place the first tick only notices the new container. Source: pkg/kubelet/prober.
"""

import math
from dataclasses import dataclass

from simulator.objects.objects import Object
from tapp.kube.stored import PROBE


@dataclass(slots=True)
class Prober:
    """State of one probe worker."""

    startup: bool  # A startup probe; otherwise a readiness probe
    since: float
    period: float = 10.0
    delay: float = 0.0
    threshold: int = 3
    """Failures of a startup probe after which the container is restarted; those after which a
    readiness probe has failed that goes on with what was published."""
    run: str = ""  # The container that it has noticed
    passed: bool | None = None
    failures: int = 0
    looked: float = 0.0
    asked: float | None = None  # The time when the kubelet wants a look, before the next tick
    implied: bool = False  # The spec does not show it: a lever asked for it
    inherits: str = ""  # The container of which a new kubelet believes what is published

    def goes_on(self, run: str) -> bool:
        """Tell whether this container is what was published, for want of a result."""
        return self.inherits == run and (self.run != run or self.passed is None)

    def is_done(self, run: str) -> bool:
        """Tell whether there is nothing more to find out about this container."""
        if self.startup and self.inherits == run:
            return True
        return self.run == run and self.passed is not None and (self.passed or self.startup)

    def next_tick(self, now: float) -> float:
        """Return when it ticks next."""
        ticks = math.floor((now - self.since) / self.period + 1e-9) + 1
        return self.since + ticks * self.period

    def begin(self, now: float) -> None:
        """Take note that there is a new container to look at from the next tick on."""
        self.looked = max(self.looked, now)

    def look(self, run: str, started: float, passes_from: float, now: float, shown: bool) -> bool:
        """Look once at the published container, whose probe would succeed from then on.

        `shown`: it is published as started. Return whether anything has been found out.
        """
        if self.asked is not None:
            self.asked, self.since = None, now  # and it ticks from now on
        self.looked = now
        news = self.run != run
        if news:
            self.run, self.passed, self.failures = run, None, 0
        if now - started < self.delay or shown == self.startup:
            return news
        before = self.passed
        if now >= passes_from:
            self.passed = True
        else:
            self.failures += 1
            if self.failures >= self.threshold or not (self.startup or self.inherits == run):
                self.passed = False
        return news or self.passed != before


def prober(spec: Object | None, now: float, *, startup: bool) -> Prober | None:
    """Return the worker of a container's probe, if it has that probe."""
    if spec is None:
        return None
    return Prober(
        startup,
        now,
        float(spec.get("periodSeconds") or PROBE["periodSeconds"]),
        float(spec.get("initialDelaySeconds") or 0),
        int(spec.get("failureThreshold") or PROBE["failureThreshold"]),
    )
