"""A fake kubelet: nodes that run pods on paper, with everything in-place updates can meet.

What a pod does is `simulator.node.pod_worker`, the same as in the simulator; here is its I/O. One
thread owns every pod's state and a heap of timers; a small pool sends the status patches, each
guarded by resourceVersion and never two of one pod at a time. What it sent is not remembered: the
status that ought to be is compared with the one observed, so it also mends what others overwrote.
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
from .kubelet_levers import Levers, key_of
from .nodes import Nodes

Work = Callable[[], None]
RETRY = 0.2
BOOT = time.time() - time.monotonic()
SENDERS = 8


class FakeKubelet:
    """The kubelet of every fake node. Use as a context manager, or `start` and `stop`."""

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
        """Errors of the kubelet itself; a test run ends by asserting that there are none."""

    def start(self) -> FakeKubelet:
        """Makes the nodes and begins to run pods."""
        self.levers.reports_generation = self._kube.pods_tell_what_was_seen
        self.nodes.start()
        self._thread.start()
        self._pods.start()
        return self

    def stop(self) -> None:
        """Stops; the nodes go silent (and are removed where the cluster is not ours)."""
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

    # Levers that act at once; all others are attributes of `levers`

    def finish(self, namespace: str, name: str, code: int = 0) -> None:
        """Lets the pod's running containers exit with this code."""

        def work() -> None:
            for uid, run in self._runs.items():
                if key_of(run.local.pod) == f"{namespace}/{name}":
                    run.finish(code, None, time.monotonic())
                    self._advance(uid)
                    return
            raise LookupError(f"no pod {namespace}/{name} on a fake node")

        self._call(work)

    def poke(self) -> None:
        """Looks at every pod again, after a change of `levers` that should count at once."""

        def work() -> None:
            for uid, run in list(self._runs.items()):
                run.retry(time.monotonic())
                self._advance(uid)

        self._call(work)

    def lose(self, node: str) -> None:
        """The node goes silent: no heartbeat, no status, no deletion; its containers run on."""
        self.nodes.lose(node)

    def recover(self, node: str) -> None:
        """The node is back and catches up with everything that was asked of it meanwhile."""
        self.nodes.recover(node)

        def work() -> None:
            for uid, run in list(self._runs.items()):
                run.notice(self._pods_seen[uid], time.monotonic())
                self._advance(uid)

        self._call(work)

    def _call(self, work: Work) -> None:
        """Runs work in the loop's thread and waits for it."""
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
            except Exception as error:  # noqa: BLE001 - one pod's trouble must not stop the rest
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
            wait = RETRY  # the API server is away
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
    """A time of the monotonic clock, as Kubernetes writes it."""
    return datetime.fromtimestamp(BOOT + seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def version(obj: Json) -> int:
    """The resourceVersion as the number it is."""
    return int(obj["metadata"]["resourceVersion"])


def differs(wanted: Json, seen: Json) -> bool:
    """True if the observed status lacks anything of the wanted one."""
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
    """Parts of a condition that count: its times follow from the rest."""
    return tuple(condition.get(key) for key in ("status", "reason", "observedGeneration"))
