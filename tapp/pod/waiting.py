"""Finds the step that a pod that is not Ready waits for, and decides whether the wait is trouble.

Entry point: `waits_of`. A slow kubelet, scheduler or program looks like one that never finishes. So
each wait is shown to the user after `SHOWN` seconds, and counts as trouble after a time that
depends on its kind (`Patience`). A wait that somebody else has to end, such as a readiness gate of
another controller, never becomes trouble.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from tapp.kube.objects import Condition, ContainerStatus, Terminated
from tapp.pod.lost import bound_at
from tapp.pod.pod import Pod
from tapp.words.quoted import short
from tapp.words.ranges import name_list
from tapp.words.times import UNKNOWN, written

# Seconds before a wait is shown: most waits are over by then.
SHOWN = 30.0
# Seconds that attaching the volumes and setting up the network may take.
_SANDBOX_SECONDS = 60.0
_NEVER = float("inf")
# Characters of a kubelet's or registry's message that are quoted.
_MAX_QUOTATION = 300


@dataclass(frozen=True)
class Patience:
    """Seconds after which each kind of wait of a pod counts as trouble."""

    # For a wait for a node; meanwhile a cluster autoscaler may add one.
    unschedulable: float = 300.0
    # For a wait for the start of a container: an image pull, or an init container that runs.
    start: float = 600.0
    # For a wait for a kubelet that has not acknowledged the pod, or has stopped reporting.
    lost: float = 300.0


@dataclass(frozen=True)
class Trouble:
    """The trouble that keeps a pod from being Ready, or a wait that does not count as trouble yet.

    If all fields have their defaults, the pod has neither trouble nor a wait.
    """

    # Sentence about the trouble, without the instance; empty if the pod has no trouble (yet).
    text: str = ""
    # Seconds until the pod has to be checked again; None if time changes nothing.
    wait: float | None = None
    # Sentence about the step that the pod waits for; empty if the wait is trouble, or too short to
    # be shown.
    waiting: str = ""


NO_TROUBLE = Trouble()


def wait_since(text: str, since: float, now: float, patience: float = SHOWN) -> Trouble:
    """Returns a wait of a pod as a `Trouble`, which depends on how long the wait has lasted.

    - In the first `SHOWN` seconds the wait is not shown: the result has no text.
    - After that the wait is shown to the user: `text` is in `Trouble.waiting`.
    - After `patience` seconds the wait counts as trouble: `text` is in `Trouble.text`.

    Args:
        text: the sentence about the wait.
        since: when the wait began, in seconds since the epoch.
        now: the time of this sync, in seconds since the epoch.
        patience: the seconds after which the wait counts as trouble; infinite for never.
    """
    left, hidden = since + patience - now, since + SHOWN - now
    if left <= 0:
        return Trouble(text)
    if hidden > 0:
        return Trouble(wait=min(left, hidden))
    return Trouble(wait=None if left == _NEVER else left, waiting=text)


def combined(found: Iterable[Trouble]) -> Trouble:
    """Returns several troubles and waits as one `Trouble`.

    The result has their texts, joined, and the shortest time after which to check again.
    """
    found = list(found)
    waits = [item.wait for item in found if item.wait is not None]
    texts = [item.text for item in found if item.text]
    waiting = [item.waiting for item in found if item.waiting]
    return Trouble("; ".join(texts), min(waits, default=None), "; ".join(waiting))


def waits_of(pod: Pod, now: float, patience: Patience) -> Trouble:
    """Returns the step that a pod waits for before it is Ready, as a `Trouble`.

    The steps are: a node, the kubelet, volumes and network, the start of the containers, and
    readiness. The first step that is not finished counts. The caller has checked that the pod is
    not Ready, and that `trouble.py` knows no failure of its containers.

    Args:
        pod: the pod.
        now: the time of this sync, in seconds since the epoch.
        patience: the seconds after which each kind of wait counts as trouble.
    """
    scheduled = pod.conditions.get("PodScheduled")
    if not pod.node or (scheduled is not None and scheduled.status == "False"):
        return _wait_for_node(pod, scheduled, now, patience)
    if pod.unacknowledged:
        return wait_for_kubelet(pod, bound_at(pod, now), now, patience)
    if pod.phase == "Pending":
        return _wait_for_sandbox(pod, now) or _wait_for_start(pod, now, patience)
    if pod.phase == "Running" and not pod.silent:
        return _wait_for_restart(pod, now, patience) or _wait_for_readiness(pod, now)
    if pod.phase == "Unknown":
        text = f"the phase of its pod is Unknown: node {short(pod.node)} has stopped reporting"
        return wait_since(text, _not_ready_since(pod, now), now, patience.lost)
    return NO_TROUBLE


def _wait_for_node(
    pod: Pod, condition: Condition | None, now: float, patience: Patience
) -> Trouble:
    """Returns the wait for a scheduler, the removal of scheduling gates, or a node, as a `Trouble`.

    Args:
        pod: the pod.
        condition: the pod's condition PodScheduled; None if no scheduler has looked at the pod.
        now: the time of this sync, in seconds since the epoch.
        patience: the seconds after which each kind of wait counts as trouble.
    """
    if condition is None:
        created = pod.created_at(now)
        text = f"no scheduler has looked at its pod{_since_text(created)} (spec.schedulerName: "
        return wait_since(f"{text}{short(pod.spec.scheduler)})", created, now, _NEVER)
    if condition.status != "False":
        return NO_TROUBLE
    if condition.reason == "SchedulingGated":
        names = name_list([*pod.spec.scheduling_gates])
        which = f"{names and ': '}{names}"
        text = f"its pod waits until other controllers remove its scheduling gates{which}"
        return wait_since(text, _changed_at(pod, condition, now), now, _NEVER)
    text = f"its pod has no node yet: {short(condition.reason or 'not scheduled')}"
    quote = f" ({quotation(condition.message)})" if condition.message else ""
    return wait_since(text + quote, _changed_at(pod, condition, now), now, patience.unschedulable)


def wait_for_kubelet(pod: Pod, bound: float, now: float, patience: Patience) -> Trouble:
    """Returns the wait for the kubelet to acknowledge a pod bound to its node, as a `Trouble`.

    Args:
        pod: the pod.
        bound: when the pod was bound to the node, in seconds since the epoch.
        now: the time of this sync, in seconds since the epoch.
        patience: after its seconds `lost` the wait counts as trouble.
    """
    text = (
        f"its pod was bound to node {short(pod.node)}{_at_text(bound)}, and the kubelet there has "
        "not acknowledged it: the node may be down"
    )
    return wait_since(text, bound, now, patience.lost)


def _wait_for_sandbox(pod: Pod, now: float) -> Trouble | None:
    """Returns the wait for the pod's volumes and network, as a `Trouble`.

    Returns None if volumes and network are ready, or if the pod's conditions do not show this wait.
    """
    condition = pod.conditions.get("PodReadyToStartContainers")
    if condition is None or condition.status != "False":
        return None
    bound = bound_at(pod, now)
    text = (
        f"volumes or network of its pod are not ready on node {short(pod.node)}"
        f"{_since_text(bound)}; the pod's events say why"
    )
    return wait_since(text, bound, now, _SANDBOX_SECONDS)


def _wait_for_start(pod: Pod, now: float, patience: Patience) -> Trouble:
    """Returns the wait for the start of the pod's next container, as a `Trouble`.

    An init container has to succeed as well. The first container that has not come that far counts.
    Returns `NO_TROUBLE` if all of them have.

    Args:
        pod: the pod.
        now: the time of this sync, in seconds since the epoch.
        patience: after its seconds `start` the wait counts as trouble.
    """
    began = max(bound_at(pod, now), _sandbox_since(pod, now))
    end = ""  # The end of the init container that has ended last
    # Init containers are first in the list, in the order in which they start.
    for status in pod.containers:
        name, running = status.name or "", status.now.running
        is_init = name not in pod.spec.main_containers
        if running is not None:
            since = pod.plausible_time(running.started_at, now, began)
            if is_init and name not in pod.spec.running_containers:
                text = f"init container {short(name)} runs{_since_text(since)} and has not ended"
                return wait_since(text, since, now, patience.start)
            if is_init and status.started is False:
                text = (
                    f"init container {short(name)} runs{_since_text(since)}, and its startup probe "
                )
                return wait_since(f"{text}has not passed", since, now, patience.start)
            began = max(began, since)
        elif (ended := status.now.terminated) is not None:
            at = pod.plausible_time(ended.finished_at, now)
            began = max(began, at)
            if is_init:
                end = f"init container {short(name)} has ended{_code_text(ended)}{_at_text(at)}"
                again = pod.spec.starts_again(name, ended.exit_code)
                if again or ended.exit_code != 0:
                    rest = "has not started it again" if again else "has not ended its pod"
                    text = f"{end}, and the kubelet on node {short(pod.node)} {rest}"
                    return wait_since(f"{text}: the node may be down", began, now, patience.start)
        else:
            kind = "init container" if is_init else "container"
            image = short(pod.spec.images.get(name, ""))
            # `trouble.py` reports the failures that it knows. A kubelet may have others.
            reason = (
                _failure(status)
                or f"its image {image} is still being pulled, or it is being created"
            )
            # Nothing in a Pending pod tells a long image pull from a node that has gone down.
            if end:
                reason = f"{end}; {reason}, or node {short(pod.node)} is down"
            text = f"{kind} {short(name)} has not started{_since_text(began)}: {reason}"
            return wait_since(text, began, now, patience.start)
    if pod.containers:
        return NO_TROUBLE
    text = f"no container of its pod has been created{_since_text(began)}"
    return wait_since(text, began, now, patience.start)


def _sandbox_since(pod: Pod, now: float) -> float:
    """Returns when the pod's volumes and network became ready, in seconds since the epoch.

    Returns `UNKNOWN` if the pod's conditions do not show that.
    """
    condition = pod.conditions.get("PodReadyToStartContainers")
    return UNKNOWN if condition is None else pod.plausible_time(condition.last_transition_time, now)


def _code_text(end: Terminated) -> str:
    """Returns the exit code as the end of a clause; empty if the container's end has none."""
    return "" if end.exit_code is None else f" with exit code {end.exit_code}"


def _failure(status: ContainerStatus) -> str:
    """Returns reason and message of a failed start of a container.

    Returns an empty string if the container does not wait, or waits without a failure. `status` is
    the status of the container.
    """
    waiting = status.now.waiting
    if waiting is None or waiting.reason in {None, "", *_NORMAL_REASONS}:
        return ""
    return quotation(": ".join(part for part in (waiting.reason, waiting.message) if part))


# Reasons of waiting containers that have not failed.
_NORMAL_REASONS = ("ContainerCreating", "PodInitializing")


def _wait_for_restart(pod: Pod, now: float, patience: Patience) -> Trouble | None:
    """Returns the wait for the kubelet to act on a container that has ended, as a `Trouble`.

    The kubelet has to restart the container, or to complete the pod. It may hang, or pull the image
    again. Returns None if the kubelet has nothing of that to do. The caller has checked that the
    pod's phase is Running.

    Args:
        pod: the pod.
        now: the time of this sync, in seconds since the epoch.
        patience: after its seconds `start` the wait counts as trouble.
    """
    spec = pod.spec
    ended = [
        (status, end)
        for status in pod.containers
        if (status.name or "") in spec.running_containers
        and status.now.running is None
        and (end := status.now.terminated or status.before.terminated) is not None
    ]
    for status, end in ended:
        again = spec.starts_again(status.name or "", end.exit_code)
        # `ended_for_good` reports a container that has ended while others go on.
        if not again and len(ended) < len(spec.running_containers):
            continue
        at = pod.plausible_time(end.finished_at, now)
        rest = "the kubelet has not started it again" if again else "its pod has not completed"
        failure = _failure(status)
        text = (
            f"container {short(status.name or '')} has ended{_code_text(end)}{_at_text(at)}, "
            f"and {rest}{failure and ': '}{failure}"
        )
        since = _not_ready_since(pod, now) if at == UNKNOWN else at
        return wait_since(text, since, now, patience.start)
    return None


def _wait_for_readiness(pod: Pod, now: float) -> Trouble:
    """Returns the wait of a running pod for its probes and readiness gates, as a `Trouble`.

    Returns `NO_TROUBLE` if the pod does not show what keeps it from being Ready.
    """
    known = pod.conditions
    found = [
        f"container {short(status.name or '')}: its "
        f"{'readiness' if status.started else 'startup'} probe has not passed"
        for status in pod.containers
        if status.now.running is not None and status.ready is False
    ]
    for gate in pod.spec.gates:
        condition = known.get(gate)
        if condition is None or condition.status != "True":
            found.append(f"its readiness gate {short(gate)} {_gate_state(condition)}")
    ready = known.get("Ready")
    if ready is None:
        found.append("its kubelet has not written the condition Ready")
    elif not found and (reason := ready.reason or ready.message):
        found.append(quotation(reason))
    if not found:
        return NO_TROUBLE
    since = _not_ready_since(pod, now)
    text = f"its pod is not Ready{_since_text(since)}: {'; '.join(found)}"
    return wait_since(text, since, now, _NEVER)


def _gate_state(condition: Condition | None) -> str:
    """Returns the end of a sentence about a readiness gate: why the gate is not True.

    `condition` is the condition of the gate; None if nobody has set it yet.
    """
    if condition is None:
        return "is unmet: no controller has set its condition yet"
    text = ": ".join(part for part in (condition.reason, condition.message) if part)
    return f"is unmet: {quotation(text) or 'its condition is ' + short(str(condition.status))}"


def ended_for_good(pod: Pod, spared: Iterable[str]) -> Trouble:
    """Returns the trouble of a pod in which some containers have ended for good and others go on.

    Such a pod never becomes Ready again. A container that has failed is trouble. A container that
    has succeeded is only shown as a wait, because it may be meant to end first. `spared` are the
    names of the containers that an update is replacing; they are left out.
    """
    spec, ended, others = pod.spec, list[tuple[ContainerStatus, int]](), list[str]()
    if pod.phase not in {"Running", "Pending"}:
        return NO_TROUBLE
    for name in spec.main_containers:
        status = pod.container(name)
        end = status.now.terminated
        if end is None:
            others.append(name)
        elif (code := end.exit_code) is not None and not spec.starts_again(name, code):
            ended += [(status, code)] if name not in spared else []
    if not ended or not others:
        return NO_TROUBLE
    plural = "s"[: len(others) != 1]
    runs = "run" if plural else "runs"
    going = f"container{plural} {name_list(others)} still {runs}, and its pod is not Ready"
    text = f"{'; '.join(_end_text(pod, status, code) for status, code in ended)}; {going}"
    if any(code for _, code in ended):
        return Trouble(text)
    return Trouble(waiting=text)


def _end_text(pod: Pod, status: ContainerStatus, code: int) -> str:
    """Returns the beginning of a sentence: how a container has ended and why it does not restart.

    Args:
        pod: the pod.
        status: the status of the container.
        code: its exit code.
    """
    name, end = status.name or "", status.now.terminated
    reason = (
        end.reason if end is not None and end.reason not in {None, "Error", "Completed"} else ""
    )
    at = UNKNOWN if end is None else pod.plausible_time(end.finished_at, _NEVER)
    own = pod.spec.own_restarts.get(name)
    policy = pod.spec.restart_policy if own is None else own.policy
    return (
        f"container {short(name)} has ended with exit code {code}"
        f"{f' ({short(reason)})' if reason else ''}{_at_text(at)}, and does not start again "
        f"(restartPolicy {short(policy)})"
    )


def _not_ready_since(pod: Pod, now: float) -> float:
    """Returns when the condition Ready last changed, in seconds since the epoch.

    Returns when the pod was created if that time is unknown.
    """
    return pod.ready_at(now, pod.created_at(now))


def _changed_at(pod: Pod, condition: Condition, now: float) -> float:
    """Returns when a condition last changed, or when the pod was created if that is unknown."""
    return pod.plausible_time(condition.last_transition_time, now, pod.created_at(now))


def _since_text(at: float) -> str:
    """Returns " since TIME", or an empty string if the time is unknown."""
    return "" if at == UNKNOWN else f" since {written(at)}"


def _at_text(at: float) -> str:
    """Returns " at TIME", or an empty string if the time is unknown."""
    return "" if at == UNKNOWN else f" at {written(at)}"


def quotation(text: str | None) -> str:
    """Returns a text on one line, cut to `_MAX_QUOTATION` characters; empty for None."""
    return short(" ".join((text or "").split()), _MAX_QUOTATION)
