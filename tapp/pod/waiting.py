"""Waits of a pod: what it needs before it can serve, since when, and for how long that is usual.

A kubelet, a scheduler or a program that takes long looks the same as one that never ends. So each
wait is shown after `SHOWN` seconds, and is trouble after a time that its kind usually takes no
longer than (`Patience`). A wait that is for somebody else to end, such as a readiness gate of
another controller or a scheduler, is shown and never becomes trouble.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from tapp.kube.objects import Condition, ContainerStatus
from tapp.pod.lost import bound_at
from tapp.pod.pod import Pod
from tapp.words.quoted import short
from tapp.words.ranges import name_list
from tapp.words.times import UNKNOWN, written

SHOWN = 30.0  # Seconds that a pod may take for what usually takes none
_SANDBOX = 60.0  # Seconds in which volumes are attached and the network is set up
_NEVER = float("inf")
_LONGEST = 300  # Characters that are quoted of a kubelet or a registry


@dataclass(frozen=True)
class Patience:
    """Seconds after which a wait is trouble; the operator's settings."""

    unschedulable: float = 300.0  # without a node: a cluster autoscaler may be adding one
    start: float = 600.0  # on a node, until the containers have started: images, init containers
    lost: float = 300.0  # on a node whose kubelet does not acknowledge the pod


@dataclass(frozen=True)
class Trouble:
    """The trouble of one instance, or what its pod waits for."""

    text: str = ""  # a sentence without its instance, "" if nothing is wrong (yet)
    wait: float | None = None  # seconds until to look again, None where time changes nothing
    waiting: str = ""  # a sentence on what the pod waits for, "" if it is trouble, or is too young


NONE = Trouble()


def after(text: str, since: float, now: float, patience: float = SHOWN) -> Trouble:
    """Returns a wait: trouble after `patience` seconds, and shown after `SHOWN` seconds."""
    left, hidden = since + patience - now, since + SHOWN - now
    if left <= 0:
        return Trouble(text)
    if hidden > 0:
        return Trouble(wait=min(left, hidden))
    return Trouble(wait=None if left == _NEVER else left, waiting=text)


def joined(found: Iterable[Trouble]) -> Trouble:
    """Returns all of these as one."""
    found = list(found)
    waits = [item.wait for item in found if item.wait is not None]
    texts = [item.text for item in found if item.text]
    waiting = [item.waiting for item in found if item.waiting]
    return Trouble("; ".join(texts), min(waits, default=None), "; ".join(waiting))


def waits_of(pod: Pod, now: float, patience: Patience) -> Trouble:
    """Returns what a pod that is not Ready waits for, as far as no container has failed.

    The first of these that applies: a node, the kubelet, volumes and network, the start of the
    containers, readiness.
    """
    scheduled = pod.conditions.get("PodScheduled")
    if not pod.node or (scheduled is not None and scheduled.status == "False"):
        return _node(pod, scheduled, now, patience)
    if pod.unacknowledged:
        return unacknowledged(pod, bound_at(pod, now), now, patience)
    if pod.phase == "Pending":
        return _sandbox(pod, now) or _start(pod, now, patience)
    return _readiness(pod, now) if pod.phase == "Running" and not pod.silent else NONE


def _node(pod: Pod, condition: Condition | None, now: float, patience: Patience) -> Trouble:
    if condition is None:
        made = pod.made_at(now)
        text = f"no scheduler has looked at its pod{_since(made)} (spec.schedulerName: "
        return after(f"{text}{short(pod.spec.scheduler)})", made, now, _NEVER)
    if condition.status != "False":
        return NONE
    if condition.reason == "SchedulingGated":
        names = name_list([*pod.spec.scheduling_gates])
        text = f"its pod waits for others to remove its scheduling gates{names and ': '}{names}"
        return after(text, _turned(pod, condition, now), now, _NEVER)
    text = f"no node for its pod: {short(condition.reason or 'not scheduled')}"
    quote = f" ({quotation(condition.message)})" if condition.message else ""
    return after(text + quote, _turned(pod, condition, now), now, patience.unschedulable)


def unacknowledged(pod: Pod, bound: float, now: float, patience: Patience) -> Trouble:
    """Returns the wait of a pod for the kubelet of the node that the pod was bound to then."""
    text = (
        f"its pod was bound to node {short(pod.node)}{_at(bound)}, and the kubelet there has not "
        "acknowledged it: the node may be down"
    )
    return after(text, bound, now, patience.lost)


def _sandbox(pod: Pod, now: float) -> Trouble | None:
    """On a node, and not even its sandbox is up: volumes or the network are missing."""
    condition = pod.conditions.get("PodReadyToStartContainers")
    if condition is None or condition.status != "False":
        return None
    bound = bound_at(pod, now)
    text = (
        f"volumes or network of its pod are not ready on node {short(pod.node)}{_since(bound)}; "
        "the pod's events say why"
    )
    return after(text, bound, now, _SANDBOX)


def _start(pod: Pod, now: float, patience: Patience) -> Trouble:
    """The first container that has not started, or an init container that has not ended."""
    began = max(bound_at(pod, now), _sandbox_since(pod, now))
    for status in pod.containers:
        name, running = status.name or "", status.now.running
        is_init = name not in pod.spec.main_containers
        if running is not None:
            since = pod.told(running.started_at, now, began)
            if is_init and name not in pod.spec.running_containers:
                text = f"init container {short(name)} runs{_since(since)} and has not ended"
                return after(text, since, now, patience.start)
            if is_init and status.started is False:
                text = f"init container {short(name)} runs{_since(since)}, and its startup probe "
                return after(f"{text}has not passed", since, now, patience.start)
            began = max(began, since)
        elif (ended := status.now.terminated) is not None:
            began = max(began, pod.told(ended.finished_at, now))
        elif not _has_failed(status):
            kind = "init container" if is_init else "container"
            image = short(pod.spec.images.get(name, ""))
            text = f"{kind} {short(name)} has not started{_since(began)}: its image {image} is "
            return after(f"{text}still being pulled, or created", began, now, patience.start)
        else:
            return NONE  # its own words say more
    if pod.containers:
        return NONE
    text = f"no container of its pod has been created{_since(began)}"
    return after(text, began, now, patience.start)


def _sandbox_since(pod: Pod, now: float) -> float:
    condition = pod.conditions.get("PodReadyToStartContainers")
    return UNKNOWN if condition is None else pod.told(condition.last_transition_time, now)


def _has_failed(status: ContainerStatus) -> bool:
    """True if a container waits after a failure, which its reason names."""
    waiting = status.now.waiting
    return waiting is not None and waiting.reason not in {None, "", *_USUAL}


_USUAL = (
    "ContainerCreating",
    "PodInitializing",
)  # Reasons of containers that may be about to start


def _readiness(pod: Pod, now: float) -> Trouble:
    """Returns which readiness gates and containers keep a running pod from being Ready."""
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
            found.append(f"its readiness gate {short(gate)} {_unmet(condition)}")
    if pod.ready is None or not found:
        return NONE
    since = pod.told(pod.ready_since, now, pod.made_at(now))
    text = f"its pod is not Ready{_since(since)}: {'; '.join(found)}"
    return after(text, since, now, _NEVER)


def _unmet(condition: Condition | None) -> str:
    if condition is None:
        return "is unmet: nobody has set its condition yet"
    text = ": ".join(part for part in (condition.reason, condition.message) if part)
    return f"is unmet: {quotation(text) or 'its condition is ' + short(str(condition.status))}"


def ended_for_good(pod: Pod, spared: Iterable[str]) -> Trouble:
    """Returns which containers have ended and do not start again while others of the pod go on.

    Such a pod is never Ready again. That is trouble if a container has failed; one that has
    succeeded may be meant to end first. Containers that are `spared` are being updated.
    """
    spec, ended, others = pod.spec, list[tuple[ContainerStatus, int]](), list[str]()
    if pod.phase not in {"Running", "Pending"}:
        return NONE
    for name in spec.main_containers:
        status = pod.container(name)
        end = status.now.terminated
        if end is None:
            others.append(name)
        elif (code := end.exit_code) is not None and not spec.starts_again(name, code):
            ended += [(status, code)] if name not in spared else []
    if not ended or not others:
        return NONE
    going = f"its pod goes on with {name_list(others)} and is not Ready"
    text = f"{'; '.join(_end(pod, status, code) for status, code in ended)}; {going}"
    if any(code for _, code in ended):
        return Trouble(text)
    return Trouble(waiting=text)


def _end(pod: Pod, status: ContainerStatus, code: int) -> str:
    name, end = status.name or "", status.now.terminated
    reason = (
        end.reason if end is not None and end.reason not in {None, "Error", "Completed"} else ""
    )
    at = UNKNOWN if end is None else pod.told(end.finished_at, _NEVER)
    own = pod.spec.own_restarts.get(name)
    policy = pod.spec.restart_policy if own is None else own.policy
    return (
        f"container {short(name)} has ended with exit code {code}"
        f"{f' ({short(reason)})' if reason else ''}{_at(at)}, and does not start again "
        f"(restartPolicy {short(policy)})"
    )


def _turned(pod: Pod, condition: Condition, now: float) -> float:
    """Returns when a condition turned, or when the pod was created if its time is not usable."""
    return pod.told(condition.last_transition_time, now, pod.made_at(now))


def _since(at: float) -> str:
    return "" if at == UNKNOWN else f" since {written(at)}"


def _at(at: float) -> str:
    return "" if at == UNKNOWN else f" at {written(at)}"


def quotation(text: str | None) -> str:
    """Returns a quotation, on one line and not too long."""
    return short(" ".join((text or "").split()), _LONGEST)
