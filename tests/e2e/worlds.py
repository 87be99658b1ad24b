"""Two worlds for the same stories: the simulator in memory, and a real API server.

After each step, both return in the same form which children Metacontroller wrote, and the current
state of all objects.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import msgspec
from urllib3.exceptions import HTTPError

from simulator.api.admission import lean_pods
from simulator.node.levers import KILLED
from simulator.objects.objects import changed_paths
from simulator.recording import IGNORED_PATHS
from tests.scenarios.life import Life

from . import audit
from .cluster import Cluster
from .edits import ACCOUNT, BAD, GROUP, Step, Story
from .informer import Informer
from .kube import Json, Kube
from .kubelet import FakeKubelet
from .metacontroller import USER
from .normalize import FAILURES, normal
from .policies import lean_everywhere
from .proxy import HookProxy

CHILDREN = {"pods": "Pod", "persistentvolumeclaims": "PersistentVolumeClaim"}
QUIET = 3.0
"""Seconds; longer than any pause of the service, of the fake kubelet and of the garbage
collector.
"""
STILL = 9.0
"""Seconds without a change but reports of kubelets about containers that do not start."""
STALE = (404, 409)
"""Refusals of writes based on an old observation. The next sync decides again."""
Writes = dict[str, list[str]]
"""For each child, the writes to it in order."""
REFUSED = " -> Invalid"


def told(verb: str, paths: tuple[str, ...] = (), outcome: str = "ok") -> str:
    """Returns a write as one line."""
    tail = "" if outcome == "ok" else f" -> {outcome}"
    shown = sorted(path for path in paths if not path.endswith(FAILURES))
    return f"{verb} {', '.join(shown)}".strip() + tail


def split(writes: Writes) -> tuple[Writes, Writes]:
    """Returns the accepted writes in order, and the set of refused writes.

    A refused write is retried at later syncs as often as time allows. So only the sets of refused
    writes can be compared, at the end of a story.
    """
    accepted: Writes = {}
    refused: Writes = {}
    for child, lines in writes.items():
        for kind, chosen in (
            (accepted, [line for line in lines if REFUSED not in line]),
            (refused, sorted({line for line in lines if REFUSED in line})),
        ):
            if chosen:
                kind[child] = chosen
    return accepted, refused


class Simulated:
    """A story in the simulator."""

    def __init__(self, story: Story, *, reports_generation: bool = True) -> None:
        self.story = story
        self.life = Life(policies=[lean_pods] if lean_everywhere() else ())
        behaviour = self.life.world.kubelet.levers
        behaviour.bad_images.add(BAD)
        behaviour.reports_generation = reports_generation

    def play(self, step: Step) -> None:
        """Plays one step and waits until nothing changes."""
        world, name = self.life.world, self.story.name
        match step.what:
            case "apply":
                self.life.begin(*(each for each in step.documents if each["kind"] != ACCOUNT))
            case "patch":
                world.patch("TApp", name, step.patch)
            case "delete":
                world.delete("TApp", name, propagation=step.propagation)  # type: ignore[arg-type]
            case "delete pod":
                world.delete("Pod", step.pod)
            case "finish":
                world.kubelet.finish(world.get("Pod", step.pod), step.code)
            case "drift":
                world.patch("Pod", step.pod, step.patch)
        self.life.settle(allow_errors=True)
        if step.what == "finish":
            # In the real world, the back-off of a second exit is short and over when nothing
            # changes any more.
            world.kubelet.retry()
            self.life.settle(allow_errors=True)

    def writes(self) -> Writes:
        """Returns Metacontroller's writes to children since the last call."""
        found: Writes = defaultdict(list)
        for write in self.life.news():
            # The names of ControllerRevisions depend on uids, which differ between worlds.
            if write.kind not in ("TApp", "ControllerRevision"):
                told_so = told(write.verb, write.paths, write.outcome)
                found[f"{write.kind} {write.name}"].append(told_so)
        return found

    def state(self) -> dict[str, Json]:
        """Returns all objects by kind and name."""
        world = self.life.world
        kinds = ("TApp", *CHILDREN.values())
        return normal([obj for kind in kinds for obj in world.list(kind)], "default")


class Real:
    """Many stories at once on a real API server, in one namespace."""

    def __init__(
        self, cluster: Cluster, kube: Kube, kubelet: FakeKubelet, proxy: HookProxy, namespace: str
    ) -> None:
        assert cluster.audit is not None
        self.audit = cluster.audit
        self.kube = kube
        self.kubelet = kubelet
        self.namespace = namespace
        self.stale: Counter[str] = Counter()
        self._proxy = proxy
        self._mark = self.audit.mark()
        self._forms: dict[tuple[str, str, str], bytes] = {}
        self._shapes: dict[tuple[str, str], bytes] = {}
        self._lock = threading.Lock()
        self._last = time.monotonic()
        paths = [
            *(kube.path("v1", plural, namespace) for plural in CHILDREN),
            kube.path(GROUP, "tapps", namespace),
        ]
        self._watches = [Informer(kube, path, self._heard).start() for path in paths]
        kubelet.levers.bad_images.add(BAD)
        kubelet.levers.stop_code = KILLED

    def stop(self, timeout: float = 240) -> None:
        """Deletes all TApps, so that no later test waits behind them in a queue, and stops the
        watches.
        """
        tapps = self.kube.path(GROUP, "tapps", self.namespace)
        deadline = time.monotonic() + timeout
        while self.kube.list_all(GROUP, "tapps", self.namespace):
            assert time.monotonic() < deadline, "TApps are still there"
            # Hundreds of deletions may take longer than a request may.
            with contextlib.suppress(HTTPError):
                self.kube.request("DELETE", tapps)
            time.sleep(0.5)
        for watch in self._watches:
            watch.stop()

    def _heard(self, _how: str, obj: Json) -> None:
        meta = {key: value for key, value in obj["metadata"].items() if key != "managedFields"}
        form = msgspec.json.encode(obj | {"metadata": meta})
        key, shape = (obj["kind"], meta["name"]), _shape(obj)
        with self._lock:
            self._forms[obj["kind"], meta["name"], meta["resourceVersion"]] = form
            if self._shapes.get(key) != shape:
                self._shapes[key], self._last = shape, time.monotonic()

    def play(self, story: Story, step: Step) -> None:
        """Plays one step of one story. `settle` waits for all stories."""
        kube, namespace = self.kube, self.namespace
        tapp = kube.path(GROUP, "tapps", namespace, story.name)
        pod = kube.path("v1", "pods", namespace, step.pod or None)
        match step.what:
            case "apply":
                for each in step.documents:
                    metadata = each["metadata"] | {"namespace": namespace}
                    kube.apply(each | {"metadata": metadata})
            case "patch":
                kube.patch(tapp, step.patch)
            case "delete":
                kube.delete(
                    GROUP, "tapps", namespace, story.name, propagationPolicy=step.propagation
                )
            case "delete pod":
                kube.delete("v1", "pods", namespace, step.pod)
            case "finish":
                self.kubelet.finish(namespace, step.pod, step.code)
            case "drift":
                kube.patch(pod, step.patch)

    def settle(self, *, complete: bool, timeout: float = 240) -> None:
        """Waits until for a while nothing has changed and no hook was called.

        If a pull fails or a container crashes, kubelets send reports and hooks are called forever.
        In that case a longer time without other changes is enough. With `complete`, every TApp must
        have finished its rollout or be paused.
        """
        deadline = time.monotonic() + timeout
        self._last = called = time.monotonic()
        calls = self._proxy.count
        while True:
            time.sleep(0.1)
            now = time.monotonic()
            if self._proxy.count != calls:
                calls, called = self._proxy.count, now
            still, silent = now - self._last, now - max(self._last, called)
            rest = silent >= QUIET or still >= STILL
            if rest and not self._moving(complete=complete):
                return
            assert now < deadline, f"no rest: {self._moving(complete=complete)[:20]}"

    def _moving(self, *, complete: bool) -> list[str]:
        """Returns TApps that Metacontroller has not observed or whose rollout continues, and
        objects that are being deleted.
        """
        moving = []
        for watch in self._watches:
            for obj in watch.objects().values():
                meta, status = obj["metadata"], obj.get("status") or {}
                late = under_way = False
                if obj["kind"] == "TApp":
                    late = status.get("observedGeneration") != meta["generation"]
                    under_way = complete and any(
                        each["type"] == "Progressing" and each["status"] == "True"
                        for each in status.get("conditions") or []
                    )
                if late or under_way or "deletionTimestamp" in meta:
                    moving.append(f"{obj['kind']} {meta['name']}")
        return moving

    def writes(self) -> Writes:
        """Returns Metacontroller's writes to children since the last call."""
        since, self._mark = self._mark, self.audit.mark()
        found: Writes = defaultdict(list)
        deleted: set[tuple[str, str]] = set()
        for write in self.audit.writes(since, user=USER, namespace=self.namespace):
            kind = CHILDREN.get(write.resource)
            if kind is None:
                continue
            if write.code in STALE:
                self.stale[f"{write.what} {write.code}"] += 1
                continue
            if write.verb == "delete":
                uid = ((write.request or {}).get("preconditions") or {}).get("uid", "")
                if (write.name, uid) in deleted:
                    self.stale["delete again"] += 1
                    continue
                deleted.add((write.name, uid))
            found[f"{kind} {write.name}"].append(self._told(kind, write))
        return found

    def _told(self, kind: str, write: audit.Write) -> str:
        outcome = "ok" if write.accepted else str((write.response or {}).get("reason", write.code))
        if write.verb != "update":
            return told(write.verb, (), outcome)
        request = write.request or {}
        version = request["metadata"]["resourceVersion"]
        old = msgspec.json.decode(self._forms[kind, write.name, version])
        new = request | {"metadata": _plain(request["metadata"])}
        paths = tuple(path for path in changed_paths(old, new) if path not in IGNORED_PATHS)
        if write.accepted and (write.resource_version == version or not paths):
            outcome = "no-op"  # a PUT that changes only managedFields counts as no change
        verb = write.subresource or write.verb
        return told(verb, paths, outcome)

    def state(self) -> dict[str, Json]:
        """Returns all objects by kind and name."""
        objects = []
        for api_version, plural in ((GROUP, "tapps"), *(("v1", plural) for plural in CHILDREN)):
            objects += self.kube.list_all(api_version, plural, self.namespace)
        return normal(objects, self.namespace)


def _plain(metadata: Json) -> Json:
    return {key: value for key, value in metadata.items() if key != "managedFields"}


def of_story(found: dict[str, Any], story: Story) -> dict[str, Any]:
    """Returns the part of a story: the TApp, its pods and its claims, by their names."""

    def mine(child: str) -> bool:
        name = child.partition(" ")[2]
        return name == story.name or name.rpartition("-")[0].split("-")[-1] == story.name

    return {child: value for child, value in found.items() if mine(child)}


def in_parallel(work: list[Callable[[], None]]) -> None:
    """Runs functions in several threads and raises the first error."""
    with ThreadPoolExecutor(8) as pool:
        for done in [pool.submit(each) for each in work]:
            done.result()


def _shape(obj: Json) -> bytes:
    """Returns the parts of an object whose change is an event.

    Reports of a kubelet's retries are none.
    """
    meta, status = obj["metadata"], obj.get("status") or {}
    kept = {key: meta.get(key) for key in ("uid", "labels", "annotations", "deletionTimestamp")}
    told = [status.get("phase"), status.get("observedGeneration"), status.get("statuses")]
    return msgspec.json.encode([kept, obj.get("spec"), told], order="sorted")
