"""Availability of a pod: whether it has been Ready for `minReadySeconds`, and Ready is reliable.

Entry point: `available_in`. docs/progress.md, "When Ready counts", has the rule. In short:

    available_at = max(probed_at, since + minReadySeconds)

`since` is when Ready turned True, or when the newest container started if that is later: an update
in place restarts a container without turning Ready False. `probed_at` is the time by which the
probes of the restarted containers have certainly run. Until then Ready may describe the previous
containers:

* A kubelet reports a restarted container as `started: true` until its startup probe has run for the
  first time, because the previous container was started. Meanwhile Ready may turn False, True and
  False again.
* A kubelet of Kubernetes 1.35 or newer that is restarted keeps Ready and `started` as they were in
  the status (KEP-4781; pkg/kubelet/prober, setReadyStateOnKubeletRestart). A kubelet may be killed
  after it has started a container and before it has written that into the status. The new container
  then gets both values of the previous one without a probe. In this case Ready has not changed
  since the container's start, and changes only after the readiness probe has failed
  `failureThreshold` times.
"""

from collections.abc import Mapping
from typing import NamedTuple

from tapp.pod.inplace import StartTimes, start_times
from tapp.pod.pod import Pod
from tapp.words.times import SKEW, UNKNOWN, plausible_time

NEVER = float("inf")
# Seconds after which Ready is False because the kubelet is away: node-monitor-grace-period (50),
# and the age of the kubelet's last heartbeat. A container without a postStart hook is published
# within this time after its start, or the node is silent.
_PUBLICATION_SECONDS = 60.0


def available_in(pod: Pod, min_ready_seconds: int, now: float, seen: float = UNKNOWN) -> float:
    """Returns the seconds until a Ready pod is available, or 0 if the pod is available.

    Returns `NEVER` if the passing of time alone does not make the pod available. The caller has
    checked that no update of the pod is unfinished.

    Args:
        pod: the pod; the caller has checked that it is Ready.
        min_ready_seconds: `spec.minReadySeconds`.
        now: the time of this sync, in seconds since the epoch.
        seen: when a sync first saw the pod Ready, in seconds since the epoch. It counts if the
            condition Ready has no usable time. `UNKNOWN` if no sync has noted it.
    """
    if not pod.running:
        return NEVER
    until = proved_at(pod, now)
    if min_ready_seconds:
        # `pod.since` was computed without a clock, so it may come from a wrong time in the future.
        began = pod.since if pod.since <= now + SKEW else times_of(pod, now).since
        until = max(until, max(began, seen) + min_ready_seconds)
    return max(0.0, until - now)


def proved_at(pod: Pod, now: float) -> float:
    """Returns the time by which all probes that Ready depends on have certainly run.

    The result is in seconds since the epoch. `pod.probed_at` has the same time, but was computed
    without a clock. If it may come from a wrong time in the future, it is computed again.
    """
    return pod.probed_at if pod.probed_at <= now + SKEW else times_of(pod, now).probed_at


class Times(NamedTuple):
    """The times on which the availability of a Ready pod depends, in seconds since the epoch.

    Attributes:
        since: when Ready turned True or the newest container started, whichever is later.
            `spec.minReadySeconds` counts from this time. `UNKNOWN` if the pod has no usable time.
        probed_at: the time by which all probes that Ready depends on have certainly run. `UNKNOWN`
            if no probe has to run first.
    """

    since: float
    probed_at: float


def times_of(pod: Pod, now: float = NEVER) -> Times:
    """Returns the times on which the availability of a Ready pod depends.

    Times in the pod's status that are later than `now` are ignored; with the default none are.
    """
    spec, ready = pod.spec, pod.ready_at(now)
    began = _start_times(pod, now)
    probes = spec.startup_whole or spec.readiness_whole
    starts = _starts(pod, began, now) if probes else {}
    failed_by = _probes_failed_by(pod, starts, now)
    # Times are cut to the second: a container with a later time than Ready may have started up to a
    # second after it.
    running = [began[name].at for name in spec.running_containers]
    changes = [at + (at > ready) for at in running]
    once = [
        _published_by(pod, starts[name], now) + seconds
        for name, seconds in spec.startup_seconds.items()
        # Only a restarted container is reported as started too early.
        if name in starts and pod.container(name).restart_count != 0
    ]
    return Times(
        since=max(ready, pod.created_at(now), failed_by, *changes),
        probed_at=max([failed_by, *once]),
    )


def _probes_failed_by(pod: Pod, starts: Mapping[str, "_Start"], now: float) -> float:
    """Returns the time by which a failing probe would have turned Ready False.

    The result is in seconds since the epoch, and `UNKNOWN` if no probe has to be waited for. Only
    containers that started after the last change of Ready count, because Ready may still describe
    their predecessors. The seconds of the probes count from the latest time at which the kubelet
    may have written the container into the status. Only from then on does it run the readiness
    probe. A kubelet that is restarted before that time never runs the startup probe.

    Args:
        pod: the pod.
        starts: container name -> its start; empty if the pod has no startup or readiness probe.
        now: the time of this sync, in seconds since the epoch.
    """
    spec, times, wrote = pod.spec, [UNKNOWN], plausible_time(pod.kubelet_wrote, now)
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
    """Returns when the readiness of the containers last changed, in seconds since the epoch.

    If the pod has readiness gates, ContainersReady shows that time, because a gate also changes
    Ready.
    """
    found = pod.conditions.get("ContainersReady") if pod.spec.gates else None
    return (
        pod.ready_at(now) if found is None else pod.plausible_time(found.last_transition_time, now)
    )


class _Start(NamedTuple):
    """The start of a container, and whether the containers' readiness has changed after it."""

    at: float  # Start of the current run, in seconds since the epoch.
    readiness_changed: (
        bool  # True if the containers' readiness has changed since then, by the node's clock.
    )


def _start_times(pod: Pod, now: float) -> dict[str, StartTimes]:
    """Returns container name -> when its current run began.

    Containers that keep running and containers in the record of the last update have an entry.
    """
    record = pod.last_update
    names = (
        pod.spec.running_containers
        if record is None
        else {*pod.spec.running_containers, *record.containers}
    )
    return {name: start_times(pod, name, now) for name in names}


def _starts(pod: Pod, began: Mapping[str, StartTimes], now: float) -> dict[str, _Start]:
    """Returns container name -> its start, for each container that keeps running.

    Containers that were updated together all get the start of the last of them. Before the last one
    has started, the kubelet writes none of them into the status and runs none of their probes.

    Args:
        pod: the pod.
        began: container name -> when its own current run began.
        now: the time of this sync, in seconds since the epoch.
    """
    ready = _readiness_changed_at(pod, now)
    updated = () if pod.last_update is None else pod.last_update.containers
    last = StartTimes(
        max((began[name].at for name in updated), default=UNKNOWN),
        max((began[name].by_node_clock for name in updated), default=UNKNOWN),
    )
    found = {}
    for name in pod.spec.running_containers:
        start = last if name in updated else began[name]
        found[name] = _Start(start.at, start.by_node_clock <= ready)
    return found


def _published_by(pod: Pod, start: _Start, now: float) -> float:
    """Returns the latest time at which the kubelet has written a container into the status.

    The result is in seconds since the epoch. No probe of the container runs before that time.
    Without postStart hooks in the pod, the kubelet writes right after the container's start. With a
    hook, a change of Ready proves that the kubelet has written. Without such a change, the time of
    the kubelet's last write counts. `start` is the start of the container.
    """
    if not pod.spec.has_hook:
        return start.at
    wrote = plausible_time(pod.kubelet_wrote, now)
    return max(start.at, _readiness_changed_at(pod, now) if start.readiness_changed else wrote)
