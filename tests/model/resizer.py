"""Simulates the component resize in the model: the service's own `Resizer`, and a faulty API
server.

The simulated clock replaces the thread of the `Resizer`. A PATCH is sent a moment after the sync,
and then arrives, is lost, or is refused.
"""

from __future__ import annotations

import os
from queue import Queue
from typing import Any

from hooks.service.api_errors import RejectedError, TemporaryError
from hooks.service.resizes import Resizer
from simulator.api.store import ApiError, ConflictError
from simulator.world import World
from tapp.answer.resize_patches import Patch, patches
from tapp.plan import Plan
from tests.model.resizes import ResizeJudge

Document = dict[str, Any]

FAULTS = ("refused", "lost", "answer lost")


class SteppedResizer(Resizer):
    """Sends resizes as a `Resizer` does, but without a thread: a call of `send` sends the PATCHes
    in its queue.
    """

    def _ensure_thread(self) -> None:
        if self._pid != os.getpid():
            self._queue: Queue[tuple[float, Patch] | None] = Queue(self._queued)
            self._stopped, self._pid = False, os.getpid()

    def send(self) -> None:
        """Sends all PATCHes in the queue to the API server."""
        if self._pid:
            self._queue.put(None)
            self._run()


class Component:
    """Simulates two workers of the service that share the syncs of one TApp, and the API server's
    faults.
    """

    def __init__(self, world: World, judge: ResizeJudge) -> None:
        self.pause = 0.05
        """Seconds that a PATCH waits in the queue before it is sent."""
        self.late = 0.0
        """Seconds that a PATCH needs to arrive at the API server."""
        self.faults: list[str] = []
        """Faults of the next PATCHes, each one of `FAULTS`; the last of the list comes first."""
        self._world = world
        self._judge = judge
        self._asked = 0
        self.restart()

    def restart(self) -> None:
        """Replaces the workers' processes, so that PATCHes in queues and everything in memory are
        lost.
        """
        clock = self._world.clock
        self._workers = [SteppedResizer(self.resize, clock=lambda: clock.now) for _ in range(2)]

    def ask(self, plan: Plan) -> None:
        """Passes the plan of a sync to the worker that handled the sync; the workers take turns."""
        for patch in patches(plan):
            self._judge.ask(patch)
        self._asked += 1
        worker = self._workers[self._asked % len(self._workers)]
        worker.queue(plan)
        self._world.clock.after(self.pause, worker.send)

    def resize(self, namespace: str, name: str, patch: Document) -> bool:
        """Patches a pod as `hooks.service.cluster.Cluster.resize` does, or fails as `faults` says.

        Returns False if the pod has changed in the meantime (409 Conflict).
        """
        fault = self.faults.pop() if self.faults else ""
        if self.late and not fault:
            self._world.clock.after(self.late, lambda: self._tried(namespace, name, patch))
            raise TemporaryError("no answer in time")
        if fault == "lost":
            raise TemporaryError("it never arrived")
        if fault == "refused":
            self._judge.troubled = True
            raise RejectedError("422 Unprocessable Entity: injected")
        done = self._arrives(namespace, name, patch)
        if fault == "answer lost":
            raise TemporaryError("the answer never arrived")
        return done

    def _tried(self, namespace: str, name: str, patch: Document) -> None:
        try:
            self._arrives(namespace, name, patch)
        except RejectedError:
            return

    def _arrives(self, namespace: str, name: str, patch: Document) -> bool:
        try:
            pod = self._world.patch_resize(namespace, name, patch)
        except ConflictError:
            return False
        except ApiError as error:
            self._judge.refused(name, error)
            raise RejectedError(str(error)) from None
        self._judge.sent(patch, pod)
        return True
