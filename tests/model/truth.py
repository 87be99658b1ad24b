"""Knows the truth about the pods of a TApp: the processes on the simulated nodes.

A pod's status may be older than the state of its processes, so the judges of the model ask `Truth`.
"""

from __future__ import annotations

from math import floor
from typing import Any

from simulator.node.container import Container
from simulator.node.pod_worker import PodWorker
from simulator.world import World
from tests.hook_calls import drains, gates, images, is_open, phase, ready

Document = dict[str, Any]


class Truth:
    """Knows the processes of one TApp's pods; `pods` are the TApp's pods in the store, by name."""

    def __init__(self, world: World, pods: dict[str, Document]) -> None:
        self._world = world
        self._pods = pods

    def can_serve(self, name: str, spec: Document) -> bool:
        """Returns True if each process of a pod runs the newest spec and has served for
        minReadySeconds.

        A pod with a readiness gate serves from the time when the gate is open and its kubelet has
        seen that. The instance serves until the write that makes the pod leave its Services.
        """
        pod, worker = self._pods.get(name), self._worker(name)
        if pod is None or worker is None or pod["metadata"].get("deletionTimestamp"):
            return False
        now, wanted = self._world.clock.now, images(pod)
        if self._is_drained(pod):
            return False
        if phase(pod) in ("Succeeded", "Failed") or not worker.local.can_serve(now):
            return False
        runs = [(one.name, one.runs[0]) for one in _needed(worker)]
        if any(run.image != wanted[name] for name, run in runs):
            return False
        since = max(max(run.started, self._from(worker, run.id)) for _, run in runs)
        # Times in statuses are whole seconds.
        return now - floor(since) + 0.001 >= int(spec.get("minReadySeconds") or 0)

    def _is_drained(self, pod: Document) -> bool:
        """Returns True if a pod with a readiness gate is not in its Services, or is about to leave
        them.
        """
        if not gates(pod):
            return False
        looked = ready(pod) or pod["spec"].get("nodeName") in self._world.kubelet.lost_nodes
        return drains(pod) or not is_open(pod) or not looked

    def runs_wanted(self, pod: Document) -> bool:
        """Returns True if each process of a pod runs the image of the pod's spec, and serves."""
        worker, wanted = self._world.kubelet.worker(pod), images(pod)
        if worker is None or not worker.local.can_serve(self._world.clock.now):
            return False
        return all(one.runs[0].image == wanted[one.name] for one in _needed(worker))

    def _from(self, worker: PodWorker, id: str) -> float:
        """Returns the time since which the probes of a running container pass; 0 if it has no
        probes.

        `id` is the containerID of the container.
        """
        for one in _needed(worker):
            if one.runs and one.runs[0].id == id and one.probers:
                return one.probes_pass_from(one.runs[0])
        return 0.0

    def ended_by_update(self, name: str) -> bool:
        """Returns True if a pod has ended while a main container still ran an image that an update
        replaces.
        """
        pod, worker = self._pods.get(name), self._worker(name)
        if pod is None or worker is None or phase(pod) not in ("Succeeded", "Failed"):
            return False
        wanted = images(pod)
        return any(one.runs and one.runs[0].image != wanted[one.name] for one in worker.local.mains)

    def account(self, name: str) -> str:
        """Describes the last process of each container in a few words, for the message of a
        violation.
        """
        worker = self._worker(name)
        if worker is None:
            return "nothing"
        words = []
        for one in worker.local.all:
            for run in one.runs[:1]:
                state = "stopping" if run.stopping else "alive"
                state = state if run.alive else f"ended {run.exit_code}"
                serves = f"serves from {one.probes_pass_from(run):.2f}" if one.probers else ""
                words.append(f"{run.image} {state} since {run.started:.2f} {serves}".strip())
        return ", ".join(words) or "no process"

    def _worker(self, name: str) -> PodWorker | None:
        pod = self._pods.get(name)
        return None if pod is None else self._world.kubelet.worker(pod)


def _needed(worker: PodWorker) -> list[Container]:
    sidecars = [one for one in worker.local.inits if one.sidecar]
    return [*worker.local.mains, *sidecars]
