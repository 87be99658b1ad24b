"""Takes over a pod that another kubelet runs, from the status in the API object.

`take_over` treats running containers as if this kubelet had started them. A container that does not
start or become ready keeps its status until its image changes. The status shows that a container
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
    """Reads times in a status that another kubelet wrote, and knows when a container counts as
    stuck.
    """

    # parses a timestamp of the API; None if it is missing or invalid
    parse_time: Callable[[str | None], float | None]
    # Seconds after which a container counts as stuck if it is still being created, or if it runs
    # and is not ready.
    patience_seconds: float


def take_over(local: LocalPod, reader: StatusReader, now: float) -> bool:
    """Gives a pod the containers and the status that its API object shows.

    Returns True if the pod needs a sync now. Returns False if the pod has ended, or if there is
    nothing to start, to stop or to publish.

    Args:
        local: the pod on its node.
        reader: parses the times in the status.
        now: the time of the takeover.
    """
    pod = local.pod
    status = pod.get("status") or {}
    if status.get("phase") in COMPLETED:
        local.end = status["phase"], status.get("reason", ""), status.get("message", "")
    shown = statuses_of(pod)
    local.load_status()
    local.status = {"phase": status.get("phase", "Pending")}
    if status.get("startTime"):
        local.status["startTime"] = status["startTime"]
    is_at_rest = local.end is None
    for container in local.all:
        reported = shown.get(container.name)
        if reported is None:
            is_at_rest = False
            continue
        _take_over_container(local, container, _with_defaults(reported), reader, now)
        image = specs_of(pod)[container.name]["image"]
        ends_well = (
            container.runs_to_completion and container.run is not None and not container.run.alive
        )
        is_at_rest = is_at_rest and (
            container.is_left_alone(image) or _runs(container, image) or ends_well
        )
        is_at_rest = is_at_rest and not _is_awaited(local, container)
    local.has_sandbox = any(container.runs or container.stuck_image for container in local.all)
    if is_terminating(pod):
        return True
    if local.end is not None:
        return False
    observed_generation = status.get("observedGeneration")
    return not is_at_rest or (
        observed_generation is not None and observed_generation < generation_of(pod)
    )


def _with_defaults(reported: Object) -> Object:
    """Returns a container status, with defaults for missing fields that a kubelet always writes."""
    defaults = {"image": "", "imageID": "", "restartCount": 0, "ready": False, "lastState": {}}
    return {
        **defaults,
        **reported,
        "state": reported.get("state") or {"waiting": {"reason": "Unknown"}},
    }


def _take_over_container(
    local: LocalPod, container: Container, reported: Object, reader: StatusReader, now: float
) -> None:
    image = specs_of(local.pod)[container.name]["image"]
    run = _run_of(local, container, reported, reader, now)
    if run is not None:
        container.add(run)
        for probe in container.probers:
            probe.run = run.id
            passed = reported.get("started") if probe.startup else reported["ready"]
            probe.passed = True if passed else None
            # The status does not show when a probe runs. So the ticks of all probes that have
            # passed count from the takeover.
            probe.since = now if passed else run.started
            probe.last_probe = now
    local.keep(container.name, reported)
    if _is_broken(local, container, reported, reader, now):
        container.stuck_image = image


def _run_of(
    local: LocalPod, container: Container, reported: Object, reader: StatusReader, now: float
) -> Run | None:
    """Returns the process that a container status shows: the running one, or the last one that
    ended.

    Returns None if the status shows no process.

    Args:
        local: the pod on its node.
        container: the container.
        reported: the status of the container in the API object.
        reader: parses the times in the status.
        now: the time of the takeover.
    """
    state = reported["state"]
    running, ended = state.get("running"), state.get("terminated")
    if running is None and ended is None:
        ended = reported["lastState"].get("terminated")
    container_id = reported.get("containerID") or (ended or {}).get("containerID")
    if not container_id or (running is None and ended is None):
        return None
    started_at = reader.parse_time((running or ended or {}).get("startedAt"))
    started = now if started_at is None else started_at
    spec_image = specs_of(local.pod)[container.name]["image"]
    levers = local.node.levers
    finished = None
    if ended is not None and running is None:
        finished = reader.parse_time(ended.get("finishedAt"))
        finished = now if finished is None else finished
    is_current = _is_current(local.pod, reported, spec_image, reader, now)
    is_ready = reported["ready"] or container.runs_to_completion
    return Run(
        id=container_id,
        image=spec_image if is_current else reported["image"],
        shown=reported["image"],
        image_id=reported["imageID"],
        restarts=reported["restartCount"],
        started=started,
        ready_from=started if is_ready else started + levers.seconds_until_ready(spec_image),
        started_from=(
            started
            if reported.get("started")
            else started + levers.seconds_until_started(spec_image)
        ),
        exit_code=0 if ended is None else int(ended.get("exitCode", 0)),
        finished=finished,
    )


def _is_current(
    pod: Object, reported: Object, spec_image: str, reader: StatusReader, now: float
) -> bool:
    """Returns True if a container probably runs the image of the spec.

    A runtime may report another name of the same image, so different names alone prove nothing.
    Different names mean an older image in two cases:

    - The kubelet has not yet observed the generation of the spec.
    - The container is older than the spec, and the kubelet has had too little time to replace it.

    Args:
        pod: the API object.
        reported: the status of the container in the API object.
        spec_image: the image of the container in the pod's spec.
        reader: parses the times in the status.
        now: the time of the takeover.
    """
    if canonical_name(reported["image"]) == canonical_name(spec_image):
        return True
    if "@" in spec_image and reported["imageID"].endswith(spec_image.rpartition("@")[2]):
        return True
    observed_generation = (pod.get("status") or {}).get("observedGeneration")
    generation = generation_of(pod)
    if observed_generation is not None and observed_generation < generation:
        return False
    started_at = reader.parse_time((reported["state"].get("running") or {}).get("startedAt"))
    spec_written, status_written = _last_writes(pod, reader)
    newest = max(
        [time for time in (spec_written, status_written) if time is not None], default=None
    )
    if started_at is None or newest is None or generation <= 1:
        return True
    grace = float(pod["spec"].get("terminationGracePeriodSeconds") or 0)
    return started_at > newest or now - newest > grace + REACTION_SECONDS


REACTION_SECONDS = 60.0  # Seconds that a kubelet has to act on a new spec, plus the grace period


def _last_writes(pod: Object, reader: StatusReader) -> tuple[float | None, float | None]:
    """Returns the times of the last write of a pod and of its status, from `managedFields`.

    A time is None if `managedFields` has no such write.
    """
    spec_written: list[float] = []
    status_written: list[float] = []
    for entry in meta(pod).get("managedFields") or []:
        time = reader.parse_time(entry.get("time"))
        if time is not None:
            (status_written if entry.get("subresource") == "status" else spec_written).append(time)
    return max(spec_written, default=None), max(status_written, default=None)


def _is_broken(
    local: LocalPod, container: Container, reported: Object, reader: StatusReader, now: float
) -> bool:
    """Returns True if a container will not start or become ready until its image changes.

    That is so if the container waits with an error, or has crashed before. It is also so if the
    container has been starting or unready for more than `reader.patience_seconds`.

    Args:
        local: the pod on its node.
        container: the container.
        reported: the status of the container in the API object.
        reader: parses the times in the status.
        now: the time of the takeover.
    """
    state, image = reported["state"], specs_of(local.pod)[container.name]["image"]
    if local.end is not None:
        return False
    if container.run is not None and not _is_current(local.pod, reported, image, reader, now):
        return False  # the kubelet is about to restart it
    waiting = state.get("waiting")
    if waiting is not None:
        if waiting.get("reason") not in _STARTING:
            return True
        since = reader.parse_time(meta(local.pod).get("creationTimestamp"))
        return (
            since is not None
            and now - since > reader.patience_seconds
            and not _waits_for_init(local, container)
        )
    if state.get("terminated") is not None:
        failed = int(state["terminated"].get("exitCode", 0)) != 0
        return failed and reported["restartCount"] > 0
    if reported["ready"] or container.runs_to_completion:
        return False
    since = reader.parse_time(state["running"].get("startedAt"))
    return since is not None and now - since > reader.patience_seconds


def _waits_for_init(local: LocalPod, container: Container) -> bool:
    return any(other.stuck_image for other in local.inits if other is not container)


def _runs(container: Container, image: str) -> bool:
    return container.run is not None and container.run.alive and container.run.image == image


def _is_awaited(local: LocalPod, container: Container) -> bool:
    """Returns True if a container is not ready in the published status only because it has just
    started.

    The container has no probes, so the kubelet will soon publish it as ready.
    """
    shown = local.shown(container.name)
    return (
        not container.stuck_image
        and not container.runs_to_completion
        and not container.probers
        and not shown.get("ready")
    )
