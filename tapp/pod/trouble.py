"""Reports the trouble that keeps a pod from being Ready, as a sentence for the user.

Entry point: `trouble`. It reads only the pod's status; a user sees the pod's Events with `kubectl
describe`. Failures that usually end without help count as trouble only after some time
(`tapp/pod/waiting.py`).
"""

import re
from collections.abc import Collection

from tapp.kube.objects import ContainerStatus, Waiting
from tapp.pod.inplace import NO_UPDATE, Progress, ended_by_update
from tapp.pod.pod import Pod
from tapp.pod.waiting import (
    NO_TROUBLE,
    SHOWN,
    Patience,
    Trouble,
    combined,
    ended_for_good,
    quotation,
    wait_for_kubelet,
    wait_since,
    waits_of,
)
from tapp.words.quoted import quoted, short
from tapp.words.times import UNKNOWN, written

# Seconds after which most unexpected states of a TApp count as trouble.
TROUBLE_AFTER = SHOWN
# The kubelet's longest back-off before it restarts a container that has crashed, in seconds.
LONGEST_BACK_OFF = 300.0
# Seconds. A shorter pause is no back-off: the kubelet's first restart comes at once, the second
# after 10 s.
_SHORTEST_BACK_OFF = 8.0
_CRASH_LOOP = "CrashLoopBackOff"
_PATIENCE = Patience()

# Reasons of a waiting container whose image cannot be pulled (pkg/kubelet/images/types.go).
_PULL_REASONS = ("ImagePullBackOff", "ErrImagePull", "InvalidImageName", "ErrImageNeverPull",
          "ImageInspectError", "RegistryUnavailable", "SignatureValidationFailed")  # fmt: skip
# Reasons of a waiting container that cannot be created or started (pkg/kubelet/kuberuntime,
# pkg/kubelet/container/sync_result.go).
_START_REASONS = (
    *("CreateContainerConfigError", "CreateContainerError", "RunContainerError"),
    *("PostStartHookError", "PreCreateHookError", "PreStartHookError"),
)
# The kubelet's prefix of a registry's message.
_BACK_OFF_PREFIX = re.compile(r'Back-off pulling image "[^"]*"(: )?')


def trouble(pod: Pod, update: Progress, now: float, patience: Patience = _PATIENCE) -> Trouble:
    """Returns the trouble of a pod, or the wait for the next step of its start.

    Returns `NO_TROUBLE` if the pod is Ready and has not crashed recently. The caller has checked
    that the pod is not being deleted.

    Args:
        pod: the pod.
        update: the progress of its last update in place.
        now: the time of this sync, in seconds since the epoch.
        patience: the seconds after which each kind of wait counts as trouble.
    """
    if pod.completed:
        return _trouble_of_completed(pod, update)
    # A Ready pod may still crash again and again, and be Ready in between.
    if (
        pod.ready is True and not (pod.restarts and _became_ready_recently(pod, now))
    ) or _restarts_whole_pod(pod):
        return NO_TROUBLE
    found = [_trouble_of_container(pod, status, update, now) for status in pod.containers]
    if not pod.ready:
        found += [ended_for_good(pod, update.unfinished)]
        # A pod whose update is unfinished waits for that update.
        if not (update.unfinished or any(item.text for item in found)):
            found += [waits_of(pod, now, patience)]
    return combined(found)


def silence(pod: Pod, since: float, now: float, *, moved: bool, limit: float) -> Trouble:
    """Returns the trouble of a pod whose node has stopped reporting.

    Args:
        pod: the pod.
        since: since when the node has not reported, in seconds since the epoch; `UNKNOWN` if the
            pod does not show the time.
        now: the time of this sync, in seconds since the epoch.
        moved: True if this service starts the instance on another node (`forceDeletePod`) after
            `limit` seconds of silence. The silence is then no trouble for a user.
        limit: the seconds of silence after which the node counts as lost.
    """
    if pod.unacknowledged:
        found = wait_for_kubelet(pod, since, now, Patience(lost=limit))
    else:
        when = f" since {written(since)}" if since != UNKNOWN else ""
        text = (
            f"node {short(pod.node or '?')} has not reported{when}: its pod may still run, and "
            "stays until the node reports again, or its Node object is deleted"
        )
        found = wait_since(text, since, now)
    if not moved:
        return found
    waiting = found.text or found.waiting
    return Trouble(wait=found.wait, waiting=waiting if pod.unacknowledged else "")


def _restarts_whole_pod(pod: Pod) -> bool:
    """Returns True if the kubelet restarts all containers of the pod because of a restart rule.

    The kubelet does so without a back-off. The containers that it stops for the restart look as if
    they had failed.
    """
    ends = [(each.name or "", each.now.terminated) for each in pod.containers]
    return any(end is not None and pod.spec.starts_all(name, end.exit_code) for name, end in ends)


def _became_ready_recently(pod: Pod, now: float) -> bool:
    """Returns True if the pod became Ready so recently that it may still crash again.

    "Recently" means within the longest back-off of a kubelet (`LONGEST_BACK_OFF`).
    """
    since = pod.ready_at(now)
    return since == UNKNOWN or now - since < LONGEST_BACK_OFF


def _trouble_of_completed(pod: Pod, update: Progress) -> Trouble:
    """Returns the trouble of a completed pod: why the pod has ended.

    `update` is the progress of its last update in place.
    """
    quote = f" ({quotation(pod.message)})" if pod.message else ""
    if ended_by_update(pod, update):
        name = next(name for name in update.unfinished if name in pod.spec.main_containers)
        image = short(pod.spec.images[name])
        text = f"container {short(name)} failed to start image {image}"
        return Trouble(f"its pod has ended during its update{quote}: {text}")
    if pod.refused_by_kubelet:
        return Trouble(f"the kubelet refused its pod{quote}")
    if pod.disruption:
        return Trouble(f"its pod was disrupted: {short(pod.disruption)}{quote}")
    return Trouble(f"its pod has {pod.phase.lower()}{quote}")


def _trouble_of_container(
    pod: Pod, status: ContainerStatus, update: Progress, now: float
) -> Trouble:
    """Returns the trouble of a container that has not started, or crashes again and again.

    Args:
        pod: the pod.
        status: the status of the container.
        update: the progress of the pod's last update in place.
        now: the time of this sync, in seconds since the epoch.
    """
    known = status.name or ""
    name, image = short(known), short(pod.spec.images.get(known, ""))
    waiting, ended = status.now.waiting, status.now.terminated
    replaced = update.unfinished.get(known)
    if waiting is not None and waiting.reason in _PULL_REASONS:
        return Trouble(f"container {name}: {_pull_failure(waiting, image)}")
    if waiting is not None and waiting.reason in _START_REASONS:
        quote = f": {quotation(waiting.message)}" if waiting.message else ""
        return Trouble(f"container {name}: {waiting.reason}{quote}")
    if replaced is not None and status.now.running is None:
        # The kubelet stopped this container for another image. A back-off, under whichever reason,
        # shows that a start has failed; otherwise the container may be about to start.
        text = (
            f"container {name} was stopped for an update to image {image} and has not started since"
        )
        if waiting is not None and waiting.reason == _CRASH_LOOP:
            return Trouble(text)
        stopped = ended or status.before.terminated
        at = UNKNOWN if stopped is None else pod.plausible_time(stopped.finished_at, now)
        return wait_since(text, at, now)
    return _crash_loop(pod, status, now)


def _pull_failure(waiting: Waiting, image: str) -> str:
    """Returns one sentence for an image that cannot be pulled.

    The kubelet's reasons alternate between failed pulls and back-offs; the sentence stays the same.

    Args:
        waiting: the state of the container; the caller has checked that its reason is a failed
            pull.
        image: the image, cut to a length for a sentence.
    """
    if waiting.reason == "InvalidImageName":
        return f"{quoted(image)} is not an image name (InvalidImageName)"
    if waiting.reason == "ErrImageNeverPull":
        return f"image {image} is not on the node, and must not be pulled (ErrImageNeverPull)"
    quote = _pull_error(waiting)
    reason = "ImagePullBackOff" if waiting.reason == "ErrImagePull" else waiting.reason
    return f"image {image} cannot be pulled ({reason})" + (f": {quote}" if quote else "")


def _pull_error(waiting: Waiting) -> str:
    """Returns the registry's message, without the text that the kubelet puts in front of it.

    `waiting` is the state of a container whose image cannot be pulled.
    """
    return quotation(_BACK_OFF_PREFIX.sub("", waiting.message or "").removeprefix("ErrImagePull: "))


def image_problem(pod: Pod) -> str:
    """Returns reason and message of a failed image pull, or an empty string if no pull has failed.

    Images of image volumes count, too: the container that mounts such a volume waits with the same
    reasons.
    """
    for status in pod.containers:
        waiting = status.now.waiting
        if waiting is not None and waiting.reason in _PULL_REASONS:
            return f"{waiting.reason}: {_pull_error(waiting)}"
    return ""


def has_own_trouble(pod: Pod, own: str, wanted: Collection[str], now: float) -> bool:
    """Returns True if a puller pod fails for another reason than an image that it has to pull.

    A puller is a pod of this service that pulls images before updates; it mounts them as volumes.
    The kubelet creates the sandbox, pulls the images of the volumes, and pulls the container's
    image last (kuberuntime_manager.go, SyncPod). So a failure of the container or of its image
    means that all wanted images have been pulled.

    Args:
        pod: the puller pod.
        own: the image of the puller's own container.
        wanted: the images that it has to pull.
        now: the time of this sync, in seconds since the epoch.
    """
    started = pod.conditions.get("PodReadyToStartContainers")
    if started is not None and started.status == "False" and trouble(pod, NO_UPDATE, now).text:
        return True
    for status in pod.containers:
        waiting = status.now.waiting
        if waiting is not None and waiting.reason in _START_REASONS:
            return True
        if waiting is not None and waiting.reason in _PULL_REASONS and own not in wanted:
            # One image name may be the prefix of another: the longest one in the message is meant.
            named = [image for image in (own, *wanted) if image in (waiting.message or "")]
            return max(named, key=len, default="") == own
    return False


def _crash_loop(pod: Pod, status: ContainerStatus, now: float) -> Trouble:
    """Returns the trouble of a container that crashes again and again, or `NO_TROUBLE`.

    During its back-off a container's state is `terminated` most of the time, and waiting with
    `CrashLoopBackOff` only for moments. A container that runs again counts as healthy after it has
    run for as long as its last back-off took. `status` is the status of the container.
    """
    name, count, running = status.name or "", status.restart_count or 0, status.now.running
    waiting = status.now.waiting is not None and status.now.waiting.reason == _CRASH_LOOP
    last = status.now.terminated or status.before.terminated
    wait = None
    if running is not None:
        began = pod.plausible_time(running.started_at, now)
        ended = UNKNOWN if last is None else pod.plausible_time(last.finished_at, now)
        record = pod.last_update.containers.get(name) if pod.last_update is not None else None
        if record is not None and last is not None and last.container_id == record.id:
            # The container before was stopped for an update.
            return NO_TROUBLE
        paused = began - ended if UNKNOWN not in (began, ended) else 0.0
        wait = began + min(paused, LONGEST_BACK_OFF) - now
        if not count or paused < _SHORTEST_BACK_OFF or wait <= 0:
            return NO_TROUBLE
    elif status.now.terminated is not None:
        if not count or not pod.spec.starts_again(name, status.now.terminated.exit_code):
            return NO_TROUBLE
    elif not waiting:
        return NO_TROUBLE
    code = f" with exit code {last.exit_code}" if last is not None else ""
    reason = f" ({last.reason})" if last is not None and last.reason == "OOMKilled" else ""
    at = pod.plausible_time(last.finished_at, now) if last is not None else UNKNOWN
    when = f", last at {written(at)}" if at != UNKNOWN else ""
    often = f", restarted {count} time{'s'[: count != 1]}" if count else ""
    text = f"container {short(name)} keeps crashing (CrashLoopBackOff): it ends{code}{reason}"
    text += f"{often}{when}"
    return Trouble(text, wait)
