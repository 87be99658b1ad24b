"""A fake kubelet: its nodes run pods without containers, with all states that updates in place may
meet.

`simulator.node.pod_worker` decides what a pod does, as in the simulator. This module does the input
and output. One thread owns the state of all pods and a heap of timers. A small pool sends the
status patches, guarded by resourceVersion and never two of one pod at once. The kubelet compares
the expected status with the observed one, so it also corrects foreign changes.
"""

from __future__ import annotations

import heapq
import itertools
import queue
import random
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from urllib3.exceptions import HTTPError

from simulator.node.machine import Node
from simulator.node.pod_worker import PodWorker

from .adopting import adopt
from .informer import Informer
from .kube import Json, Kube, KubeError
from .kubelet_controls import Levers, key_of
from .nodes import Nodes

Work = Callable[[], None]
RETRY = 0.2
BOOT = time.time() - time.monotonic()
SENDERS = 8


class FakeKubelet:
    """The kubelet of all fake nodes. Use it as a context manager, or call `start` and `stop`."""

    def __init__(
        self,
        kubeconfig: Path,
        nodes: Sequence[str] = ("fake-0", "fake-1", "fake-2"),
        *,
        context: str | None = None,
        tainted: bool = False,
        levers: Levers | None = None,
    ) -> None:
        self.levers = levers or Levers()
        self._kube = Kube(kubeconfig, context=context, user_agent="tapp-e2e-kubelet")
        self.nodes = Nodes(Kube(kubeconfig, context=context, user_agent="tapp-e2e-node"), nodes,
                           tainted=tainted)  # fmt: skip
        self._runs: dict[str, PodWorker] = {}
        self._pods_seen: dict[str, Json] = {}
        self._nodes: dict[str, Node] = {}
        self._inbox: queue.SimpleQueue[Work | None] = queue.SimpleQueue()
        self._timers: list[tuple[float, int, str]] = []
        self._wakes: dict[str, float] = {}
        self._busy: set[str] = set()
        self._numbers = itertools.count()
        self._senders = ThreadPoolExecutor(SENDERS, "kubelet-sender")
        self._thread = threading.Thread(target=self._loop, name="kubelet", daemon=True)
        self._pods = Informer(self._kube, "/api/v1/pods", self._heard)
        self.failures: list[str] = []
        """Errors of the kubelet itself. The fixture asserts that there are none."""

    def start(self) -> FakeKubelet:
        """Creates the nodes and starts to run pods."""
        self.levers.reports_generation = self._kube.pods_tell_what_was_seen
        self.nodes.start()
        self._thread.start()
        self._pods.start()
        return self

    def stop(self) -> None:
        """Stops the kubelet; the nodes send no more heartbeats, and are deleted on a foreign
        cluster.
        """
        self._pods.stop()
        self._inbox.put(None)
        self._thread.join(10)
        self._senders.shutdown(cancel_futures=True)
        self.nodes.stop()
        self._kube.close()

    def __enter__(self) -> FakeKubelet:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()

    # Levers with an immediate effect; the others are attributes of `levers`

    def finish(self, namespace: str, name: str, code: int = 0) -> None:
        """Lets all running containers of a pod exit with this code."""

        def work() -> None:
            for uid, run in self._runs.items():
                if key_of(run.local.pod) == f"{namespace}/{name}":
                    run.finish(code, None, time.monotonic())
                    self._advance(uid)
                    return
            raise LookupError(f"no pod {namespace}/{name} on a fake node")

        self._call(work)

    def poke(self) -> None:
        """Processes all pods again, so that a change of `levers` has an immediate effect."""

        def work() -> None:
            for uid, run in list(self._runs.items()):
                run.retry(time.monotonic())
                self._advance(uid)

        self._call(work)

    def lose(self, node: str) -> None:
        """Disconnects a node: no heartbeats, statuses or deletions, while its containers continue
        to run.
        """
        self.nodes.lose(node)

    def recover(self, node: str) -> None:
        """Reconnects a node, which then processes all changes of its pods in the meantime."""
        self.nodes.recover(node)

        def work() -> None:
            for uid, run in list(self._runs.items()):
                run.notice(self._pods_seen[uid], time.monotonic())
                self._advance(uid)

        self._call(work)

    def _call(self, work: Work) -> None:
        """Runs a function in the loop's thread and waits for it."""
        done: Future[None] = Future()

        def wrapped() -> None:
            try:
                work()
            except Exception as error:  # noqa: BLE001 - raised in the caller's thread
                done.set_exception(error)
            else:
                done.set_result(None)

        self._inbox.put(wrapped)
        done.result(30)

    # The loop

    def _loop(self) -> None:
        while True:
            wait = self._timers[0][0] - time.monotonic() if self._timers else None
            work: Work | None = None
            try:
                work = self._inbox.get(timeout=None if wait is None else max(wait, 0))
                if work is None:
                    return
            except queue.Empty:
                work = self._due
            try:
                work()
            except Exception as error:  # noqa: BLE001 - a failure with one pod must not stop the others
                self.failures.append(f"{type(error).__name__}: {error}")

    def _due(self) -> None:
        now = time.monotonic()
        while self._timers and self._timers[0][0] <= now:
            at, _, uid = heapq.heappop(self._timers)
            if self._wakes.get(uid) == at:
                del self._wakes[uid]
                self._advance(uid)

    def _heard(self, change: str, pod: Json) -> None:
        if pod["spec"].get("nodeName") in self.nodes.names:
            self._inbox.put(lambda: self._observe(change, pod))

    def _observe(self, change: str, pod: Json) -> None:
        uid = pod["metadata"]["uid"]
        if change == "DELETED":
            for table in (self._runs, self._wakes, self._pods_seen):
                table.pop(uid, None)
            return
        if uid not in self._runs:
            self._runs[uid] = self._begin(pod)
        elif version(pod) < version(self._pods_seen[uid]):
            return
        self._note(uid, pod)
        self._advance(uid)

    def _begin(self, pod: Json) -> PodWorker:
        number = next(self._numbers)
        address = f"10.{64 + number // 65536 % 64}.{number // 256 % 256}.{number % 256}"
        node = self._nodes.setdefault(
            pod["spec"]["nodeName"], Node(self.levers, random.Random(), stamp)
        )
        run = PodWorker(pod, node, time.monotonic(), address)
        adopt(run.local, time.monotonic())
        return run

    def _note(self, uid: str, pod: Json) -> None:
        self._pods_seen[uid] = pod
        if pod["spec"]["nodeName"] not in self.nodes.lost:
            self._runs[uid].notice(pod, time.monotonic())

    def _advance(self, uid: str) -> None:
        run = self._runs.get(uid)
        if run is None:
            return
        run.advance(time.monotonic())
        wake = run.next_action
        if wake is not None and self._wakes.get(uid) != wake:
            self._wake_at(uid, wake)
        pod = self._pods_seen[uid]
        if uid in self._busy or pod["spec"]["nodeName"] in self.nodes.lost:
            return
        status = run.local.merged(pod)
        if differs(status, pod.get("status") or {}):
            self._busy.add(uid)
            self._senders.submit(self._send, uid, pod, status)
        elif run.local.can_be_deleted:
            self._busy.add(uid)
            self._senders.submit(self._remove, uid, pod)

    def _wake_at(self, uid: str, at: float) -> None:
        self._wakes[uid] = at
        heapq.heappush(self._timers, (at, next(self._numbers), uid))

    # In the senders' threads

    def _send(self, uid: str, pod: Json, status: Json) -> None:
        meta = pod["metadata"]
        patch = {
            "metadata": {"uid": uid, "resourceVersion": meta["resourceVersion"]},
            "status": status,
        }
        answer: Json | None = None
        wait = RETRY
        try:
            path = self._kube.path("v1", "pods", meta["namespace"], meta["name"], "status")
            answer = self._kube.patch(path, patch)
        except KubeError as error:
            if error.status == 409:
                answer, wait = self._read(pod), 0
            elif error.status not in (404, 429) and error.status < 500:
                self.failures.append(f"status of {meta['namespace']}/{meta['name']}: {error}")
        except (OSError, HTTPError):
            wait = RETRY  # the API server is down
        self._inbox.put(lambda: self._sent(uid, answer, wait))

    def _read(self, pod: Json) -> Json | None:
        meta = pod["metadata"]
        try:
            found = self._kube.find("v1", "pods", meta["namespace"], meta["name"])
        except (KubeError, OSError, HTTPError):
            return None
        return found if found and found["metadata"]["uid"] == meta["uid"] else None

    def _remove(self, uid: str, pod: Json) -> None:
        meta = pod["metadata"]
        try:
            self._kube.delete(
                "v1", "pods", meta["namespace"], meta["name"],
                gracePeriodSeconds=0, preconditions={"uid": uid},
            )  # fmt: skip
        except (KubeError, OSError, HTTPError):
            self._inbox.put(lambda: self._sent(uid, None, RETRY))
            return
        self._inbox.put(lambda: self._sent(uid, None, None))

    def _sent(self, uid: str, answer: Json | None, retry: float | None) -> None:
        self._busy.discard(uid)
        run = self._runs.get(uid)
        if run is None:
            return
        if answer is not None:
            if version(answer) > version(self._pods_seen[uid]):
                self._note(uid, answer)
            self._advance(uid)
        elif retry is not None:
            self._wake_at(uid, time.monotonic() + retry)


def stamp(seconds: float) -> str:
    """Returns a time of the monotonic clock in Kubernetes' format."""
    return datetime.fromtimestamp(BOOT + seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def version(obj: Json) -> int:
    """Returns the resourceVersion as a number."""
    return int(obj["metadata"]["resourceVersion"])


def differs(wanted: Json, seen: Json) -> bool:
    """Returns True if the observed status lacks a field or a condition of the wanted status."""
    for key, value in wanted.items():
        if key == "conditions":
            if {c["type"]: plain(c) for c in value} != {
                c["type"]: plain(c) for c in seen.get(key) or []
            }:
                return True
        elif seen.get(key) != value:
            return True
    return False


def plain(condition: Json) -> tuple[Any, ...]:
    """Returns the parts of a condition that are compared; its times are not among them."""
    return tuple(condition.get(key) for key in ("status", "reason", "observedGeneration"))
