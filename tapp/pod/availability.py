"""Availability of an instance: it serves, and has done so for long enough.

docs/design.md, "The budget". Ready alone does not tell: a restart in place need not turn it False,
so its time may be older than the container that runs. And a kubelet reports a container that it has
restarted as `started` because the one before it was, until its startup probe has run: Ready may
turn False and True again in that time, and False once more at its end.

A kubelet of Kubernetes 1.35 or newer that is started anew goes on with Ready and `started` as they
were published (KEP-4781; pkg/kubelet/prober, setReadyStateOnKubeletRestart), also for a container
that no probe has seen, because the one before was killed between its start and its publication.
Ready has not turned since that start then, as it does in all other cases where there is a probe,
and does not turn until the readiness probe has failed as often as it may.
"""

from typing import NamedTuple

from tapp.pod.inplace import started_at, told_start
from tapp.pod.pod import Pod
from tapp.words.times import SKEW, UNKNOWN, told

NEVER = float("inf")
_SILENCE = 60.0
"""Seconds after which a node is lost whose kubelet is away: then Ready has turned False. The
default of 50, and what the last heartbeat may be older than the kubelet's end. So long after its
start a container without a hook is published at the latest, whatever the kubelet writes later."""


def available_in(pod: Pod, min_ready_seconds: int, now: float, seen: float = UNKNOWN) -> float:
    """Seconds until a Ready pod counts as available: 0 if it does, `NEVER` if time does not help.

    Whether an update of it is unfinished is for the caller to ask. `seen` is since when the pod is
    seen to be Ready, for a pod whose condition Ready has no usable time.
    """
    if not pod.running:
        return NEVER
    until = proved_at(pod, now)
    if min_ready_seconds:
        began = pod.since if pod.since <= now + SKEW else since(pod, now)
        until = max(until, max(began, seen) + min_ready_seconds)
    return max(0.0, until - now)


def proved_at(pod: Pod, now: float) -> float:
    """Returns `pod.probed_at`, or what it would be without times that are far ahead of `now`."""
    return pod.probed_at if pod.probed_at <= now + SKEW else probed_at(pod, now)


def since(pod: Pod, now: float = NEVER) -> float:
    """Returns when the newest of what serves in a pod began, for `spec.minReadySeconds`.

    `UNKNOWN` if the pod does not tell. Times that cannot be right do not count.
    """
    ready = pod.told(pod.ready_since, now)
    starts = [started_at(pod, name, now) for name in pod.spec.running_containers]
    # Times are cut to the second: what began after Ready may have begun almost one later.
    began = [start + (start > ready) for start in starts]
    return max(ready, pod.made_at(now), _decided_at(pod, now), *began)


def probed_at(pod: Pod, now: float = NEVER) -> float:
    """By when the probes have run without which readiness tells nothing; `UNKNOWN` without any."""
    runs = pod.spec.startup_seconds
    once = [
        _shown_at(pod, start, now) + runs.get(name, UNKNOWN)
        for name, start in (_starts(pod, now) if runs else {}).items()
        if pod.container(name).restart_count != 0  # else it is never called started too early
    ]
    return max([_decided_at(pod, now), *once])


def _decided_at(pod: Pod, now: float) -> float:
    """By when probes have failed as often as they may, where Ready has not turned since the start.

    A startup probe counts from when the container is published: a kubelet that is started anew
    never runs it, and longer than that no container takes to start. A readiness probe is run by the
    kubelet that has published it, at the latest when it last wrote.
    """
    spec, times, wrote = pod.spec, [UNKNOWN], told(pod.kubelet_wrote, now)
    starts = _starts(pod, now) if spec.startup_whole or spec.readiness_whole else {}
    for name, start in starts.items():
        if not start.turned:
            latest = start.at + _SILENCE
            if wrote != UNKNOWN and (spec.has_hook or wrote < latest):
                latest = max(start.at, wrote)
            times.append(latest + spec.readiness_whole.get(name, UNKNOWN))
            times.append(_shown_at(pod, start, now) + spec.startup_whole.get(name, UNKNOWN))
    return max(times)


def _ready_since(pod: Pod, now: float) -> float:
    """The time when the containers' readiness last turned: a gate that turns Ready is no sign."""
    found = pod.conditions.get("ContainersReady") if pod.spec.gates else None
    return pod.told(pod.ready_since if found is None else found.last_transition_time, now)


class _Start(NamedTuple):
    """The time when a container began, and if readiness has turned since, by its node's clock."""

    at: float
    turned: bool


def _starts(pod: Pod, now: float) -> dict[str, _Start]:
    """The containers that keep running; those that were updated together begin with the last.

    The kubelet publishes none of them, and probes none, before it has started the last one.
    """
    ready, running = _ready_since(pod, now), pod.spec.running_containers
    together = () if pod.last_update is None else pod.last_update.containers
    times = {n: (started_at(pod, n, now), told_start(pod, n, now)) for n in {*running, *together}}
    last = [max((times[n][of] for n in together), default=UNKNOWN) for of in (0, 1)]
    found = {}
    for name in running:
        at, told = last if name in together else times[name]
        found[name] = _Start(at, told <= ready)
    return found


def _shown_at(pod: Pod, start: _Start, now: float) -> float:
    """By when the kubelet has published a container; it probes none before.

    After its start at once, unless a postStart hook keeps it busy. Then it has when Ready has
    turned since, or, as long as the pod's update is not long over, when it last wrote the status.
    """
    if not pod.spec.has_hook:
        return start.at
    wrote = told(pod.kubelet_wrote, now)
    return max(start.at, _ready_since(pod, now) if start.turned else wrote)
