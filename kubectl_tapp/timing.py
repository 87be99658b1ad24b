"""How long this TApp's instances take to start, to restart and to stop, from what its pods show."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from statistics import median
from typing import Any

from kubectl_tapp.observed import Document, Observed
from tapp.times import UNKNOWN, seconds

BEGIN, READY, SWAP, STOP = 5.0, 5.0, 3.0, 5.0
"""What is assumed, in seconds, where nothing is known: until its containers run; until a probe
succeeds; to put another image in place; until a container that is asked to stop has stopped."""
LONGEST = 3600.0
"""Longer ones were something else: a pod that waited for a node, a person who looked at it."""


@dataclass(frozen=True)
class Pace:
    """How long the instances of one template take, in seconds.

    Attributes:
        begin: from a pod's creation until its containers run.
        ready: from there until it is Ready.
        swap: from a container's end in an update in place until the next one runs.
        stop: from the wish to stop a container until it has stopped.
        starts: how many starts `begin` and `ready` are from; 0: they are assumed.
        swaps: the same for `swap`.
        stops: the same for `stop`.
    """

    begin: float
    ready: float
    swap: float
    stop: float
    starts: int = 0
    swaps: int = 0
    stops: int = 0

    @property
    def start(self) -> float:
        """From a pod's creation until it is Ready."""
        return self.begin + self.ready


@dataclass
class _Samples:
    begin: list[float] = field(default_factory=list)
    ready: list[float] = field(default_factory=list)
    swap: list[float] = field(default_factory=list)
    stop: list[float] = field(default_factory=list)

    def add(self, other: "_Samples") -> None:
        for name in ("begin", "ready", "swap", "stop"):
            getattr(self, name).extend(getattr(other, name))


@dataclass
class Timing:
    """What is known: of each template, and of all of them."""

    by_template: dict[str, _Samples] = field(default_factory=dict)
    all: _Samples = field(default_factory=_Samples)

    def pace(self, template: str, body: Document) -> Pace:
        """How long instances of a template take; `body` is what is known of it beforehand."""
        own = self.by_template.get(template, _Samples())
        probed = any(
            "readinessProbe" in item or "startupProbe" in item
            for item in (body.get("spec") or {}).get("containers") or []
            if isinstance(item, dict)
        )
        ready = _first(own.ready, self.all.ready)
        begin, swap = _first(own.begin, self.all.begin), _first(own.swap, self.all.swap)
        stop = _first(own.stop, self.all.stop)
        return Pace(
            begin=median(begin) if begin else BEGIN,
            ready=median(ready) if ready else READY if probed else 0.0,
            swap=median(swap) if swap else SWAP,
            stop=median(stop) if stop else STOP,
            starts=len(ready),
            swaps=len(swap),
            stops=len(stop),
        )


def _first(*samples: list[float]) -> list[float]:
    return next((found for found in samples if found), [])


def timing(observed: Observed, templates: dict[str, str]) -> Timing:
    """Reads the times of all pods.

    Args:
        observed: the TApp and what belongs to it.
        templates: pod -> name of its template.
    """
    killed = _killed(observed.events)
    found = Timing()
    for pod in observed.pods:
        samples = _of_pod(pod, killed)
        found.all.add(samples)
        name = templates.get(pod["metadata"]["name"], "")
        found.by_template.setdefault(name, _Samples()).add(samples)
    return found


def _of_pod(pod: Document, killed: dict[str, list[float]]) -> _Samples:
    samples, status = _Samples(), pod.get("status") or {}
    created = _at(pod["metadata"].get("creationTimestamp"))
    mains = [item for item in status.get("containerStatuses") or [] if isinstance(item, dict)]
    running = [(item.get("state") or {}).get("running") or {} for item in mains]
    started = [_at(item.get("startedAt")) for item in running]
    if started and all(time is not None for time in started):
        last = max(time for time in started if time is not None)
        if created is not None and not any(item.get("restartCount") for item in mains):
            _note(samples.begin, created, last)
        _note(samples.ready, last, _ready_since(status))
    for item, time in zip(mains, started, strict=True):
        ended = (item.get("lastState") or {}).get("terminated") or {}
        if item.get("restartCount") == 1 or ended.get("exitCode") in (137, 143):
            _note(samples.swap, _at(ended.get("finishedAt")), time)
    for time in killed.get(pod["metadata"]["name"], []):
        if created is not None and created - time < LONGEST / 6:
            _note(samples.stop, time, created)
    return samples


def _ready_since(status: Document) -> float | None:
    """Since when all containers are ready: a readiness gate is not a matter of how they start."""
    known = {item.get("type"): item for item in status.get("conditions") or []}
    ready = known.get("ContainersReady") or known.get("Ready") or {}
    return _at(ready.get("lastTransitionTime")) if ready.get("status") == "True" else None


def _killed(events: Iterable[Document]) -> dict[str, list[float]]:
    """Pod -> when the kubelet began to stop its containers."""
    found: dict[str, list[float]] = {}
    for event in events:
        about: Any = event.get("involvedObject") or event.get("regarding") or {}
        time = _at(event.get("firstTimestamp") or event.get("eventTime"))
        if event.get("reason") == "Killing" and about.get("kind") == "Pod" and time is not None:
            found.setdefault(str(about.get("name")), []).append(time)
    return found


def _note(samples: list[float], before: float | None, after: float | None) -> None:
    if before is not None and after is not None and 0 <= after - before <= LONGEST:
        samples.append(after - before)


def _at(text: str | None) -> float | None:
    found = seconds(text)
    return None if found == UNKNOWN else found
