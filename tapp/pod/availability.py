"""Availability of a pod: whether it has been Ready for `minReadySeconds`, and can be trusted.

Entry point: `available_in`. docs/design.md, "When Ready counts", has the rule. In short:

    available_at = max(probed_at, since + minReadySeconds)

`since` is when Ready turned True, or when the newest container started if that is later: an update
in place restarts a container without turning Ready False. `probed_at` is when the probes of the
restarted containers have certainly run. Until then Ready may be a leftover of the container before:

* A kubelet reports a restarted container as `started: true`, because the one before was, until the
  startup probe has run for the first time. Ready may turn False, True and False again meanwhile.
* A kubelet of Kubernetes 1.35 or newer that is restarted keeps Ready and `started` as published
  (KEP-4781; pkg/kubelet/prober, setReadyStateOnKubeletRestart). If the kubelet was killed after it
  started a container and before it published that, the new container inherits both without a probe.
  One can tell from Ready: it has not changed since the container's start. It then changes only
  after the readiness probe has failed `failureThreshold` times.
"""

from typing import NamedTuple

from tapp.pod.inplace import start_by_node_clock, started_at
from tapp.pod.pod import Pod
from tapp.words.times import SKEW, UNKNOWN, plausible_time

NEVER = float("inf")
# Seconds after which Ready is False because the kubelet is away: node-monitor-grace-period (50),
# and the age of the kubelet's last heartbeat. A container without a postStart hook is published
# within this time after its start, or the node is silent.
_PUBLICATION_SECONDS = 60.0


def available_in(pod: Pod, min_ready_seconds: int, now: float, seen: float = UNKNOWN) -> float:
    """Returns the seconds until a Ready pod is available: 0 if
    it is, `NEVER` if time does not help.

    The caller has to check that no update of the pod is unfinished. `seen` is when a sync first saw
    the pod Ready; it counts if the condition Ready has no usable time.
    """
    if not pod.running:
        return NEVER
    until = proved_at(pod, now)
    if min_ready_seconds:
        # `pod.since` was computed without a clock, so a time in the future may have spoilt it.
        began = pod.since if pod.since <= now + SKEW else since(pod, now)
        until = max(until, max(began, seen) + min_ready_seconds)
    return max(0.0, until - now)


def proved_at(pod: Pod, now: float) -> float:
    """Returns `pod.probed_at`, or computes it again if it relies on a time in the future."""
    return pod.probed_at if pod.probed_at <= now + SKEW else probed_at(pod, now)


def since(pod: Pod, now: float = NEVER) -> float:
    """Returns when the newest container, or Ready, began, in seconds since the epoch.

    `spec.minReadySeconds` counts from this time. Returns `UNKNOWN` if the pod has no usable time.
    """
    ready = pod.plausible_time(pod.ready_since, now)
    starts = [started_at(pod, name, now) for name in pod.spec.running_containers]
    # Times are cut to the second: a container with a later time than Ready may have started up to a
    # second after it.
    began = [start + (start > ready) for start in starts]
    return max(ready, pod.created_at(now), _probes_failed_by(pod, now), *began)


def probed_at(pod: Pod, now: float = NEVER) -> float:
    """Returns when the probes that Ready depends on have certainly run, in seconds since the epoch.

    Returns `UNKNOWN` if no probe has to be waited for.
    """
    runs = pod.spec.startup_seconds
    once = [
        _published_by(pod, start, now) + runs.get(name, UNKNOWN)
        for name, start in (_starts(pod, now) if runs else {}).items()
        # Only a restarted container is reported as started too early.
        if pod.container(name).restart_count != 0
    ]
    return max([_probes_failed_by(pod, now), *once])


def _probes_failed_by(pod: Pod, now: float) -> float:
    """Returns when the probes of containers that Ready has not reacted to have failed often enough.

    Only containers that were started after Ready last changed count. Both probes count from the
    latest moment at which the kubelet may have published the container: a kubelet that is restarted
    before never runs the startup probe, and only a kubelet that has published a container runs its
    readiness probe.
    """
    spec, times, wrote = pod.spec, [UNKNOWN], plausible_time(pod.kubelet_wrote, now)
    starts = _starts(pod, now) if spec.startup_whole or spec.readiness_whole else {}
    for name, start in starts.items():
        if not start.readiness_changed:
            latest = start.at + _PUBLICATION_SECONDS
            # A postStart hook delays the publication without a limit, so only the kubelet's last
            # write shows it.
            if wrote != UNKNOWN and (spec.has_hook or wrote < latest):
                latest = max(start.at, wrote)
            times.append(latest + spec.readiness_whole.get(name, UNKNOWN))
            times.append(_published_by(pod, start, now) + spec.startup_whole.get(name, UNKNOWN))
    return max(times)


def _readiness_changed_at(pod: Pod, now: float) -> float:
    """Returns when the containers' readiness last changed.

    With readiness gates it is ContainersReady that shows this: a gate changes Ready, too.
    """
    found = pod.conditions.get("ContainersReady") if pod.spec.gates else None
    return pod.plausible_time(pod.ready_since if found is None else found.last_transition_time, now)


class _Start(NamedTuple):
    """The start of a container, and whether readiness has changed since."""

    at: float  # Start of the current run, in seconds since the epoch.
    readiness_changed: (
        bool  # True if the containers' readiness has changed since then, by the node's clock.
    )


def _starts(pod: Pod, now: float) -> dict[str, _Start]:
    """Returns the start of each container that keeps running.

    Containers that were updated together have the start of the last of them: before it has started,
    the kubelet publishes none of them and runs none of their probes.
    """
    ready, running = _readiness_changed_at(pod, now), pod.spec.running_containers
    updated_together = () if pod.last_update is None else pod.last_update.containers
    times = {
        n: (started_at(pod, n, now), start_by_node_clock(pod, n, now))
        for n in {*running, *updated_together}
    }
    last = [max((times[n][of] for n in updated_together), default=UNKNOWN) for of in (0, 1)]
    found = {}
    for name in running:
        at, by_node_clock = last if name in updated_together else times[name]
        found[name] = _Start(at, by_node_clock <= ready)
    return found


def _published_by(pod: Pod, start: _Start, now: float) -> float:
    """Returns the latest time at which the kubelet has published a container; no probe runs before.

    Without a postStart hook the kubelet publishes a container right after its start. With a hook, a
    change of Ready shows that it has; without such a change the kubelet's last write has to do.
    """
    if not pod.spec.has_hook:
        return start.at
    wrote = plausible_time(pod.kubelet_wrote, now)
    return max(start.at, _readiness_changed_at(pod, now) if start.readiness_changed else wrote)
