"""Progress of an update in place: which containers of a pod are updated, and which are not yet.

Entry points: `progress` for a sync, `is_over` for the part that does not depend on the time.
`update.py` says what an update sets, and writes the record that this module reads: for each changed
container its old containerID and image, and the images requested since.

Idea: a container is *updated* if

    the kubelet has seen the newest generation    (status.observedGeneration >= generation)
    and the container runs, or ran last, the wanted image    (status.image or imageID)

Neither condition alone is enough, because of what a kubelet does (Kubernetes 1.36, pkg/kubelet;
observed on a real node):

* The pod worker handles one spec of a pod at a time. When it turns to the newest spec, it first
  publishes `observedGeneration`, with the old containers still Running and Ready. Only then it
  stops the containers whose image has changed, one after the other, each with its grace period.
* So an image that was requested in between is started, published as Running and Ready, and stopped
  again. A new containerID is no proof either, because the old image also gets a new one after a
  crash, a failed liveness probe or a slow postStart hook.
* The kubelet stops a container before it pulls the new image. While the pull fails, the status
  still shows the containerID and image of the stopped container.

In some cases the image names cannot prove the second condition. Time proves it instead: the kubelet
cannot be about to stop a container that has run for longer than

    stop = containers to update * terminationGracePeriodSeconds + MARGIN

counted from the newest of the container's start, the write of the update, and the kubelet's last
report (`metadata.managedFields`). The cases are:

* Another tag of the same image, or a mirror: a runtime goes on reporting the first tag that it
  knew. A container with another containerID than the recorded one is updated after `stop`, or after
  twice that time if the image in between may be running.
* The recorded container itself. If it was started with the wanted image (the image was set back, or
  admission rewrote it), it stays and is updated. If it was started with another image, the kubelet
  will stop it, so it is never updated under another name; under the wanted name it is after `stop`.
* Servers before Kubernetes 1.34 publish no `observedGeneration`. The names decide there, too, but
  the recorded container has to outlast `stop`.

A container may also be *restarted* with the same image (`RanImage.again`). The spec then names the
image in another way (`images.pinned`), so names prove nothing. The old spec may have started
another container as well, after a crash or a failed probe just before the kubelet turned to the
newest spec. So another container than the recorded one is the requested one if the kubelet has seen
the newest generation, and one of these holds:

* An earlier sync saw the newest generation together with the recorded container (`status.turned`).
* A further container ran between the recorded one and this one.
* The recorded container ended like one that the kubelet stops (exit code 0, 137 or 143, not OOM),
  and has no probe because of which the kubelet would stop it.

If none of them is known, `stop` decides again.

If an update is overtaken by the next one before it is finished, the next record takes over its
unfinished containers.
"""

from collections.abc import Container, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from tapp.kube.images import runs_image
from tapp.kube.objects import ContainerStatus, RanImage
from tapp.pod.pod import Pod
from tapp.words.times import UNKNOWN, past_time, plausible_time

_NEVER = float("inf")
# Seconds that a kubelet may need in addition to the grace period; they also cover clocks that
# differ.
MARGIN = 15.0


@dataclass(frozen=True)
class Progress:
    """The progress of a pod's last update in place; the defaults mean that it is finished."""

    # Name -> recorded old container, for the containers that are not updated yet.
    unfinished: Mapping[str, RanImage] = field(default_factory=dict)
    # Seconds until time alone may prove another container updated; None if time proves nothing.
    wait: float | None = None
    # True if all unfinished containers may be updated already, and only time can prove that.
    only_time_can_tell: bool = False
    # True if the TApp's status has to keep the time since which only time can prove the update
    # (`status.settling`), because the pod does not show that time. Stays True after that time is
    # over, until something else proves the update.
    start_clock: bool = False
    # Names of the containers that still were the recorded ones when the kubelet had seen the newest
    # spec (`status.turned`). Empty again when the pod itself proves their restart.
    seen_by_kubelet: tuple[str, ...] = ()


NO_UPDATE = Progress()


def progress(
    pod: Pod, now: float, unproved_since: float = UNKNOWN, seen_before: Container[str] = ()
) -> Progress:
    """Returns the progress of the pod's last update in place, according to the record on the pod.

    Args:
        pod: the pod.
        now: the time of this sync, in seconds since the epoch.
        unproved_since: since when only elapsed time can prove the update, in seconds since the
            epoch, as earlier syncs noted in `status.settling`. `UNKNOWN` if they noted no time.
        seen_before: the names in `Progress.seen_by_kubelet` of earlier syncs of this generation, as
            noted in `status.turned`.
    """
    record = pod.last_update
    if record is None or pod.update_over:
        return NO_UPDATE
    left = {name: ran for name, ran in record.containers.items() if name in pod.spec.images}
    stop, unfinished, waits = _stop_seconds(pod, len(left)), dict[str, RanImage](), []
    start_clock, seen = False, []
    for name, ran in left.items():
        times = _TimeProof(now, UNKNOWN, stop)
        if ran.again and not _is_proved(pod, name, ran):
            if _is_about_to_restart(pod, name, ran) or name in seen_before:
                seen.append(name)
            # The kubelet had seen the newest spec before it stopped the recorded container, so it
            # started the new container by that spec.
            if name in seen_before and _is_new_container(pod, name, ran):
                continue
        if _needs_noted_time(pod, name, ran):
            # An infinite `since` turns off the proof by time. A result above 0 then means that the
            # update needs that proof, so its start has to be kept.
            start_clock |= bool(
                _seconds_until_updated(pod, name, ran, times._replace(since=_NEVER))
            )
            times = times._replace(since=now if unproved_since == UNKNOWN else unproved_since)
        seconds_left = _seconds_until_updated(pod, name, ran, times)
        if seconds_left is None or seconds_left > 0:
            unfinished[name] = ran
        if seconds_left:
            waits.append(seconds_left)
    only_time_can_tell = 0 < len(unfinished) == len(waits)
    wait = min(waits, default=None)
    return Progress(unfinished, wait, only_time_can_tell, start_clock, tuple(seen))


def _is_about_to_restart(pod: Pod, name: str, ran: RanImage) -> bool:
    """Returns True if the kubelet has seen the newest spec, but not yet replaced a container.

    Args:
        pod: the pod.
        name: the name of the container.
        ran: the container before the update, from the update's record.
    """
    seen = pod.reports_generation and not pod.kubelet_is_behind
    return seen and bool(ran.id) and pod.container(name).container_id == ran.id


def _is_new_container(pod: Pod, name: str, ran: RanImage) -> bool:
    """Returns True if an update has replaced a container, and the new one has the wanted image.

    The new container runs, or ran last. Returns False if it may run an image that an earlier,
    overtaken update requested.

    Args:
        pod: the pod.
        name: the name of the container.
        ran: the container before the update, from the update's record.
    """
    status = pod.container(name)
    has_other_id = _is_reported(pod, status) and status.container_id not in (None, "", ran.id)
    return has_other_id and name in pod.runs_wanted and not _may_run_overtaken_image(status, ran)


def _needs_noted_time(pod: Pod, name: str, ran: RanImage) -> bool:
    """Returns True if the status has to note since when a sync waits for a container's update.

    That is so if two facts are unknown:

    - Image names may not show that the container is updated.
    - The pod does not show when its kubelet last wrote the status.

    The kubelet may then still be about to stop the container. The start of the container does not
    count: if the node was away, the container may have run for long before the kubelet reports it.
    So the time counts from the first sync that saw this state, and `status.settling` keeps it.

    Args:
        pod: the pod.
        name: the name of the container.
        ran: the container before the update, from the update's record.
    """
    is_recorded = pod.container(name).container_id == ran.id and ran.image != pod.spec.images[name]
    unsure = is_recorded or not ran.id or bool(ran.overtaken) or ran.again
    # The managed fields of a pod say when the kubelet last wrote. Lean pods have no such fields.
    return unsure and not pod.kubelet_wrote


class _TimeProof(NamedTuple):
    """The times after which a container counts as updated although its image name does not show it.

    A container counts as updated when it has run for `stop` seconds after `since`: a kubelet would
    have stopped the old one by then.
    """

    now: float  # The time of this sync, in seconds since the epoch.
    # The time from `status.settling`, in seconds since the epoch. `UNKNOWN` if there is none, and
    # infinite to turn the proof by time off.
    since: float
    stop: float  # Seconds that the kubelet may need to stop the containers of the update.


def _seconds_until_updated(pod: Pod, name: str, ran: RanImage, times: _TimeProof) -> float | None:
    """Returns the seconds until a container counts as updated, or 0 if it already does.

    Returns None if the passing of time alone does not make the container count as updated.

    Args:
        pod: the pod.
        name: the name of the container.
        ran: the container before the update, from the update's record.
        times: the times after which a container counts as updated without further proof.
    """
    status = pod.container(name)
    if not _is_reported(pod, status):
        return None
    if _is_proved(pod, name, ran):
        return 0.0
    recorded = bool(status.container_id) and status.container_id == ran.id
    if recorded and ran.image == pod.spec.images[name]:
        if pod.completed and ran.overtaken:
            # The kubelet stopped this container for an image that was set back since, and the pod
            # has ended before the container was started again.
            return None
    elif recorded and ran.image and (ran.again or name not in pod.runs_wanted):
        # The kubelet will stop this container; nobody knows when.
        return None
    elif name in pod.runs_wanted:
        # The name is the wanted one, but the kubelet may still stop the container.
        pass
    elif any(runs_image(image, status.image, status.image_id) for image in ran.overtaken):
        # Most likely this is the image in between. The kubelet stops it within `stop` seconds, or
        # starts again to count the grace period if the kubelet itself is restarted meanwhile.
        times = times._replace(stop=2 * times.stop)
    # A container that has ended was started after the recorded one: the time when a sync first saw
    # it does not matter, because its own times tell how long it ran.
    if not recorded and status.now.terminated is not None:
        times = times._replace(since=UNKNOWN)
    return _seconds_until_outlasted(pod, status, times)


def _is_reported(pod: Pod, status: ContainerStatus) -> bool:
    """Returns True if the kubelet has seen the newest spec of a pod and has started the container.

    If the API server publishes no `observedGeneration`, the kubelet counts as having seen the spec.
    `status` is the status of the container.
    """
    ran = status.container_id or status.now.running or status.now.terminated
    return bool(ran) and not pod.kubelet_is_behind


def _is_proved(pod: Pod, name: str, ran: RanImage) -> bool:
    """Returns True if the pod's status alone shows that a container is updated.

    If it does, no time has to pass before the container counts as updated.

    Args:
        pod: the pod.
        name: the name of the container.
        ran: the container before the update, from the update's record.
    """
    status = pod.container(name)
    if not _is_reported(pod, status) or not status.container_id:
        return False
    if status.container_id != ran.id:
        return _is_new_container(pod, name, ran) and (
            not ran.again or _was_started_by_newest_spec(pod, name, ran)
        )
    # A completed pod may have ended because its kubelet stopped the container for an image in
    # between.
    may_be_stopped = pod.completed and bool(ran.overtaken)
    # The recorded container already had the wanted image, so the kubelet leaves it running.
    keeps_running = ran.image == pod.spec.images[name] and not ran.again
    return keeps_running and not may_be_stopped and pod.reports_generation


def is_over(pod: Pod) -> bool:
    """Returns True if the status of the pod shows that its last update in place is finished.

    Also returns True if the pod has no record of an update. Returns False if only elapsed time can
    show that the update is finished.
    """
    if (record := pod.last_update) is None:
        return True
    images = pod.spec.images
    return all(
        _is_proved(pod, name, ran) for name, ran in record.containers.items() if name in images
    )


def _may_run_overtaken_image(status: ContainerStatus, ran: RanImage) -> bool:
    """Returns True if a container may run an overtaken image, although it reports the wanted one.

    An overtaken image was requested after the recorded container had started, and before the wanted
    image. Both names may be tags of the same image, so the kubelet may report the wanted name for
    it. That is possible only for the container that directly follows the recorded one: a container
    that follows an overtaken image has the wanted image. A kubelet that restarts all containers of
    a pod forgets their predecessors, so an unknown predecessor proves nothing.

    Args:
        status: the status of the container.
        ran: the container before the update, from the update's record.
    """
    before = status.before.terminated
    follows = before is not None and before.container_id in (ran.id, None, "")
    return bool(ran.overtaken) and follows


def _was_started_by_newest_spec(pod: Pod, name: str, ran: RanImage) -> bool:
    """Returns True if the newest spec of the pod started the container that now runs.

    The caller has checked that this container is another one than before the update. The pod worker
    is at most one spec behind, so the second container after the recorded one was started by the
    newest spec. The first one may also have been started by the older spec, for example after a
    crash, unless the recorded container ended like one that the kubelet stopped for an update.

    Args:
        pod: the pod.
        name: the name of the container.
        ran: the container before the update, from the update's record.
    """
    before = pod.container(name).before.terminated
    # A kubelet that restarts all containers of a pod forgets their predecessors, and may do so by
    # the older spec (pkg/kubelet/pod_workers.go, UpdatePod: the pending newer spec replaces it).
    if before is None or not before.container_id or not pod.reports_generation:
        return False
    if before.container_id != ran.id:
        return True
    # A failed liveness or startup probe ends a container with the same exit codes.
    stopped = before.exit_code in _STOP_EXIT_CODES and before.reason != "OOMKilled"
    return stopped and name not in pod.spec.probed_alive


# Exit codes of containers that the kubelet stops: regular end, SIGKILL (128 + 9), SIGTERM (128 +
# 15).
_STOP_EXIT_CODES = (0, 137, 143)


def _seconds_until_outlasted(pod: Pod, status: ContainerStatus, times: _TimeProof) -> float | None:
    """Returns the seconds until a container has run longer than the kubelet may need to stop it.

    - If the container has ended: 0 if it ran for that long, and otherwise None.
    - If the container has not started: None.

    Args:
        pod: the pod.
        status: the status of the container.
        times: the time that the kubelet may need, and when that time begins.
    """
    now, stop = times.now, times.stop
    known = [past_time(_update_written_at(pod), now), pod.created_at(now)]
    ended = status.now.terminated
    if ended is not None:
        began = max(*known, pod.plausible_time(ended.started_at, now), times.since)
        # The kubelet's last report does not count here, because it only shows that the container
        # had ended.
        ran = pod.plausible_time(ended.finished_at, now) - began
        return 0.0 if ran >= stop else None
    if status.now.running is None:
        return None
    known += [
        past_time(status.now.running.started_at, now),
        past_time(pod.kubelet_wrote, now),
        times.since,
    ]
    return max(0.0, max(known) + stop - now)


def _update_written_at(pod: Pod) -> str:
    """Returns when the last update was written, as RFC 3339, or "" if that is unknown.

    The time is in the update's record, or else in the managed fields of the pod.
    """
    return (pod.last_update.at if pod.last_update is not None else "") or pod.spec_written


def _stop_seconds(pod: Pod, containers: int) -> float:
    """Returns the seconds that a kubelet may need to stop this many containers of a pod.

    It stops them one after the other; the grace period of each includes its preStop hook.
    """
    return containers * pod.spec.grace_seconds + MARGIN


def ended_by_update(pod: Pod, update: Progress) -> bool:
    """Returns True if a pod completed because of its update, and not because its work was done.

    The kubelet stops a container to replace its image. With restartPolicy Never, or OnFailure and
    exit code 0, it does not start the container again if the pull has failed or the kubelet was
    restarted meanwhile. Native sidecars do not count, because they end with the pod's main
    containers. `update` is the progress of the pod's last update in place.
    """
    return pod.completed and any(name in pod.spec.main_containers for name in update.unfinished)


class StartTimes(NamedTuple):
    """When a container's current run began, in seconds since the epoch.

    Both times are `UNKNOWN` if the container does not run, or its status has no usable time.
    `by_node_clock` is the time in the status. The condition Ready has times of the same clock, so
    these can be compared with it. `at` is later if the container was started for an update that was
    written after that time, because the node's clock may be behind.
    """

    at: float
    by_node_clock: float


def start_times(pod: Pod, name: str, now: float) -> StartTimes:
    """Returns when the current run of a container began; `name` is the container's name.

    `now` is the time of this sync, in seconds since the epoch.
    """
    status, record = pod.container(name), pod.last_update
    if status.now.running is None:
        return StartTimes(UNKNOWN, UNKNOWN)
    at = by_node_clock = pod.plausible_time(status.now.running.started_at, now)
    if record is not None and name in record.containers:
        ran = record.containers[name]
        if status.container_id != ran.id:
            at = max(at, plausible_time(_update_written_at(pod), now))
    return StartTimes(at, by_node_clock)
