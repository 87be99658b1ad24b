"""Availability of an instance: it serves, and has done so for long enough.

docs/design.md, "The budget". Ready alone does not tell: a restart in place need not turn it False,
so its time may be older than the container that runs. And a kubelet reports a container that it has
restarted as `started` because the one before it was, until its startup probe has run: Ready may
turn False and True again in that time, and False once more at its end.
"""

from tapp.pod.inplace import started_at
from tapp.pod.pod import Pod
from tapp.words.times import UNKNOWN, seconds

NEVER = float("inf")


def available_in(pod: Pod, min_ready_seconds: int, now: float) -> float:
    """Seconds until a Ready pod counts as available: 0 if it does, `NEVER` if time does not help.

    Args:
        pod: the pod; whether an update of it is unfinished is for the caller to ask.
        min_ready_seconds: `spec.minReadySeconds`.
        now: seconds since the epoch.
    """
    if not pod.running:
        return NEVER
    until = pod.probed_at
    if min_ready_seconds:
        until = max(until, (now if pod.since == UNKNOWN else pod.since) + min_ready_seconds)
    return max(0.0, until - now)


def since(pod: Pod) -> float:
    """When the newest of what serves in a pod began: the base of `spec.minReadySeconds`.

    Returns:
        Seconds since the epoch; `UNKNOWN` where the pod does not tell, or its time is unreadable.
    """
    ready = seconds(pod.ready_since)
    if pod.ready_since and ready == UNKNOWN:
        return UNKNOWN
    starts = [started_at(pod, name) for name in pod.spec.running_containers]
    # Times are cut to the second: what began after Ready may have begun almost one later.
    began = [start + (start > ready) for start in starts]
    return max(ready, seconds(pod.created), *began)


def probed_at(pod: Pod) -> float:
    """By when each probe has run once without which readiness tells nothing of what runs.

    A startup probe of each container that is not the first of its name in the pod, whatever Ready
    has done since; what was never started before is never called so too early. A readiness probe,
    or the startup probe of a first container, only while Ready has not turned since the start.

    Returns:
        Seconds since the epoch; `UNKNOWN` where there is no such probe.
    """
    spec, ready, times = pod.spec, _ready_since(pod), [UNKNOWN]
    if not spec.startup_seconds and not spec.readiness_seconds:
        return UNKNOWN
    for name in spec.running_containers:
        start = _begun_at(pod, name)
        if start > ready:
            times.append(start + spec.readiness_seconds.get(name, UNKNOWN))
        if start > ready or pod.container(name).restart_count != 0:
            shown = _shown_at(pod, start, ready)
            times.append(shown + spec.startup_seconds.get(name, UNKNOWN))
    return max(times)


def _ready_since(pod: Pod) -> float:
    """When the containers' readiness last turned: a gate turns Ready, and tells nothing of them."""
    found = pod.conditions.get("ContainersReady") if pod.spec.gates else None
    return seconds(pod.ready_since if found is None else found.last_transition_time)


def _begun_at(pod: Pod, name: str) -> float:
    """When a container began, and all that were restarted together with it.

    The kubelet publishes none of them, and probes none, before it has started the last one.
    """
    together = () if pod.record is None else pod.record.containers
    names = [name, *together] if name in together else [name]
    return max(started_at(pod, each) for each in names)


def _shown_at(pod: Pod, start: float, ready: float) -> float:
    """By when the kubelet has published a container; it probes none before.

    After its start at once, unless a postStart hook keeps it busy. Then it has when Ready has
    turned since, or, as long as the pod's update is not long over, when it last wrote the status.
    """
    if not pod.spec.has_hook:
        return start
    return max(start, ready if ready > start else seconds(pod.kubelet_wrote))
