"""Estimates how long the TApp's instances take to start, restart and stop, from its pods.

Only the restarts of containers by an update count, because a restart after a crash or an outage may
take another time. The service's record on a pod names the container that an update in place has
replaced.

`Durations` has the times of a template; `Timing.pace` computes them as medians of the samples.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from statistics import median

from kubectl_tapp.base.observed import Document, Observed
from kubectl_tapp.base.reading import conditions_by_type, last_write
from tapp.kube import objects
from tapp.pod.manifest import read_annotation
from tapp.pod.pod import GRACE
from tapp.words.groups import grouped
from tapp.words.times import UNKNOWN, seconds
from tapp.words.vocabulary import IN_PLACE_UPDATE

BEGIN, READY, SWAP, STOP = 5.0, 5.0, 3.0, 5.0
"""Assumed seconds without samples: from a pod's creation until its containers run; from then until
their probes succeed; from a container's end until it runs with another image; until a container has
stopped.
"""
TIMES = ("begin", "ready", "swap", "stop")  # The fields of `Durations` that hold times
LONGEST = 3600.0  # Longer intervals have another cause, such as a person who debugs the pod
_CREATION_DELAY = 5.0  # Seconds that may pass between the end of a pod and the creation of the next


@dataclass(frozen=True)
class Durations:
    """The durations that a forecast assumes for the instances of one template, in seconds."""

    begin: float  # from a pod's creation until its containers run
    ready: float  # from the start of its containers until the pod is Ready
    swap: float  # from a container's end until the updated container runs
    stop: float  # from the request to stop a container until it has stopped
    starts: int = 0  # number of samples for `begin` and `ready`; 0 if these are assumed
    swaps: int = 0  # number of samples for `swap`; 0 if it is assumed
    stops: int = 0  # number of samples for `stop`; 0 if it is assumed

    @property
    def start(self) -> float:
        """Seconds from the creation of a pod until the pod is Ready."""
        return self.begin + self.ready


Samples = dict[str, list[float]]  # Observed times in seconds, by the names of `TIMES`


@dataclass
class Timing:
    """The times that the TApp's pods have taken, for each template and for all together."""

    by_template: dict[str, Samples] = field(default_factory=dict)
    all: Samples = field(default_factory=lambda: _merged(()))

    def pace(self, template: str, body: Document) -> Durations:
        """Returns the durations that a forecast assumes for the instances of a template.

        `body` is the content of the template. If a template has no samples of a time, the samples
        of all templates count. If no template has samples, the result has the assumed time.
        """
        own = self.by_template.get(template, {})
        probed = any(
            "readinessProbe" in item or "startupProbe" in item
            for item in (body.get("spec") or {}).get("containers") or []
            if isinstance(item, dict)
        )
        begin, ready, swap, stop = (own.get(x) or self.all[x] for x in TIMES)
        return Durations(
            begin=median(begin) if begin else BEGIN,
            ready=median(ready) if ready else READY if probed else 0.0,
            swap=median(swap) if swap else SWAP,
            stop=min(median(stop) if stop else STOP, _grace(body.get("spec") or {})),
            starts=len(ready),
            swaps=len(swap),
            stops=len(stop),
        )


def timing(observed: Observed, templates: dict[str, str]) -> Timing:
    """Returns the times that the status of the TApp's pods shows.

    `templates` maps pod names to template names.
    """
    samples = [
        (templates.get(pod["metadata"]["name"], ""), _samples_of(pod)) for pod in observed.pods
    ]
    by_template = {name: _merged(found) for name, found in grouped(samples).items()}
    return Timing(by_template, _merged(by_template.values()))


def _merged(found: Iterable[Samples]) -> Samples:
    known = list(found)
    return {what: [time for each in known for time in each[what]] for what in TIMES}


def _samples_of(pod: Document) -> Samples:
    samples, status, meta = _merged(()), pod.get("status") or {}, pod["metadata"]
    created, grace = _parsed_time(meta.get("creationTimestamp")), _grace(pod.get("spec") or {})
    mains = [item for item in status.get("containerStatuses") or [] if isinstance(item, dict)]
    running = [(item.get("state") or {}).get("running") or {} for item in mains]
    started = [_parsed_time(item.get("startedAt")) for item in running]
    replaced = [_end_of_replaced(pod, item) for item in mains]
    first = not any(item.get("restartCount") for item in mains)
    known = [time for time in started if time is not None]
    if known and len(known) == len(mains):
        if created is not None and first:
            _add_sample(samples["begin"], created, max(known))
        if all(
            ended is not None or not item.get("restartCount")
            for item, ended in zip(mains, replaced, strict=True)
        ):
            _add_sample(samples["ready"], max(known), _ready_since(pod))
    for ended, time in zip(replaced, started, strict=True):
        if ended is not None:
            _add_sample(samples["swap"], ended, time)
            _add_sample(samples["stop"], _seconds_or_none(last_write(meta)), ended, grace)
    return samples


def _end_of_replaced(pod: Document, container: Document) -> float | None:
    """Returns when the previous run of a container ended, if an update in place has replaced that
    run.

    The time is in seconds since the epoch. None if the previous run ended for another reason, or if
    there is none. `container` is the status of the container.
    """
    annotations = pod["metadata"].get("annotations") or {}
    record = read_annotation(objects.decode_record, annotations.get(IN_PLACE_UPDATE))
    ran = None if record is None else record.containers.get(str(container.get("name")))
    ended = (container.get("lastState") or {}).get("terminated") or {}
    if ran is None or not ran.id or ended.get("containerID") != ran.id:
        return None
    return _parsed_time(ended.get("finishedAt"))


def _grace(spec: Document) -> float:
    value = spec.get("terminationGracePeriodSeconds")
    return float(value) if isinstance(value, int) and value >= 0 else GRACE


def _ready_since(pod: Document) -> float | None:
    """Returns when all containers of a pod became ready, in seconds since the epoch.

    None if they are not all ready.

    Readiness gates are left out, because they are not part of a start.
    """
    known = conditions_by_type(pod)
    ready = known.get("ContainersReady") or known.get("Ready") or {}
    return _parsed_time(ready.get("lastTransitionTime")) if ready.get("status") == "True" else None


def _add_sample(
    samples: list[float], before: float | None, after: float | None, most: float = LONGEST
) -> None:
    """Adds the seconds between the times `before` and `after` to the samples, if they are
    plausible.

    A sample is at most `most` seconds long. An interval that is longer by more than
    `_CREATION_DELAY` has another cause and is ignored. If a time is None, it is unknown, and no
    sample is added.
    """
    if (
        before is not None
        and after is not None
        and 0 <= after - before <= min(most + _CREATION_DELAY, LONGEST)
    ):
        samples.append(min(after - before, most))


def _parsed_time(text: str | None) -> float | None:
    return _seconds_or_none(seconds(text))


def _seconds_or_none(at: float) -> float | None:
    return None if at == UNKNOWN else at
