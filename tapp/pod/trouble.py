"""Trouble of an instance, in the words of its pod's own status.

A sentence for whatever will not get well by waiting alone, and only what the status says: what only
the events know is left to `kubectl describe`. Some is trouble only when it lasts (`TROUBLE_AFTER`).
"""

import re
from collections.abc import Collection

from tapp.kube.objects import ContainerStatus, Waiting
from tapp.pod.inplace import NO_UPDATE, Progress, ended_by_update
from tapp.pod.pod import Pod
from tapp.pod.waiting import (
    NONE,
    SHOWN,
    Patience,
    Trouble,
    after,
    ended_for_good,
    joined,
    quotation,
    unacknowledged,
    waits_of,
)
from tapp.words.quoted import quoted, short
from tapp.words.times import UNKNOWN, written

TROUBLE_AFTER = SHOWN
LONG_WAIT = 300.0  # The kubelet's longest pause before a crashed container is started again
_SHORT_WAIT = 8.0  # A shorter pause is no back-off: the first restart is at once, the next in 10 s
_LOOP = "CrashLoopBackOff"
_PATIENCE = Patience()

_PULLS = ("ImagePullBackOff", "ErrImagePull", "InvalidImageName", "ErrImageNeverPull",
          "ImageInspectError", "RegistryUnavailable", "SignatureValidationFailed")  # fmt: skip
_STARTS = (
    *("CreateContainerConfigError", "CreateContainerError", "RunContainerError"),
    *("PostStartHookError", "PreCreateHookError", "PreStartHookError"),
)
_BACK_OFF = re.compile(r'Back-off pulling image "[^"]*"(: )?')


def trouble(pod: Pod, update: Progress, now: float, patience: Patience = _PATIENCE) -> Trouble:
    """Finds what keeps a pod from serving, or what it waits for; it is not Terminating."""
    if pod.completed:
        return _ended(pod, update)
    if (pod.ready is True and not (pod.restarts and _recent(pod, now))) or _begins_anew(pod):
        return NONE
    found = [_container(pod, status, update, now) for status in pod.containers]
    if not pod.ready:
        found += [ended_for_good(pod, update.unfinished)]
        if not (update.unfinished or any(item.text for item in found)):
            found += [waits_of(pod, now, patience)]
    return joined(found)


def silence(pod: Pod, since: float, now: float, *, moved: bool, limit: float) -> Trouble:
    """A node that does not report; no trouble if the pod's instance is to start elsewhere.

    `moved`: this service starts instances of lost nodes elsewhere (`forceDeletePod`), after `limit`
    seconds.
    """
    if pod.unacknowledged:
        found = unacknowledged(pod, since, now, Patience(lost=limit))
    else:
        when = f" since {written(since)}" if since != UNKNOWN else ""
        text = (
            f"nothing is heard of node {short(pod.node or '?')}{when}: its pod may run or not, and "
            "it stays until the node is back, or its Node object is deleted"
        )
        found = after(text, since, now)
    if not moved:
        return found
    waiting = found.text or found.waiting
    return Trouble(wait=found.wait, waiting=waiting if pod.unacknowledged else "")


def _begins_anew(pod: Pod) -> bool:
    """True if the kubelet starts all of a pod anew, which it does at once and without a back-off.

    The containers that it ends for that look as if they had failed by themselves.
    """
    ends = [(each.name or "", each.now.terminated) for each in pod.containers]
    return any(end is not None and pod.spec.starts_all(name, end.exit_code) for name, end in ends)


def _recent(pod: Pod, now: float) -> bool:
    """True if a pod has become Ready within the longest pause between two crashes."""
    since = pod.told(pod.ready_since, now)
    return since == UNKNOWN or now - since < LONG_WAIT


def _ended(pod: Pod, update: Progress) -> Trouble:
    quote = f" ({quotation(pod.message)})" if pod.message else ""
    if ended_by_update(pod, update):
        name = next(name for name in update.unfinished if name in pod.spec.main_containers)
        image = short(pod.spec.images[name])
        text = f"container {short(name)} did not come to run {image}"
        return Trouble(f"its update ended it{quote}: {text}")
    if pod.refused_by_kubelet:
        return Trouble(f"the kubelet refused its pod{quote}")
    if pod.disruption:
        return Trouble(f"its pod was disrupted: {short(pod.disruption)}{quote}")
    return Trouble(f"its pod has {pod.phase.lower()}{quote}")


def _container(pod: Pod, status: ContainerStatus, update: Progress, now: float) -> Trouble:
    known = status.name or ""
    name, image = short(known), short(pod.spec.images.get(known, ""))
    waiting, ended = status.now.waiting, status.now.terminated
    replaced = update.unfinished.get(known)
    if waiting is not None and waiting.reason in _PULLS:
        return Trouble(f"container {name}: {_pull(waiting, image)}")
    if waiting is not None and waiting.reason in _STARTS:
        quote = f": {quotation(waiting.message)}" if waiting.message else ""
        return Trouble(f"container {name}: {waiting.reason}{quote}")
    if replaced is not None and status.now.running is None:
        # Stopped for another image, which does not start. A back-off follows only a failed attempt,
        # whatever it is called; a container that has ended may be about to be started.
        text = f"container {name} was stopped for image {image}, which has not started since"
        if waiting is not None and waiting.reason == _LOOP:
            return Trouble(text)
        stopped = ended or status.before.terminated
        at = UNKNOWN if stopped is None else pod.told(stopped.finished_at, now)
        return after(text, at, now)
    return _crashes(pod, status, now)


def _pull(waiting: Waiting, image: str) -> str:
    """One sentence for the reasons that take turns while an image cannot be had."""
    if waiting.reason == "InvalidImageName":
        return f"InvalidImageName: {quoted(image)} is no image name"
    if waiting.reason == "ErrImageNeverPull":
        return f"ErrImageNeverPull: image {image} is not on the node, and must not be pulled"
    quote = _pull_error(waiting)
    reason = "ImagePullBackOff" if waiting.reason == "ErrImagePull" else waiting.reason
    return f"{reason}: image {image} cannot be pulled" + (f": {quote}" if quote else "")


def _pull_error(waiting: Waiting) -> str:
    """The registry's words, without the kubelet's."""
    return quotation(_BACK_OFF.sub("", waiting.message or "").removeprefix("ErrImagePull: "))


def no_image(pod: Pod) -> str:
    """The words on an image that a pod cannot start without, "" where it has all (yet).

    Of a volume that is an image, too: its container waits for the same reasons.
    """
    for status in pod.containers:
        waiting = status.now.waiting
        if waiting is not None and waiting.reason in _PULLS:
            return f"{waiting.reason}: {_pull_error(waiting)}"
    return ""


def has_own_trouble(pod: Pod, own: str, wanted: Collection[str], now: float) -> bool:
    """Returns True if a puller does not start, and not for want of an image that it is to pull.

    `own` is the image of its container, `wanted` are those of its volumes. The kubelet first makes
    the sandbox, then pulls the images of volumes, and only then the container's own image
    (kuberuntime_manager.go, SyncPod). So trouble with that image or with the container comes after
    all pulls.
    """
    started = pod.conditions.get("PodReadyToStartContainers")
    if started is not None and started.status == "False" and trouble(pod, NO_UPDATE, now).text:
        return True
    for status in pod.containers:
        waiting = status.now.waiting
        if waiting is not None and waiting.reason in _STARTS:
            return True
        if waiting is not None and waiting.reason in _PULLS and own not in wanted:
            # One name may be the beginning of another: the longest one is meant.
            named = [image for image in (own, *wanted) if image in (waiting.message or "")]
            return max(named, key=len, default="") == own
    return False


def _crashes(pod: Pod, status: ContainerStatus, now: float) -> Trouble:
    """A container that ends again and again: waiting for its next start, or just started anew.

    In its back-off a kubelet shows `terminated` for most of the time, and only now and then
    `CrashLoopBackOff`. A container that runs again is trusted when it has run for as long as it was
    kept waiting before.
    """
    name, count, running = status.name or "", status.restart_count or 0, status.now.running
    waiting = status.now.waiting is not None and status.now.waiting.reason == _LOOP
    last = status.now.terminated or status.before.terminated
    wait = None
    if running is not None:
        began = pod.told(running.started_at, now)
        ended = UNKNOWN if last is None else pod.told(last.finished_at, now)
        record = pod.last_update.containers.get(name) if pod.last_update is not None else None
        if record is not None and last is not None and last.container_id == record.id:
            return NONE  # stopped for an update, not by itself
        paused = began - ended if UNKNOWN not in (began, ended) else 0.0
        wait = began + min(paused, LONG_WAIT) - now
        if not count or paused < _SHORT_WAIT or wait <= 0:
            return NONE
    elif status.now.terminated is not None:
        if not count or not pod.spec.starts_again(name, status.now.terminated.exit_code):
            return NONE
    elif not waiting:
        return NONE
    code = f" with exit code {last.exit_code}" if last is not None else ""
    reason = f" ({last.reason})" if last is not None and last.reason == "OOMKilled" else ""
    at = pod.told(last.finished_at, now) if last is not None else UNKNOWN
    when = f", last at {written(at)}" if at != UNKNOWN else ""
    often = f", restarted {count} time{'s'[: count != 1]}" if count else ""
    text = f"container {short(name)}: CrashLoopBackOff: it ends{code}{reason}{often}{when}"
    return Trouble(text, wait)
