"""Who is available: serves, and has done so for long enough.

docs/design.md, "The budget". Ready alone does not tell: a restart in place need not turn it False,
so its time may be older than the container that runs; and behind a startup or readiness probe the
kubelet goes on reporting a container that has just started as ready until the probe has run once.
"""

from tapp.inplace import started_at
from tapp.pod import Pod
from tapp.times import UNKNOWN, seconds

NEVER = float("inf")


def available_in(pod: Pod, min_ready_seconds: int, now: float) -> float:
    """Seconds until a Ready pod counts as available: 0 if it does, `NEVER` if time does not help.

    Args:
        pod: the pod; whether an update of it is open is for the caller to ask.
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
    starts = [started_at(pod, name) for name in pod.told.running_containers]
    # Times are cut to the second: what began after Ready may have begun almost one later.
    began = [start + (start > ready) for start in starts]
    return max(ready, seconds(pod.created), *began)


def probed_at(pod: Pod) -> float:
    """By when each probe of what has started since the pod became Ready has run once.

    Returns:
        Seconds since the epoch; `UNKNOWN` where there is no such probe.
    """
    ready, starts = seconds(pod.ready_since), pod.told.running_containers
    return max(
        (
            start + delay
            for name, delay in pod.told.probe_seconds.items()
            if name in starts and (start := started_at(pod, name)) > ready
        ),
        default=UNKNOWN,
    )
