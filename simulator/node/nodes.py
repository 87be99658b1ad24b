"""Nodes: a scheduler that spreads pods evenly, and the loss and recovery of nodes.

`Nodes.lose` does what the node lifecycle controller does for a node that has stopped reporting. The
node's condition Ready becomes Unknown, and the node gets taints. The pods of the node lose Ready,
while the rest of their status stays. `TaintManager` then evicts pods that do not tolerate the
taints (pkg/controller/tainteviction).

The kubelet of a lost node does not act, so deleted pods stay Terminating. Only pods with a final
phase are deleted at once. Sources: Kubernetes v1.37.2, kube-scheduler's binding,
pkg/controller/nodelifecycle.

A pod that is bound to a node gets the zone and the region of the node as labels, in place of labels
of the same keys (plugin/pkg/admission/podtopologylabels, and `setPodNodeAndMetadata` in
pkg/registry/core/pod/storage).
"""

from collections.abc import Callable, Mapping
from functools import partial

from simulator.api.cluster import Cluster
from simulator.api.controllers import claims_of
from simulator.api.store import DeleteOptions, Event
from simulator.node.kubelet import Kubelet
from simulator.node.pod_status import conditions
from simulator.objects.clock import Clock, Timer
from simulator.objects.kinds import CLAIM, NODE, POD
from simulator.objects.objects import (
    Object,
    deep_equal,
    generation_of,
    is_terminating,
    key_of,
    labels_of,
    name_of,
    namespace_of,
    uid_of,
    with_meta,
)
from tapp.kube.tolerations import NO_EXECUTE, SILENT, seconds_of

_, UNREACHABLE = SILENT
ZONE = "topology.kubernetes.io/zone"
TOPOLOGY = (ZONE, "topology.kubernetes.io/region")
"""Labels of a node that its pods get."""


class Nodes:
    """The nodes of a cluster, and the scheduler that binds pods to the ready nodes in turn."""

    def __init__(self, cluster: Cluster, clock: Clock, kubelet: Kubelet) -> None:
        self._cluster = cluster
        self._clock = clock
        self._kubelet = kubelet
        self._next = 0
        self.keeps_zones = False
        """True if a pod is bound to a node in the zone of the last pod of its name."""
        self._zones: dict[tuple[str, str], str] = {}
        self.taints = TaintManager(cluster, clock)
        cluster.subscribe(self._on_event)

    def add(self, name: str, labels: Mapping[str, str] | None = None) -> None:
        """Adds a node with this name and these labels, which is ready."""
        labels = {"kubernetes.io/hostname": name, **(labels or {})}
        metadata = {"name": name, "labels": labels}
        node = {"apiVersion": "v1", "kind": "Node", "metadata": metadata, "spec": {}}
        created = self._cluster.create(NODE, node)
        self._cluster.edit(NODE, created, self._with_ready("True"))

    def lose(self, name: str) -> None:
        """Lets a node stop reporting, which makes its pods unready.

        The pods are evicted when they no longer tolerate the taints of the node. The containers on
        the node go on running.
        """
        self._kubelet.lost_nodes.add(name)
        node = self._cluster.get(NODE, "", name)
        taint = {"key": UNREACHABLE, "effect": NO_EXECUTE}
        self._cluster.edit(NODE, node, self._with_ready("Unknown"))
        for pod in self._cluster.list(POD):
            if pod["spec"].get("nodeName") == name:
                self._cluster.edit(POD, pod, self._without_ready)
        self._cluster.edit(NODE, node, lambda old: {**old, "spec": {"taints": [taint]}})

    def recover(self, name: str) -> None:
        """Makes a lost node ready again; its kubelet then sees the changes that it missed.

        The scheduler then tries again to bind pods that have no node.
        """
        node = self._cluster.get(NODE, "", name)
        self._cluster.edit(NODE, node, lambda old: {**self._with_ready("True")(old), "spec": {}})
        self._kubelet.resume(name)
        for pod in self._cluster.list(POD):
            self._schedule(pod)

    def _with_ready(self, status: str) -> Callable[[Object], Object]:
        now = self._clock.timestamp()
        condition = {"type": "Ready", "status": status, "lastTransitionTime": now}
        return lambda node: {
            **node,
            "status": {**(node.get("status") or {}), "conditions": [condition]},
        }

    def _without_ready(self, pod: Object) -> Object:
        """Returns a pod with its condition Ready set to False, as the node lifecycle controller
        does.

        A pod that is not Ready is returned unchanged.
        """
        status = {**(pod.get("status") or {})}
        before = status.get("conditions") or []
        observed = next((c.get("observedGeneration") for c in before if c["type"] == "Ready"), None)
        if not any(each["type"] == "Ready" and each["status"] == "True" for each in before):
            return pod
        values = {"Ready": (False, "NodeNotReady", "")}
        status["conditions"] = conditions(before, values, self._clock.timestamp(), observed)
        return {**pod, "status": status}

    def _on_event(self, event: Event) -> None:
        if event.kind is POD and event.new is not None:
            if event.old is None:
                self._note_zone(event.new)
                self._schedule(event.new)
        elif event.kind is CLAIM and event.old is None and event.new is not None:
            for pod in self._cluster.list(POD, namespace_of(event.new)):
                if name_of(event.new) in claims_of(pod):
                    self._schedule(pod)

    def _schedule(self, pod: Object) -> None:
        spec = pod["spec"]
        if not spec.get("nodeName") and not spec.get("schedulingGates"):
            uid = uid_of(pod)
            self._clock.after(self._kubelet.levers.schedule_seconds, lambda: self._bind(uid))

    def _claim_obstacle(self, pod: Object) -> str:
        """Returns kube-scheduler's message about a claim of a pod that is missing or being deleted.

        Returns an empty string if the pod can use all its claims.
        """
        for name in claims_of(pod):
            claim = self._cluster.find(CLAIM, namespace_of(pod), name)
            if claim is None:
                return f'persistentvolumeclaim "{name}" not found'
            if is_terminating(claim):
                return f'persistentvolumeclaim "{name}" is being deleted'
        return ""

    def _bind(self, uid: str) -> None:
        found = self._cluster.find_by_uid(uid)
        if found is None or found[1]["spec"].get("nodeName"):
            return
        pod = found[1]
        names = [name_of(node) for node in self._cluster.list(NODE)]
        ready_nodes = [name for name in names if name not in self._kubelet.lost_nodes]
        now = self._clock.timestamp()
        generation = generation_of(pod) if self._kubelet.levers.reports_generation else None
        before = pod["status"].get("conditions") or []
        claim_obstacle = self._claim_obstacle(pod)
        value = True, "", ""
        if not ready_nodes or claim_obstacle or self._kubelet.levers.unschedulable(pod):
            message = claim_obstacle or self._kubelet.levers.unschedulable_message(pod, len(names))
            value = False, "Unschedulable", message
        after = conditions(before, {"PodScheduled": value}, now, generation)
        status = {**pod["status"], "conditions": after}
        if not value[0]:
            self._cluster.edit(POD, pod, lambda old: {**old, "status": status})
            return
        nodes = self._preferred(pod, ready_nodes)
        node = nodes[self._next % len(nodes)]
        self._next += 1
        labels = labels_of(self._cluster.get(NODE, "", node))
        copied = {key: labels[key] for key in TOPOLOGY if key in labels}
        self._note_zone(
            self._cluster.edit(
                POD,
                pod,
                lambda old: {
                    **(with_meta(old, labels={**labels_of(old), **copied}) if copied else old),
                    "spec": {**old["spec"], "nodeName": node},
                    "status": status,
                },
            )
        )

    def _note_zone(self, pod: Object) -> None:
        """Notes the zone of a bound pod for the next pod of its name."""
        zone = labels_of(pod).get(ZONE)
        if zone and pod["spec"].get("nodeName"):
            self._zones[key_of(pod)] = zone

    def _preferred(self, pod: Object, ready_nodes: list[str]) -> list[str]:
        """Returns the ready nodes in the zone of the last pod of this name.

        If there are none, returns the ready nodes that have a zone, or else all ready nodes.
        Without `keeps_zones` returns all ready nodes.
        """
        if not self.keeps_zones:
            return ready_nodes
        zones = {
            name: labels_of(self._cluster.get(NODE, "", name)).get(ZONE) for name in ready_nodes
        }
        wanted = self._zones.get(key_of(pod))
        same = [name for name in ready_nodes if wanted and zones[name] == wanted]
        return same or [name for name in ready_nodes if zones[name]] or ready_nodes


class TaintManager:
    """Evicts pods from nodes whose NoExecute taints they do not tolerate.

    The manager checks a pod when the taints of its node, its node or its tolerations change. The
    first toleration that matches a taint decides about this taint. A pending eviction is canceled
    if the taints are removed, or if the pod now tolerates them without a time limit. If a change
    only raises or lowers `tolerationSeconds`, the time of a pending eviction stays. Not modeled:
    the condition DisruptionTarget.
    """

    def __init__(self, cluster: Cluster, clock: Clock) -> None:
        self._cluster = cluster
        self._clock = clock
        self._pending: dict[str, Timer] = {}
        cluster.subscribe(self._on_event)

    def _on_event(self, event: Event) -> None:
        old, new = event.old, event.new
        if event.kind is NODE and new is not None:
            if not deep_equal(_taints(old), _taints(new)):
                for pod in self._cluster.list(POD):
                    if pod["spec"].get("nodeName") == name_of(new):
                        self._check(pod, _taints(new))
        elif event.kind is POD and new is None:
            self._cancel(uid_of(event.object))
        elif event.kind is POD and new is not None and new["spec"].get("nodeName"):
            fields = ("nodeName", "tolerations")
            if old is None or any(old["spec"].get(f) != new["spec"].get(f) for f in fields):
                node = self._cluster.find(NODE, "", new["spec"]["nodeName"])
                self._check(new, _taints(node))

    def _check(self, pod: Object, taints: list[Object]) -> None:
        uid = uid_of(pod)
        seconds = _tolerated_seconds(pod, taints)
        if seconds is None:
            self._cancel(uid)
        elif not seconds or uid not in self._pending:
            self._cancel(uid)
            self._pending[uid] = self._clock.after(seconds, partial(self._evict, uid))

    def _cancel(self, uid: str) -> None:
        self._clock.cancel(self._pending.pop(uid, None))

    def _evict(self, uid: str) -> None:
        del self._pending[uid]
        found = self._cluster.find_by_uid(uid)
        if found is not None and not is_terminating(found[1]):
            self._cluster.delete(POD, *key_of(found[1]), DeleteOptions(uid))


def _taints(node: Object | None) -> list[Object]:
    taints = (node or {}).get("spec", {}).get("taints") or []
    return [taint for taint in taints if taint["effect"] == NO_EXECUTE]


def _tolerated_seconds(pod: Object, taints: list[Object]) -> float | None:
    tolerations = pod["spec"].get("tolerations") or []
    times = [seconds_of(tolerations, taint) for taint in taints]
    return min((time for time in times if time is not None), default=None)
