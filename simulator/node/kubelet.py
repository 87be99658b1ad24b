"""The kubelets of all nodes of a cluster.

`Kubelet` subscribes to the events of the cluster. It gives each scheduled pod a
`pod_worker.PodWorker`, and advances the worker when its next action is due. It then writes the
status that the worker publishes. Each pod has at most one timer. Tests control the kubelets through
`levers` (`simulator.node.levers`) and the methods `finish`, `evict`, `fail_liveness`, `retry`,
`release` and `restart`.

Not modeled: probes that fail after a success, ephemeral containers, static pods, volumes.
"""

import random

from simulator.api.cluster import Cluster
from simulator.api.store import DeleteOptions, Event
from simulator.node.levers import Levers
from simulator.node.machine import Node
from simulator.node.pod_worker import PodWorker
from simulator.node.takeover import StatusReader
from simulator.objects.clock import Clock, Timer
from simulator.objects.kinds import POD
from simulator.objects.objects import Object, deep_equal, is_terminating, key_of, uid_of, with_meta
from tapp.kube.restarts import COMPLETED
from tapp.kube.stored import GRACE


class Kubelet:
    """The kubelets of all nodes of a cluster, which run the pods that are scheduled to their nodes.

    Through `levers` a test decides how containers, images and kubelets behave.
    """

    def __init__(self, cluster: Cluster, clock: Clock, rng: random.Random) -> None:
        self.levers = Levers()
        self.lost_nodes: set[str] = set()
        """Names of nodes that have stopped reporting; their containers go on running."""
        self.status_reader: StatusReader | None = None
        """Reads the status of pods that other kubelets have run; None if there are no such pods."""
        self.managed_fields = True
        """True if the API server records the kubelet's writes of a status in `managedFields`."""
        self._cluster = cluster
        self._clock = clock
        self._rng = rng
        self._nodes: dict[str, Node] = {}
        self._workers: dict[str, PodWorker] = {}
        self._timers: dict[str, Timer] = {}
        cluster.subscribe(self._on_event)

    def worker(self, pod: Object) -> PodWorker | None:
        """Returns the worker of a pod, which knows the true state of the pod.

        Returns None if the pod has no node.
        """
        return self._workers.get(uid_of(pod))

    def finish(self, pod: Object, exit_code: int = 0, container: str | None = None) -> None:
        """Makes running main containers of a pod exit now with `exit_code`.

        If `container` is None, all of them exit; if not, only the container of this name.
        """
        self._workers[uid_of(pod)].finish(exit_code, container, self._clock.now)
        self._work(uid_of(pod))

    def fail_liveness(self, pod: Object, container: str) -> None:
        """Makes the liveness probe of a container fail, which makes the kubelet restart the
        container.
        """
        self._workers[uid_of(pod)].fail_liveness(container, self._clock.now)
        self._work(uid_of(pod))

    def evict(self, pod: Object, reason: str = "Evicted") -> None:
        """Evicts a pod as a node under pressure does: stops all containers and sets the phase
        Failed.

        `reason` is the reason in the pod's status.
        """
        message = "The node was low on resource: memory."
        self._workers[uid_of(pod)].evict(reason, message, self._clock.now)
        self._work(uid_of(pod))

    def retry(self) -> None:
        """Ends all back-offs, so that the kubelets now try to start each waiting container."""
        for uid, worker in list(self._workers.items()):
            worker.retry(self._clock.now)
            self._work(uid)

    def release(self) -> None:
        """Continues the deletions that the setting `levers.hangs_on_delete` has blocked.

        The caller has to reset this setting first, because it would block the deletions again.
        """
        for uid, worker in list(self._workers.items()):
            if is_terminating(worker.local.pod):
                worker.request_sync(self._clock.now)
                self._work(uid)

    def restart(self, node: str) -> None:
        """Restarts the kubelet of a node, which loses its memory; the containers go on running."""
        for uid, worker in list(self._workers.items()):
            if worker.local.pod["spec"].get("nodeName") == node:
                worker.restart(self._clock.now)
                self._work(uid)

    def resume(self, node: str) -> None:
        """Lets the kubelet of a lost node report again, and see the changes of its pods that it
        missed.

        Containers of pods that were deleted in the meantime have run until now. The kubelet stops
        them now, with the grace period of their pod.
        """
        self.lost_nodes.discard(node)
        for uid, worker in list(self._workers.items()):
            if worker.local.pod["spec"].get("nodeName") == node:
                found = self._cluster.find_by_uid(uid)
                pod = _as_deleted(worker.local.pod) if found is None else found[1]
                worker.notice(pod, self._clock.now)
                self._work(uid)

    def _on_event(self, event: Event) -> None:
        if event.kind is not POD:
            return
        pod, uid = event.object, uid_of(event.object)
        worker, name = self._workers.get(uid), pod["spec"].get("nodeName")
        if event.new is None:
            if worker is not None and name not in self.lost_nodes:
                self._forget_pod(uid)
        elif worker is None:
            if name:
                node = self._nodes.setdefault(
                    name, Node(self.levers, self._rng, self._clock.timestamp)
                )
                worker = self._workers[uid] = PodWorker(pod, node, self._clock.now)
                if self.status_reader is not None and _has_run_before(pod):
                    worker.take_over(self.status_reader, self._clock.now)
                self._wake(uid)
        elif name not in self.lost_nodes:
            worker.notice(pod, self._clock.now)
            self._wake(uid)

    def _forget_pod(self, uid: str) -> None:
        self._clock.cancel(self._timers.pop(uid, None))
        del self._workers[uid]

    def _wake(self, uid: str) -> None:
        worker = self._workers[uid]
        due, without_retries = worker.next_action, worker.next_action_without_retries
        timer = self._timers.get(uid)
        if timer is not None and not timer.cancelled:
            if timer.due == due and timer.background == (without_retries is None):
                return
            self._clock.cancel(timer)
        if due is not None:
            self._timers[uid] = self._clock.after(
                due - self._clock.now, lambda: self._work(uid), background=without_retries is None
            )

    def _work(self, uid: str) -> None:
        worker = self._workers.get(uid)
        if worker is None:
            return
        worker.advance(self._clock.now)
        found = self._cluster.find_by_uid(uid)
        if found is None and worker.local.can_be_deleted:
            self._forget_pod(uid)
        elif found is not None and found[1]["spec"]["nodeName"] not in self.lost_nodes:
            self._write(worker, found[1])
        if uid in self._workers:
            self._wake(uid)

    def _write(self, worker: PodWorker, pod: Object) -> None:
        local = worker.local
        status = local.merged(pod)
        if not deep_equal(status, pod.get("status")):
            pod = self._cluster.edit(
                POD, pod, lambda old: self._with_managed_fields({**old, "status": status})
            )
        if local.can_be_deleted:
            options = DeleteOptions(uid_of(pod), grace_seconds=0)
            self._cluster.delete(POD, *key_of(pod), options)

    def _with_managed_fields(self, pod: Object) -> Object:
        if not self.managed_fields or pod["metadata"].get("managedFields") == []:
            return pod  # see simulator.api.admission.lean_pods
        own = {
            "manager": "kubelet",
            "operation": "Update",
            "apiVersion": "v1",
            "time": self._clock.timestamp(),
            "fieldsType": "FieldsV1",
            "fieldsV1": {},
            "subresource": "status",
        }
        others = [
            entry
            for entry in pod["metadata"].get("managedFields") or []
            if entry["manager"] != "kubelet"
        ]
        return with_meta(pod, managedFields=[*others, own])


def _has_run_before(pod: Object) -> bool:
    status = pod.get("status") or {}
    return bool(status.get("containerStatuses") or status.get("phase") in COMPLETED)


def _as_deleted(pod: Object) -> Object:
    """Returns a pod with a deletion timestamp and its grace period.

    The kubelet treats a pod that the API server no longer has like a pod that is being deleted.
    """
    grace = pod["spec"].get("terminationGracePeriodSeconds", GRACE)
    gone = with_meta(pod, deletionGracePeriodSeconds=grace)
    return gone if is_terminating(gone) else with_meta(gone, deletionTimestamp="now")
