"""The kubelets of all nodes: they start pods, follow image changes, stop what is deleted.

Each pod has a worker with at most one timer. Sources: pkg/kubelet (computePodActions, getPhase),
workloads.md 2.5 and 2.8, controlplane.md section 4. Not modelled: probes other than "ready some
time after start", resize, ephemeral containers, lifecycle hooks.

Levers for tests: `behaviour` (which images are bad, what completes, ...), `finish`, `evict`,
`retry`, `release`.
"""

from __future__ import annotations

import hashlib
import random
from itertools import count

from simulator.clock import Clock
from simulator.cluster import Cluster
from simulator.containers import (
    KILLED,
    Behaviour,
    Container,
    State,
    Timing,
    restarts,
)
from simulator.kinds import POD
from simulator.objects import (
    Json,
    Object,
    generation_of,
    is_terminating,
    key_of,
    meta,
    same,
    uid_of,
)
from simulator.pod_status import FINISHED, Worker, pod_status
from simulator.store import DeleteOptions, Event


class Kubelet:
    """All kubelets of a cluster."""

    def __init__(self, cluster: Cluster, clock: Clock, rng: random.Random) -> None:
        self.timing = Timing()
        self.behaviour = Behaviour()
        self.lost_nodes: set[str] = set()
        self._cluster = cluster
        self._clock = clock
        self._rng = rng
        self._workers: dict[str, Worker] = {}
        self._ids = count(1)
        cluster.subscribe(self._on_event)

    def finish(self, pod: Object, exit_code: int = 0, container: str | None = None) -> None:
        """Let a running pod's containers (or one of them) exit now."""
        worker = self._workers[uid_of(pod)]
        for one in worker.main:
            if container in (None, one.name) and one.state is State.RUNNING:
                self._exit(one, exit_code)
        self._work(worker.uid)

    def evict(self, pod: Object, reason: str = "Evicted") -> None:
        """End a pod as the node's eviction manager does: phase Failed, all containers dead."""
        worker = self._workers[uid_of(pod)]
        for one in worker.all:
            if one.state in (State.RUNNING, State.STOPPING):
                self._exit(one, KILLED)
            one.state, one.due = State.TERMINATED, None
        worker.reason = {"reason": reason, "message": "The node was low on resource: memory."}
        self._publish(worker, pod, phase="Failed")

    def retry(self) -> None:
        """Let every container that waits for its next attempt try now."""
        for worker in list(self._workers.values()):
            for one in worker.all:
                if one.retrying:
                    one.due = self._clock.now
            self._work(worker.uid)

    def release(self) -> None:
        """Finish the deletes that hung (set `behaviour.hangs_on_delete` back first)."""
        for worker in list(self._workers.values()):
            if worker.hanging:
                worker.hanging = False
                self._schedule_stop(worker)

    def resume(self, node: str) -> None:
        """Let a node that was lost catch up with what it missed."""
        self.lost_nodes.discard(node)
        for worker in list(self._workers.values()):
            found = self._cluster.by_uid(worker.uid)
            if found is not None and found[1]["spec"].get("nodeName") == node:
                if is_terminating(found[1]):
                    self._schedule_stop(worker)
                self._wake(worker, self.timing.react)

    def _on_event(self, event: Event) -> None:
        if event.kind is not POD:
            return
        pod, uid = event.object, uid_of(event.object)
        worker = self._workers.get(uid)
        if event.new is None:
            if worker is not None:
                self._clock.cancel(worker.timer)
                self._clock.cancel(worker.stopping)
                del self._workers[uid]
            return
        if worker is None:
            if not pod["spec"].get("nodeName"):
                return
            worker = self._workers[uid] = self._admit(pod)
            self._wake(worker, self.timing.react)
        if is_terminating(pod):
            if worker.stopping is None:
                self._schedule_stop(worker)
        elif event.old is not None and generation_of(event.old) != generation_of(pod):
            self._wake(worker, self.timing.react)

    def _admit(self, pod: Object) -> Worker:
        spec = pod["spec"]
        return Worker(
            uid_of(pod),
            [Container(c["name"], c["image"]) for c in spec.get("initContainers") or []],
            [Container(c["name"], c["image"]) for c in spec["containers"]],
        )

    def _spread(self, seconds: float) -> float:
        return seconds * (1 + self._rng.random() * self.timing.jitter)

    def _wake(self, worker: Worker, seconds: float, *, background: bool = False) -> None:
        timer, uid = worker.timer, worker.uid
        if timer is not None and not timer.cancelled and timer.due <= self._clock.now + seconds:
            if background or not timer.background:
                return
            seconds = timer.due - self._clock.now
        self._clock.cancel(timer)
        worker.timer = self._clock.after(seconds, lambda: self._work(uid), background=background)

    def _work(self, uid: str) -> None:
        worker, found = self._workers.get(uid), self._cluster.by_uid(uid)
        if worker is None or found is None:
            return
        pod = found[1]
        if pod["spec"]["nodeName"] in self.lost_nodes or worker.reason:
            return
        if (pod.get("status") or {}).get("phase") in FINISHED:
            return
        self._clock.cancel(worker.timer)
        worker.timer = None
        if not worker.initialized and not worker.init and self._refuse(worker, pod):
            return
        leaving = is_terminating(pod)
        if not leaving:
            self._advance_all(worker, pod)
        if not (self.behaviour.silent_restarts and worker.restarting):
            pod = self._publish(worker, pod)
        if not leaving:  # else it stands still until `_stop`, whatever was due
            self._plan_next(worker)

    def _plan_next(self, worker: Worker) -> None:
        waiting = [(one.next_due, one.retrying) for one in worker.all]
        active = [due for due, retrying in waiting if due is not None and not retrying]
        idle = [due for due, retrying in waiting if due is not None and retrying]
        if active or idle:
            due = min(active + idle)
            self._wake(worker, due - self._clock.now, background=not active)

    def _refuse(self, worker: Worker, pod: Object) -> bool:
        if any(one.state is not State.CREATED for one in worker.main):
            return False
        if not self.behaviour.refuses(pod):
            return False
        worker.reason = {
            "reason": "OutOfcpu",
            "message": "Pod was rejected: Node didn't have enough",
        }
        self._cluster.edit(
            POD,
            pod,
            lambda old: {**old, "status": {**old["status"], **worker.reason, "phase": "Failed"}},
        )
        return True

    def _advance_all(self, worker: Worker, pod: Object) -> None:
        spec = pod["spec"]
        for one, wanted in zip(worker.init, spec.get("initContainers") or [], strict=True):
            sidecar = wanted.get("restartPolicy") == "Always"
            if worker.initialized and not sidecar:
                continue
            self._advance(one, wanted, pod, "Always" if sidecar else "OnFailure")
            done = one.state is State.TERMINATED and one.exit_code == 0
            if not worker.initialized and not (done or (sidecar and one.ready)):
                return
        worker.initialized = True
        policy = spec.get("restartPolicy", "Always")
        for one, wanted in zip(worker.main, spec["containers"], strict=True):
            self._advance(one, wanted, pod, policy)

    def _advance(self, one: Container, wanted: Object, pod: Object, policy: str) -> None:
        """Move one container as far as it gets now."""
        now = self._clock.now
        if one.state is State.CREATED:
            one.image, one.state = wanted["image"], State.STARTING
            one.due = now + self._spread(self.timing.start)
        pending = one.state is State.STARTING or one.retrying
        if pending and wanted["image"] != one.image:
            one.image, one.failures, one.crashes = wanted["image"], 0, 0
            one.state, one.due = State.STARTING, now + self._spread(self.timing.start)
        if one.state is State.RUNNING and wanted["image"] != one.image:
            one.ready, one.state, one.exits_at = False, State.STOPPING, None
            one.due = now + self._spread(self.timing.kill)
        if one.state is State.RUNNING and one.exits_at is not None and one.exits_at <= now:
            self._exit(one, one.exit_code)
        if one.due is not None and one.due <= now:
            self._step(one, wanted, pod, policy)
        if one.state is State.TERMINATED and restarts(policy, one.exit_code):
            one.last, one.state = one.terminated_state(), State.STARTING
            one.due = now + self._spread(self.timing.start)
            if one.crashes:
                one.state = State.CRASH_BACKOFF
                one.due = now + self._retry_after(one.crashes, self.timing.crash_retry)
            one.crashes += 1

    def _step(self, one: Container, wanted: Object, pod: Object, policy: str) -> None:
        match one.state:
            case State.STARTING | State.PULL_BACKOFF | State.CRASH_BACKOFF:
                self._start(one, wanted, pod, policy)
            case State.RUNNING:
                one.ready, one.due = one.image not in self.behaviour.unready_images, None
            case State.STOPPING:
                self._exit(one, KILLED)
                one.last, one.image = one.terminated_state(), wanted["image"]
                one.state = State.STARTING
                one.due = self._clock.now + self._spread(self.timing.start)
            case _:
                one.due = None

    def _start(self, one: Container, wanted: Object, pod: Object, policy: str) -> None:
        now = self._clock.now
        if one.image in self.behaviour.bad_images:
            if one.container_id and not restarts(policy, KILLED):
                one.state, one.due = State.TERMINATED, None
                return
            one.state, one.failures = State.PULL_BACKOFF, one.failures + 1
            one.due = now + self._retry_after(one.failures, self.timing.pull_retry)
            return
        one.restarts += bool(one.container_id)
        number = next(self._ids)
        one.container_id = f"containerd://{hashlib.sha256(str(number).encode()).hexdigest()}"
        one.image_id = f"sha256:{self.behaviour.digest(one.image)}"
        one.state, one.started_at, one.finished_at = State.RUNNING, self._clock.timestamp(), ""
        one.due = now + self.timing.ready
        one.ready = not self.timing.ready and one.image not in self.behaviour.unready_images
        if one.ready:
            one.due = None
        one.exits_at = None
        self._plan_exit(one, wanted, pod)

    def _plan_exit(self, one: Container, wanted: Object, pod: Object) -> None:
        names = [c["name"] for c in pod["spec"].get("initContainers") or []]
        planned: tuple[float, int] | None
        if one.image in self.behaviour.crashing_images:
            planned = (self.behaviour.crash_after, 1)
        elif one.name in names and wanted.get("restartPolicy") != "Always":
            planned = (self.timing.init, 0)
        else:
            planned = self.behaviour.completes(pod, one.name)
        if planned is not None:
            one.exits_at, one.exit_code = self._clock.now + planned[0], planned[1]

    def _exit(self, one: Container, exit_code: int) -> None:
        one.state, one.ready, one.due, one.exits_at = State.TERMINATED, False, None, None
        one.exit_code, one.finished_at = exit_code, self._clock.timestamp()

    def _retry_after(self, failures: int, first: float) -> float:
        return min(first * 2.0 ** (failures - 1), self.timing.longest_retry)

    def _publish(self, worker: Worker, pod: Object, *, phase: str = "") -> Object:
        status = pod_status(worker, pod, phase, self._clock.timestamp())
        if same(status, pod.get("status")):
            return pod
        return self._cluster.edit(POD, pod, lambda old: {**old, "status": status})

    def _schedule_stop(self, worker: Worker) -> None:
        found = self._cluster.by_uid(worker.uid)
        if found is None or found[1]["spec"].get("nodeName") in self.lost_nodes:
            return
        grace = float(meta(found[1]).get("deletionGracePeriodSeconds", 0))
        seconds = min(self._spread(self.timing.stop), grace)
        worker.stopping = self._clock.after(seconds, lambda: self._stop(worker.uid))

    def _stop(self, uid: str) -> None:
        worker, found = self._workers.get(uid), self._cluster.by_uid(uid)
        if worker is None or found is None:
            return
        pod = found[1]
        worker.stopping = None
        if pod["spec"]["nodeName"] in self.lost_nodes:
            return
        if self.behaviour.hangs_on_delete(pod):
            worker.hanging = True
            return
        if (pod.get("status") or {}).get("phase") not in FINISHED:
            self._last_words(worker, pod)
        self._cluster.delete(POD, *key_of(pod), DeleteOptions(uid, grace_seconds=0))

    def _last_words(self, worker: Worker, pod: Object) -> None:
        """Report how the pod ended, as kubelets do before they let go of it."""
        for one in worker.all:
            if one.state in (State.RUNNING, State.STOPPING):
                self._exit(one, KILLED)
            elif one.state is not State.TERMINATED:
                one.state, one.exit_code, one.due = State.TERMINATED, KILLED, None
        codes: list[Json] = [one.exit_code for one in worker.main]
        self._publish(worker, pod, phase="Failed" if any(codes) else "Succeeded")
