"""Runs one pod on one node without a cluster: its pod worker, a clock, and a diary of its statuses.

The pod worker is the part of the simulated kubelet that handles a single pod.
"""

from __future__ import annotations

import random
from datetime import UTC, datetime
from typing import Any

from simulator.node.levers import Levers
from simulator.node.machine import Node
from simulator.node.pod_worker import PodWorker
from simulator.objects.clock import EPOCH
from simulator.objects.objects import Object

STEP = 0.05


class OnePod:
    """Simulates a pod on a node; time passes only in `run`.

    Methods that return the pod itself can be chained.

    Attributes:
        pod: the API object.
        now: the time in seconds since the start.
        levers: settings of the simulated kubelet.
        worker: the pod worker.
    """

    def __init__(self, seed: int = 1, image: str = "app:1", **spec: Any) -> None:
        """Builds a pod with one container `app`.

        `spec` has further fields of the pod spec; its key `container` has further fields of the
        container. `seed` determines random choices.
        """
        container = {"name": "app", "image": image, **spec.pop("container", {})}
        self.pod: Object = {
            "metadata": {"name": "p", "namespace": "default", "uid": "u", "generation": 1},
            "spec": {"containers": [container], **spec},
            "status": {"phase": "Pending"},
        }
        self.now = 0.0
        self.levers = Levers(stop_seconds=2.0, jitter=0.0)
        self.node = Node(self.levers, random.Random(seed), format_time)
        self.worker = PodWorker(self.pod, self.node, 0.0)
        self.diary: list[tuple[float, Object]] = []
        """Pairs of a time and the status that was published then, in order."""

    def run(self, seconds: float) -> OnePod:
        """Lets time pass; each status that the pod worker publishes is stored at once."""
        end = self.now + seconds
        while self.now < end - 1e-9:
            self.now = min(self.now + STEP, end)
            self.worker.advance(self.now)
            self.write()
        return self

    def write(self) -> None:
        """Writes the status that the pod worker publishes into the API object and the diary, if it
        has changed.
        """
        status = self.worker.local.merged(self.pod)
        if status != self.pod["status"]:
            self.pod = {**self.pod, "status": status}
            self.diary.append((self.now, status))
            self.worker.notice(self.pod, self.now)

    def edit(self, image: str, container: int = 0, kind: str = "containers") -> OnePod:
        """Changes the image of a container in the spec, as a user does.

        `container` is its index in the list `kind`, which is `containers` or `initContainers`.
        """
        spec = self.pod["spec"]
        changed = list(spec[kind])
        changed[container] = {**changed[container], "image": image}
        generation = self.pod["metadata"]["generation"] + 1
        meta = {**self.pod["metadata"], "generation": generation}
        self.pod = {**self.pod, "metadata": meta, "spec": {**spec, kind: changed}}
        self.worker.notice(self.pod, self.now)
        return self

    def up(self) -> OnePod:
        """Lets the pod start within five seconds, and clears the diary."""
        self.run(5.0)
        self.diary.clear()
        return self

    def seen(self) -> list[str]:
        """Returns a short line for each status in the diary; equal lines that follow each other are
        merged.
        """
        lines: list[str] = []
        for _, status in self.diary:
            line = brief(status)
            if line not in lines[-1:]:
                lines.append(line)
        return lines

    @property
    def status(self) -> Object:
        """The published status of the pod's first container."""
        status: Object = self.pod["status"]["containerStatuses"][0]
        return status

    @property
    def phase(self) -> str:
        return str(self.pod["status"]["phase"])

    @property
    def ready(self) -> bool:
        """True if the published condition Ready is True."""
        return self.condition("Ready")["status"] == "True"

    def condition(self, kind: str) -> Object:
        """Returns the published condition of this type."""
        conditions: list[Object] = self.pod["status"]["conditions"]
        return next(one for one in conditions if one["type"] == kind)

    @property
    def can_serve(self) -> bool:
        """True if the processes of the pod can serve now; the published status may say something
        else.
        """
        return self.worker.local.can_serve(self.now)


def format_time(seconds: float) -> str:
    moment = datetime.fromtimestamp(EPOCH.timestamp() + seconds, UTC)
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")


def brief(status: Object) -> str:
    """Returns a pod status as a short line: observed generation, image, state, and Ready if it is
    True.
    """
    one = status["containerStatuses"][0]
    state, detail = next(iter(one["state"].items()))
    image = one["image"].rpartition("/")[2]
    ready = next(c["status"] for c in status["conditions"] if c["type"] == "Ready") == "True"
    words = [f"{status.get('observedGeneration')}", image, detail.get("reason", state)]
    return " ".join([*words, *(["Ready"] if ready else [])])
