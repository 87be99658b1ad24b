"""The pod worker of a kubelet: runs one sync of one pod at a time.

A sync first *publishes* the pod's state, with the generation of the spec that the sync acts on. It
then stops, pulls and starts containers one after the other. A change that happens during a sync,
even of the spec, waits for the end of the sync. A change in the runtime appears in the status at
the next sync. A sync is started by a look at the runtime (once a second), a probe, a change of the
pod, or the end of a back-off.

The worker has no clock and does no I/O. Its owner calls `notice` after a change of the API object,
and `advance` when the time `next_action` has come. The owner then writes `local.merged`, or deletes
the pod if `local.can_be_deleted` is True. Sources: Kubernetes v1.37.2, pkg/kubelet (pod_workers.go,
pleg), and observations on a real node.
"""

from collections.abc import Iterator

from simulator.node.container import Run
from simulator.node.levers import KILLED
from simulator.node.local_pod import LocalPod
from simulator.node.machine import Node
from simulator.node.pod_status import gates_of
from simulator.node.pod_sync import Busy, Sync
from simulator.node.takeover import StatusReader, take_over
from simulator.objects.objects import Json, Object, generation_of, is_terminating
from tapp.kube.restarts import COMPLETED

RESYNC_SECONDS = 60.0
_INHERITING_AGE = 10.0


class PodWorker:
    """The kubelet's worker of one pod; runs its syncs one after the other.

    `local` is the pod on its node: its containers, and the status that the kubelet publishes. All
    times, such as `now`, are in seconds of the simulated clock.
    """

    def __init__(self, pod: Object, node: Node, now: float, address: str = "") -> None:
        self.local = LocalPod(pod, node, now, address)
        self._node = node
        self._sync = Sync(self.local)
        self._running_sync: Iterator[Busy] | None = None
        self._busy_until: Busy = lambda: now
        self._requested_at: float | None = now + node.spread(node.levers.react_seconds)
        self._retry_at: float | None = None
        self._not_before = now

    # Inputs.

    def notice(self, pod: Object, now: float) -> None:
        """Takes a new version of the API object, and requests a sync if the kubelet reacts to the
        change.

        Args:
            pod: the new version.
            now: the time of the change.
        """
        old, self.local.pod = self.local.pod, pod
        levers = self._node.levers
        if _sync_triggers(pod) != _sync_triggers(old):
            self.request_sync(now + self._node.spread(levers.react_seconds))
        elif gates_of(pod) != gates_of(old):
            self.request_sync(now + self._node.spread(levers.gate_seconds))

    def finish(self, exit_code: int, name: str | None, now: float) -> None:
        """Makes main containers of the pod exit at time `now`.

        If `name` is None, all main containers exit; if not, only the container of this name.
        """
        local = self.local
        for container in local.mains if name is None else local.all:
            if name in (None, container.name) and container.run is not None and container.alive:
                container.run.ends_at, container.run.exit_code = now, exit_code

    def fail_liveness(self, name: str, now: float) -> None:
        """Makes the liveness probe of a container fail, which makes the kubelet restart the
        container.
        """
        for container in self.local.all:
            if container.name == name and container.run is not None:
                container.run.unhealthy = True
        self.request_sync(now)

    def evict(self, reason: str, message: str, now: float) -> None:
        """Ends the pod as a node under pressure does: stops all containers and sets the phase
        Failed.

        Does nothing if the pod has already ended.

        Args:
            reason: the reason in the pod's status.
            message: the message in the pod's status.
            now: the time of the eviction.
        """
        local = self.local
        if local.end is not None:
            return
        for container in local.all:
            if container.run is not None and container.alive:
                _end_run(container.run, now, KILLED)
        self._running_sync = None
        local.now, local.end = now, ("Failed", reason, message)
        local.publish(local.pod, final=True)

    def retry(self, now: float) -> None:
        """Ends all back-offs and runs all probes now.

        If a test has changed the seconds until images are ready, they now also apply to running
        containers.
        """
        levers = self._node.levers
        for container in self.local.all:
            container.crashes.end_all()
            container.pulls.end_all()
            run = container.run
            if run is not None and run.alive:
                run.ready_from = run.started + levers.seconds_until_ready(run.image)
                run.started_from = run.started + levers.seconds_until_started(run.image)
            for probe in container.probers:
                probe.requested = now
        self.request_sync(now)

    def restart(self, now: float) -> None:
        """Restarts the kubelet: the containers go on running, and the kubelet's memory is lost.

        Containers that started more than ten seconds ago keep their published readiness and
        `started` until their probes have run (pkg/kubelet/prober/prober_manager.go,
        setReadyStateOnKubeletRestart).
        """
        self._running_sync = None
        conditions = (self.local.pod.get("status") or {}).get("conditions") or []
        ready = any((each["type"], each["status"]) == ("Ready", "True") for each in conditions)
        for container in self.local.all:
            container.forget()
            run = container.run
            if run is not None and run.alive and run.stopping and run.exit_code == KILLED:
                run.stopping, run.ends_at = False, None  # it ignores the signal and goes on running
            old = run is not None and run.alive and run.started < now - _INHERITING_AGE
            for probe in container.probers if old and self._node.levers.keeps_ready else ():
                if run is not None and probe.run != run.id and (ready or probe.startup):
                    probe.inherits_from = run.id
        self.local.load_status()
        self.request_sync(now + self._node.spread(self._node.levers.react_seconds))

    def take_over(self, status_reader: StatusReader, now: float) -> None:
        """Continues a pod that another kubelet has run, from the status in its API object.

        The rules are in `simulator.node.takeover`. No sync is requested if nothing has to be done
        for the pod.

        Args:
            status_reader: parses the times in the status.
            now: the time of the takeover.
        """
        if not take_over(self.local, status_reader, now):
            self._requested_at = None

    # Actions.

    @property
    def next_action(self) -> float | None:
        """The time of the worker's next action, including retries; None if nothing is scheduled."""
        times = [
            self.next_action_without_retries,
            self._retry_at if self._running_sync is None else None,
        ]
        return min((time for time in times if time is not None), default=None)

    @property
    def next_action_without_retries(self) -> float | None:
        """The time of the next action other than a retry after a failure or back-off; None if there
        is none.
        """
        times = [run.ends_at for run in self._alive()]
        times.append(self.local.next_probe_time() if self.local.end is None else None)
        if self._running_sync is not None:
            times.append(self._busy_until())
        elif self._requested_at is not None:
            times.append(max(self._requested_at, self._not_before))
        return min((time for time in times if time is not None), default=None)

    def advance(self, now: float) -> None:
        """Runs all actions that are due by the time `now`, in order, each at its own time."""
        while (time := self.next_action) is not None and time <= now:
            self.local.now = max(self.local.now, self._node.levers.moment(time))
            self._act(self.local.now)
        self.local.now = max(self.local.now, now)

    def _act(self, now: float) -> None:
        ended = [run for run in self._alive() if run.ends_at is not None and run.ends_at <= now]
        if ended:
            for run in ended:
                _end_run(run, run.ends_at or now, run.exit_code)
            self.request_sync(now + self._seconds_until_relist())
        elif self.local.end is None and _due(self.local.next_probe_time(), now):
            if self.local.probe():
                self.request_sync(now)
        elif self._running_sync is not None:
            self._continue_sync(self._running_sync, now)
        else:
            self._requested_at = self._retry_at = None
            self._sync = Sync(self.local)
            self._running_sync = self._sync.run()
            self._continue_sync(self._running_sync, now)

    def _continue_sync(self, running_sync: Iterator[Busy], now: float) -> None:
        try:
            self._busy_until = next(running_sync)
        except StopIteration:
            self._running_sync = None
            self._plan_next(self._sync, now)

    def _plan_next(self, sync: Sync, now: float) -> None:
        """Schedules the next sync after a sync has ended.

        - If the sync has changed something, another sync follows soon.
        - If the sync has failed, it is retried after `Levers.retry_seconds`.
        - If back-offs have delayed starts, the next sync follows when the first back-off ends.

        No sync starts before the next look at the runtime.
        """
        self._not_before = now + self._seconds_until_relist()
        if sync.changed:
            self.request_sync(self._not_before)
        if sync.failed:
            self._retry_at = now + self._node.levers.retry_seconds * self._stretch()
        elif sync.backoffs:
            wait = min(max(min(sync.backoffs) - now, 0.0), RESYNC_SECONDS)
            self._retry_at = now + wait * self._stretch()

    def _stretch(self) -> float:
        return 1 + self._random_share() * 0.5

    def _seconds_until_relist(self) -> float:
        return self._node.levers.relist_seconds * self._random_share()

    def _random_share(self) -> float:
        return self._node.rng.random() if self._node.levers.by_chance else 0.5

    def request_sync(self, time: float) -> None:
        """Requests a sync at this time, or as soon afterwards as possible.

        If there are several requests, the earliest one counts.
        """
        self._requested_at = time if self._requested_at is None else min(self._requested_at, time)

    def _alive(self) -> list[Run]:
        return [container.runs[0] for container in self.local.all if container.alive]


def _end_run(run: Run, now: float, code: int) -> None:
    run.finished, run.exit_code, run.ends_at = now, code, None


def _due(time: float | None, now: float) -> bool:
    return time is not None and time <= now


def _sync_triggers(pod: Object) -> Json:
    """Returns the fields of an API object whose change makes the kubelet sync the pod soon.

    The conditions of readiness gates are left out, because the kubelet reacts later to their
    changes.
    """
    grace = (pod.get("metadata") or {}).get("deletionGracePeriodSeconds")
    finished = (pod.get("status") or {}).get("phase") in COMPLETED
    return generation_of(pod), is_terminating(pod), grace, finished
