"""Takes over a pod that another kubelet runs, from the status in the API object.

`take_over` continues running containers as if this kubelet had started them. A container that does
not start or become ready keeps its status until its image changes. The API tells that the container
crashes, or that its image or volume is missing, but not when this ends.
"""

from collections.abc import Callable
from dataclasses import dataclass

from simulator.node.container import Container, Run
from simulator.node.local_pod import LocalPod
from simulator.node.pod_plan import specs_of
from simulator.node.pod_status import statuses_of
from simulator.objects.objects import Object, generation_of, is_terminating, meta
from tapp.kube.images import canonical_name
from tapp.kube.restarts import COMPLETED, RESTARTING_ALL

_STARTING = ("ContainerCreating", "PodInitializing", RESTARTING_ALL)


@dataclass(frozen=True)
class StatusReader:
    """Reads the status that another kubelet has written."""

    # parses a timestamp of the API; None if it is missing or invalid
    parse_time: Callable[[str | None], float | None]
    # Seconds until a container counts as stuck that is being created, or that runs and is not
    # ready.
    patience_seconds: float


def take_over(local: LocalPod, reader: StatusReader, now: float) -> bool:
    """Starts with the status of the API object; returns True if the pod needs a sync now."""
    pod = local.pod
    status = pod.get("status") or {}
    if status.get("phase") in COMPLETED:
        local.end = status["phase"], status.get("reason", ""), status.get("message", "")
    shown = statuses_of(pod)
    local.recall()
    local.status = {"phase": status.get("phase", "Pending")}
    if status.get("startTime"):
        local.status["startTime"] = status["startTime"]
    rest = local.end is None
    for one in local.all:
        known = shown.get(one.name)
        if known is None:
            rest = False
            continue
        _fill(local, one, _complete(known), reader, now)
        image = specs_of(pod)[one.name]["image"]
        ends_well = one.once and one.run is not None and not one.run.alive
        rest = rest and (one.stays(image) or _runs(one, image) or ends_well)
        rest = rest and not _is_awaited(local, one)
    local.sandboxed = any(one.runs or one.stuck for one in local.all)
    if is_terminating(pod):
        return True
    if local.end is not None:
        return False
    seen = status.get("observedGeneration")
    return not rest or (seen is not None and seen < generation_of(pod))


def _complete(known: Object) -> Object:
    """Returns a container status with defaults for fields that a kubelet always writes."""
    empty = {"image": "", "imageID": "", "restartCount": 0, "ready": False, "lastState": {}}
    return {**empty, **known, "state": known.get("state") or {"waiting": {"reason": "Unknown"}}}


def _fill(local: LocalPod, one: Container, known: Object, reader: StatusReader, now: float) -> None:
    image = specs_of(local.pod)[one.name]["image"]
    run = _run_of(local, one, known, reader, now)
    if run is not None:
        one.add(run)
        for probe in one.probers:
            probe.run = run.id
            passed = known.get("started") if probe.startup else known["ready"]
            probe.passed = True if passed else None
            # The status does not show when a probe ticks. Probes that have passed all get the same
            # ticks.
            probe.since = now if passed else run.started
            probe.looked = now
    local.keep(one.name, known)
    if _is_broken(local, one, known, reader, now):
        one.stuck = image


def _run_of(
    local: LocalPod, one: Container, known: Object, reader: StatusReader, now: float
) -> Run | None:
    """Returns the process that a status shows: the running one, or the one that ended last."""
    state = known["state"]
    running, ended = state.get("running"), state.get("terminated")
    if running is None and ended is None:
        ended = known["lastState"].get("terminated")
    identity = known.get("containerID") or (ended or {}).get("containerID")
    if not identity or (running is None and ended is None):
        return None
    began = reader.parse_time((running or ended or {}).get("startedAt"))
    started = now if began is None else began
    spelt = specs_of(local.pod)[one.name]["image"]
    levers = local.node.levers
    finished = None
    if ended is not None and running is None:
        finished = reader.parse_time(ended.get("finishedAt"))
        finished = now if finished is None else finished
    return Run(
        id=identity,
        image=spelt if _is_current(local.pod, known, spelt, reader, now) else known["image"],
        shown=known["image"],
        image_id=known["imageID"],
        restarts=known["restartCount"],
        started=started,
        serves_from=started if known["ready"] or one.once else started + levers.passing(spelt),
        starts_from=started if known.get("started") else started + levers.starting(spelt),
        exit_code=0 if ended is None else int(ended.get("exitCode", 0)),
        finished=finished,
    )


def _is_current(pod: Object, known: Object, spelt: str, reader: StatusReader, now: float) -> bool:
    """Returns True if a container probably runs the image of the spec.

    A runtime may report another name of the same image, so different names alone prove nothing. A
    kubelet reports that it has seen a generation before it stops containers because of it. So the
    name counts for a short time after the spec or the status was written.
    """
    if canonical_name(known["image"]) == canonical_name(spelt):
        return True
    if "@" in spelt and known["imageID"].endswith(spelt.rpartition("@")[2]):
        return True
    seen, generation = (pod.get("status") or {}).get("observedGeneration"), generation_of(pod)
    if seen is not None and seen < generation:
        return False
    began = reader.parse_time((known["state"].get("running") or {}).get("startedAt"))
    asked, reported = _written(pod, reader)
    newest = max([time for time in (asked, reported) if time is not None], default=None)
    if began is None or newest is None or generation <= 1:
        return True
    grace = float(pod["spec"].get("terminationGracePeriodSeconds") or 0)
    return began > newest or now - newest > grace + AFTERWARDS


AFTERWARDS = 60.0  # seconds beyond the grace period in which a kubelet acts on a new spec


def _written(pod: Object, reader: StatusReader) -> tuple[float | None, float | None]:
    """Returns when the object, and when its status, was written last, by `managedFields`."""
    asked: list[float] = []
    reported: list[float] = []
    for entry in meta(pod).get("managedFields") or []:
        time = reader.parse_time(entry.get("time"))
        if time is not None:
            (reported if entry.get("subresource") == "status" else asked).append(time)
    return max(asked, default=None), max(reported, default=None)


def _is_broken(
    local: LocalPod, one: Container, known: Object, reader: StatusReader, now: float
) -> bool:
    """Returns True if a container does not start or become ready without a change of its image."""
    state, image = known["state"], specs_of(local.pod)[one.name]["image"]
    if local.end is not None:
        return False
    if one.run is not None and not _is_current(local.pod, known, image, reader, now):
        return False  # the kubelet is about to restart it
    waiting = state.get("waiting")
    if waiting is not None:
        if waiting.get("reason") not in _STARTING:
            return True
        begun = reader.parse_time(meta(local.pod).get("creationTimestamp"))
        return (
            begun is not None and now - begun > reader.patience_seconds and not _waits(local, one)
        )
    if state.get("terminated") is not None:
        failed = int(state["terminated"].get("exitCode", 0)) != 0
        return failed and known["restartCount"] > 0
    if known["ready"] or one.once:
        return False
    begun = reader.parse_time(state["running"].get("startedAt"))
    return begun is not None and now - begun > reader.patience_seconds


def _waits(local: LocalPod, one: Container) -> bool:
    return any(other.stuck for other in local.inits if other is not one)


def _runs(one: Container, image: str) -> bool:
    return one.run is not None and one.run.alive and one.run.image == image


def _is_awaited(local: LocalPod, one: Container) -> bool:
    """Returns True if a container without probes is not published as ready yet."""
    shown = local.shown(one.name)
    return not one.stuck and not one.once and not one.probers and not shown.get("ready")
