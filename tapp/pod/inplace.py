"""The end of an update in place; what it sets and records is in `update.py`.

What a kubelet does (Kubernetes 1.36, pkg/kubelet; watched on a real node):

* Its worker looks at one spec of a pod at a time. Turning to the newest one, it first publishes
  `status.observedGeneration` with the containers as they are, Running and Ready. Only then it stops
  those whose image has changed, one after the other, each for its whole grace period.
* So an image that was asked for in between is started, published as Running and Ready, and stopped
  again. Another containerID says nothing; nor does the old image starting anew after a crash, a
  failed liveness probe or a slow postStart hook.
* It stops a container before it pulls the new image. While the pull fails, the status goes on
  showing the containerID and the image of the container that was stopped.

A container is therefore *updated* when the kubelet has seen the newest generation and the wanted
image is what it runs, or ran last: `status.image` names it, or `imageID` ends with its digest.
Both together were true exactly when it was done; neither alone was. What the names cannot tell:

* Another tag of the same image: a runtime goes on reporting the first tag that it knew. The same
  with mirrors. A container that is none of the recorded ones is then accepted when it has run for
  longer than the kubelet could need to stop it (`_stop_seconds`), counted from the newest of its
  start, the write of the update, and the kubelet's last report (`metadata.managedFields`).
* The very container that was to be replaced. Started with the wanted image after all (taken back
  before the kubelet saw it, or rewritten by admission), it stays and is done. Started with another,
  the kubelet will stop it, however long that takes: it is never done under another name, and under
  the wanted name only after the same time.
* Servers before Kubernetes 1.34 publish no `observedGeneration`. Names decide there, too, but what
  was recorded as to be replaced has to outlast the same time.

What an overtaken write had not finished is carried over into the next record.

A container is started *again*, with the same image, by another name of it (`images.pinned`). Names
tell nothing then, and the older spec may have started another one, too: after a crash or a failed
probe, just before the kubelet turned to the newest. So another container is the one that was asked
for when the kubelet has seen the newest generation, and

* a sync has seen both the newest generation and the recorded container (`status.turned`), or
* another one ran in between, or
* the recorded one ended as one does that was stopped, and has no probe for which it would be.

Where none of that is known, as on servers that publish no `observedGeneration`, time decides.
"""

from collections.abc import Container, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from tapp.kube.images import runs_image
from tapp.kube.objects import ContainerStatus, RanImage
from tapp.pod.pod import Pod
from tapp.words.times import UNKNOWN, past, told

_NEVER = float("inf")
MARGIN = 15.0  # Seconds that a kubelet may need beyond the grace period, and clocks may differ


@dataclass(frozen=True)
class Progress:
    """Progress of a pod's last in-place update."""

    # container -> what it ran, for the containers that are not updated yet
    unfinished: Mapping[str, RanImage] = field(default_factory=dict)
    wait: float | None = None  # seconds until time alone may show it of one; None where it will not
    only_time_can_tell: bool = False  # all of them may be updated already, and only time tells
    # whether it has to be noted since when that is so, because nothing in the pod tells; also when
    # the time is over, for as long as nothing else proves it
    start_clock: bool = False
    # the containers whose kubelet was seen to turn to the newest spec before it stopped them, for
    # as long as nothing in the pod proves that they are started again
    seen_by_kubelet: tuple[str, ...] = ()


NO_UPDATE = Progress()


def progress(
    pod: Pod, now: float, unproved_since: float = UNKNOWN, seen_before: Container[str] = ()
) -> Progress:
    """Follows the update that the pod's record tells of.

    What was noted before: since when only time can tell (`status.settling`), and `seen_by_kubelet`
    of this generation (`status.turned`).
    """
    record = pod.last_update
    if record is None or pod.update_over:
        return NO_UPDATE
    left = {name: ran for name, ran in record.containers.items() if name in pod.spec.images}
    stop, not_done, waits = _stop_seconds(pod, len(left)), dict[str, RanImage](), []
    start_clock, seen = False, []
    for name, ran in left.items():
        times = _Times(now, UNKNOWN, stop)
        if ran.again and not _is_proved(pod, name, ran):
            if _is_turning(pod, name, ran) or name in seen_before:
                seen.append(name)
            if name in seen_before and _is_another(pod, name, ran):
                continue
        if _doubtful(pod, name, ran):
            start_clock |= bool(_missing(pod, name, ran, times._replace(since=_NEVER)))
            times = times._replace(since=now if unproved_since == UNKNOWN else unproved_since)
        missing = _missing(pod, name, ran, times)
        if missing is None or missing > 0:
            not_done[name] = ran
        if missing:
            waits.append(missing)
    only_time_can_tell = 0 < len(not_done) == len(waits)
    wait = min(waits, default=None)
    return Progress(not_done, wait, only_time_can_tell, start_clock, tuple(seen))


def _is_turning(pod: Pod, name: str, ran: RanImage) -> bool:
    """True if the kubelet looks at the newest spec, and the recorded container is still there."""
    seen = pod.tells_generation and not pod.kubelet_is_behind
    return seen and bool(ran.id) and pod.container(name).container_id == ran.id


def _is_another(pod: Pod, name: str, ran: RanImage) -> bool:
    """True if another container than the recorded one runs, or ran last, with the wanted image."""
    status = pod.container(name)
    other = _is_told_of(pod, status) and status.container_id not in (None, "", ran.id)
    return other and name in pod.runs_wanted and not _may_be_between(status, ran)


def _doubtful(pod: Pod, name: str, ran: RanImage) -> bool:
    """True if the kubelet may well be about to stop it, and nothing tells when it last reported.

    Its report may be new although the container has run for long: the node was away. So the time
    counts from the first sync that saw it, and `status.settling` remembers that.
    """
    old = pod.container(name).container_id == ran.id and ran.image != pod.spec.images[name]
    unsure = old or not ran.id or bool(ran.overtaken) or ran.again
    return unsure and not pod.kubelet_wrote


class _Times(NamedTuple):
    """Proof by time: a container is left alone that outlasts `stop` seconds after `since`."""

    now: float
    since: float
    stop: float


def _missing(pod: Pod, name: str, ran: RanImage, times: _Times) -> float | None:
    """Seconds until a container counts as updated: 0 if it is, None if time will not tell."""
    status = pod.container(name)
    if not _is_told_of(pod, status):
        return None
    if _is_proved(pod, name, ran):
        return 0.0
    recorded = bool(status.container_id) and status.container_id == ran.id
    if recorded and ran.image == pod.spec.images[name]:
        if pod.completed and ran.overtaken:
            return None  # the kubelet stopped it for an image that was taken back since
    elif recorded and ran.image and (ran.again or name not in pod.runs_wanted):
        return None  # the kubelet stops it, however long that takes
    elif name in pod.runs_wanted:
        pass  # under the right name, but perhaps not for good
    elif any(runs_image(image, status.image, status.image_id) for image in ran.overtaken):
        # Most likely the one in between; a kubelet that is restarted begins anew to stop it.
        times = times._replace(stop=2 * times.stop)
    if not recorded and status.now.terminated is not None:
        times = times._replace(since=UNKNOWN)  # it came after the recorded one
    return _unproved(pod, status, times)


def _is_told_of(pod: Pod, status: ContainerStatus) -> bool:
    """True if the kubelet has seen the newest spec, and ever started the container."""
    ran = status.container_id or status.now.running or status.now.terminated
    return bool(ran) and not pod.kubelet_is_behind


def _is_proved(pod: Pod, name: str, ran: RanImage) -> bool:
    """True if a container is updated, whatever the time."""
    status = pod.container(name)
    if not _is_told_of(pod, status) or not status.container_id:
        return False
    if status.container_id != ran.id:
        return _is_another(pod, name, ran) and (not ran.again or _came_after(pod, name, ran))
    stopped = pod.completed and bool(ran.overtaken)
    same = ran.image == pod.spec.images[name] and not ran.again
    return same and not stopped and pod.tells_generation


def is_over(pod: Pod) -> bool:
    """True if the update that the pod's record tells of is over, whatever the time."""
    if (record := pod.last_update) is None:
        return True
    images = pod.spec.images
    return all(
        _is_proved(pod, name, ran) for name, ran in record.containers.items() if name in images
    )


def _may_be_between(status: ContainerStatus, ran: RanImage) -> bool:
    """True if it may be an image in between although its name is the wanted one.

    It follows the recorded container directly, another image was asked for first, and that may be
    the same one by another tag. A container that came after an image in between is the last one;
    one that its kubelet has forgotten tells nothing (all containers of the pod began anew).
    """
    before = status.before.terminated
    follows = before is not None and before.container_id in (ran.id, None, "")
    return bool(ran.overtaken) and follows


def _came_after(pod: Pod, name: str, ran: RanImage) -> bool:
    """True if a container that is not the recorded one was started by the newest spec.

    The worker is at most one spec behind, so of two that followed it started the last one. When
    its kubelet starts all containers of a pod anew, it forgets those before, and may well do so
    with the older spec (podWorkers.UpdatePod then replaces the newer one by it).
    """
    before = pod.container(name).before.terminated
    if before is None or not before.container_id or not pod.tells_generation:
        return False
    if before.container_id != ran.id:
        return True
    stopped = before.exit_code in _STOPPED and before.reason != "OOMKilled"
    return stopped and name not in pod.spec.probed_alive


_STOPPED = (0, 137, 143)  # Exit codes of what was asked to stop: by itself, SIGKILL or SIGTERM


def _unproved(pod: Pod, status: ContainerStatus, times: _Times) -> float | None:
    """Seconds until a container has run for so long that the kubelet cannot be about to stop it.

    One that runs no more has to have run for as long; that the kubelet reported its end proves
    nothing.
    """
    now, stop = times.now, times.stop
    known = [past(_asked_at(pod), now), pod.made_at(now)]
    ended = status.now.terminated
    if ended is not None:
        began = max(*known, pod.told(ended.started_at, now), times.since)
        ran = pod.told(ended.finished_at, now) - began
        return 0.0 if ran >= stop else None
    if status.now.running is None:
        return None
    known += [past(status.now.running.started_at, now), past(pod.kubelet_wrote, now), times.since]
    return max(0.0, max(known) + stop - now)


def _asked_at(pod: Pod) -> str:
    """The time of the last update: the record says, or whoever keeps track of writes."""
    return (pod.last_update.at if pod.last_update is not None else "") or pod.spec_written


def _stop_seconds(pod: Pod, containers: int) -> float:
    """Seconds that a kubelet may need until the last of so many containers has stopped.

    It stops them one after the other; the grace period covers the preStop hook.
    """
    return containers * pod.spec.grace_seconds + MARGIN


def ended_by_update(pod: Pod, update: Progress) -> bool:
    """True if a completed pod was ended by its update, and not by its work.

    The kubelet stops a container for another image, and under restartPolicy Never, or after exit
    code 0 under OnFailure, does not start it again once the pull has failed or the kubelet was
    restarted. Native sidecars end with the pod's work, whatever they run.
    """
    return pod.completed and any(name in pod.spec.main_containers for name in update.unfinished)


def started_at(pod: Pod, name: str, now: float) -> float:
    """Returns when a container began its present run, in seconds since the epoch.

    `UNKNOWN` if the container does not run, or its status has no usable time. Not before the write
    of the update that the container was started for, whatever the node's clock says.
    """
    status, record = pod.container(name), pod.last_update
    if status.now.running is None:
        return UNKNOWN
    began = told_start(pod, name, now)
    if record is not None and name in record.containers:
        ran = record.containers[name]
        if status.container_id != ran.id:
            began = max(began, told(_asked_at(pod), now))
    return began


def told_start(pod: Pod, name: str, now: float) -> float:
    """Returns when a container began its present run by the clock of its node, or `UNKNOWN`.

    By the same clock Ready turns.
    """
    running = pod.container(name).now.running
    return UNKNOWN if running is None else pod.told(running.started_at, now)
