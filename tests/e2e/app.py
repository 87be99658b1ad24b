"""One TApp on the real API server, in a person's words, and what became of it.

What was written is read from the API server's audit log, who served at each moment from a watch of
the test's own: neither believes the service or Metacontroller.
"""

from __future__ import annotations

import copy
import json
import re
import time
from collections.abc import Callable
from typing import Any

from tests import builders
from tests.pulled import is_puller
from tests.scenarios.life import condition, is_complete
from tests.scenarios.life import example as example  # noqa: PLC0414 - most tests have it from here

from .audit import Write
from .cluster import Cluster
from .kube import Json, Kube
from .metacontroller import USER
from .patience import PATIENCE
from .proxy import HookProxy
from .watcher import Watcher

OURS = "apps.tkestack.io"
GROUP = f"{OURS}/v1"
KINDS = {"pods": "Pod", "persistentvolumeclaims": "Claim", "tapps": "TApp"}
QUIET = 0.6


def template(image: str = "app:1", **spec: Any) -> Json:
    """A pod template with one container `main`; `spec` is added to the pod's spec."""
    spec = {"terminationGracePeriodSeconds": 1} | spec
    return builders.template(image, container={"name": "main"}, **spec)


def tapp(name: str = "web", **spec: Any) -> Json:
    """A TApp of three instances, unless its spec says otherwise."""
    return builders.manifest(name, **{"replicas": 3, "template": template(), **spec})


def each(verb: str, name: str, *numbers: int) -> list[str]:
    """`each("create Pod", "web", 0, 1)`: one line for each instance."""
    return [f"{verb} {name}-{number}" for number in numbers]


class App:
    """A TApp from its first manifest to its end; use the fixture `app`."""

    def __init__(self, cluster: Cluster, kube: Kube, namespace: str, proxy: HookProxy) -> None:
        self.kube = kube
        self.namespace = namespace
        self.name = "web"
        self.watcher = Watcher(kube, namespace)
        self._audit = cluster.audit
        self._proxy = None if cluster.hook_in_cluster else proxy
        self._mark = self._audit.mark() if self._audit else 0
        self._nudges = 0

    @property
    def counted(self) -> bool:
        """True if writes can be counted on this cluster."""
        return self._audit is not None

    # What a user does

    def apply(self, *objects: Json) -> App:
        """Server-side apply in the test's namespace, without waiting."""
        for each_one in objects:
            placed = copy.deepcopy(each_one)
            placed["metadata"]["namespace"] = self.namespace
            if placed["kind"] == "TApp":
                self.name = placed["metadata"]["name"]
            self.kube.apply(placed)
        return self

    def patch(self, **spec: Any) -> App:
        """A merge patch of the spec, without waiting."""
        self.kube.patch(self.path, {"spec": spec})
        return self

    def delete(self, **options: Any) -> None:
        """Deletes the TApp and waits until it is gone."""
        self.kube.delete(GROUP, "tapps", self.namespace, self.name, **options)
        self.until(lambda: self.found is None, "the TApp is gone")

    def edit(self, number: int, patch: Json | list[Json], subresource: str | None = None) -> App:
        """Somebody writes on a pod: a merge patch, or the operations of a JSON patch."""
        name = f"{self.name}-{number}"
        path = self.kube.path("v1", "pods", self.namespace, name, subresource)
        self.kube.patch(path, patch)
        return self

    def annotate(self, number: int, **annotations: str | None) -> App:
        """Somebody writes annotations on a pod; in their names `_` stands for `-`, behind ours."""
        named = {f"{OURS}/{key.replace('_', '-')}": text for key, text in annotations.items()}
        return self.edit(number, {"metadata": {"annotations": named}})

    def lose(self, number: int, **options: Any) -> App:
        """Somebody deletes a pod."""
        self.kube.delete("v1", "pods", self.namespace, f"{self.name}-{number}", **options)
        return self

    def anew(self, number: int, born: dict[int, str]) -> App:
        """Waits until an instance has another pod than it had then."""
        return self.until(lambda: self.uids().get(number, born[number]) != born[number], "anew")

    def quota(self, name: str, **hard: str) -> str:
        """A quota of the namespace, which is enforced by now; its path."""
        made = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": name}}
        self.apply({**made, "spec": {"hard": hard}})
        path = self.kube.path("v1", "resourcequotas", self.namespace, name)
        self.until(
            lambda: "used" in (self.kube.request("GET", path).get("status") or {}), "it counts"
        )
        return path

    def nudge(self) -> None:
        """Makes Metacontroller sync, by an annotation of the TApp, and waits until it has asked."""
        self._nudges += 1
        self.kube.patch(self.path, {"metadata": {"annotations": {"nudge": str(self._nudges)}}})
        mine = re.compile(rf'"nudge": ?"{self._nudges}"'.encode())
        if self._proxy is not None:
            self.until(lambda: any(mine.search(call) for call in self.calls()), "another sync")

    # What a user asks

    @property
    def path(self) -> str:
        """The TApp's path."""
        return self.kube.path(GROUP, "tapps", self.namespace, self.name)

    @property
    def found(self) -> Json | None:
        """The TApp, if it is there."""
        return self.kube.find(GROUP, "tapps", self.namespace, self.name)

    @property
    def status(self) -> Json:
        """Its status."""
        return self.kube.request("GET", self.path).get("status") or {}

    @property
    def statuses(self) -> str:
        """All instance statuses, by number, in one line."""
        found = self.status.get("statuses") or {}
        return " ".join(found[key] for key in sorted(found, key=int))

    def condition(self, type: str) -> str:
        """`status reason: message` of a condition, or ""."""
        return condition(self.kube.request("GET", self.path), type)

    @property
    def pods(self) -> dict[int, Json]:
        """Number -> pod."""
        listed = self.kube.list_all("v1", "pods", self.namespace)
        start = f"{self.name}-"
        pods = {pod["metadata"]["name"]: pod for pod in listed if not is_puller(pod)}
        return {int(n.removeprefix(start)): pods[n] for n in sorted(pods) if n.startswith(start)}

    def pod(self, number: int) -> Json:
        """One pod."""
        return self.kube.get("v1", "pods", self.namespace, f"{self.name}-{number}")

    def images(self, container: str | None = None) -> str:
        """The image of each pod's first (or named) container, by number, in one line."""
        return " ".join(
            next(c["image"] for c in pod["spec"]["containers"] if container in (None, c["name"]))
            for _, pod in sorted(self.pods.items())
        )

    def uids(self) -> dict[int, str]:
        """Number -> the pod's uid: who is still the same."""
        return {number: pod["metadata"]["uid"] for number, pod in self.pods.items()}

    def restarts(self) -> dict[int, int]:
        """Number -> restarts of all of the pod's containers."""
        return {
            number: sum(c["restartCount"] for c in pod["status"]["containerStatuses"])
            for number, pod in self.pods.items()
        }

    def claims(self) -> dict[str, str]:
        """Claim -> its uid, those that are being deleted left out."""
        claims = self.kube.list_all("v1", "persistentvolumeclaims", self.namespace)
        here = [c["metadata"] for c in claims if "deletionTimestamp" not in c["metadata"]]
        return {meta["name"]: meta["uid"] for meta in here}

    # Waiting

    def until(self, fact: Callable[[], bool], what: str, seconds: float = PATIENCE) -> App:
        """Waits for something to become true."""
        deadline = time.monotonic() + seconds
        while not fact():
            if time.monotonic() > deadline:
                raise AssertionError(f"not in {seconds:.0f} s: {what}; {self.describe()}")
            time.sleep(0.05)
        return self

    def settle(self, seconds: float = PATIENCE) -> App:
        """Waits until all is as the spec asks, and nothing moves any more."""
        self.until(self._complete, "the TApp is complete", seconds)
        return self.quiet(seconds)

    def quiet(self, seconds: float = PATIENCE) -> App:
        """Waits until Metacontroller has nothing more to ask."""
        deadline = time.monotonic() + seconds
        count, since = len(self.calls()), time.monotonic()
        while time.monotonic() - since < (QUIET if self._proxy else 5 * QUIET):
            if time.monotonic() > deadline:
                raise AssertionError(f"never quiet; {self.describe()}")
            time.sleep(0.05)
            if len(self.calls()) != count:
                count, since = len(self.calls()), time.monotonic()
        return self

    def calls(self) -> list[bytes]:
        """The requests in which the hook has been asked about this namespace, where it is ours."""
        mine = self.namespace.encode()
        heard = list(self._proxy.calls) if self._proxy else []
        return [call.request for call in heard if mine in call.namespaces]

    def _complete(self) -> bool:
        return is_complete(self.kube.request("GET", self.path))

    def describe(self) -> str:
        """What a person would look at when something does not happen."""
        found = self.found or {}
        refused = [
            f"{write.what} {write.name}: {(write.response or {}).get('message', write.code)}"
            for write in self._written()
            if not write.accepted
        ]
        return json.dumps({"status": found.get("status"), "refused": refused[-5:]}, indent=1)

    # What was written

    def _written(self) -> list[Write]:
        """Everybody's writes in the namespace since the last call of `news`."""
        return self._audit.writes(self._mark, namespace=self.namespace) if self._audit else []

    def news(self, *, refused: tuple[int, ...] = (404, 409)) -> list[Write]:
        """Metacontroller's writes since the last call, those of `refused` codes included.

        By default these are the races that it may lose. Other refusals, and writes that changed
        nothing, fail the test.
        """
        if self._audit is None:
            return []
        end = self._audit.mark()
        written = self._audit.writes(self._mark, end, settle=0, namespace=self.namespace)
        self._mark = end
        seen: set[tuple[str, str | None]] = set()
        found = []
        for write in written:
            if write.user == USER:
                assert write.accepted or write.code in refused, (write.what, write.response)
                key = (f"{write.resource} {write.name}", write.resource_version)
                kept = write.subresource == "status" or write.resource != "tapps"
                idle = kept and write.verb == "update" and write.accepted and key in seen
                assert not idle, f"{write.what} {write.name} changed nothing"
                found.append(write)
            seen.add((f"{write.resource} {write.name}", write.resource_version))
        return found

    def writes(self) -> list[str]:
        """Metacontroller's accepted writes to children since the last call, in order.

        None may have been refused (but for a race that it lost) and none may have changed nothing.
        """
        children = ("pods", "persistentvolumeclaims")
        return [
            f"{write.verb} {KINDS[write.resource]} {write.name}"
            for write in self.news()
            if write.resource in children and write.accepted
        ]

    def wrote(self, *expected: str) -> bool:
        """True if exactly these writes were made, in any order; then the next ones count."""
        if self.counted:
            found = self.writes()
            assert sorted(found) == sorted(expected), f"{found} instead of {list(expected)}"
        return True

    def wrote_in_order(self, *expected: str) -> bool:
        """True if exactly these writes were made, in this order; then the next ones count."""
        if self.counted:
            found = self.writes()
            assert found == list(expected), f"{found} instead of {list(expected)}"
        return True

    def idle(self, times: int = 2) -> bool:
        """True if further syncs write nothing at all, neither to children nor to the TApp."""
        if self.counted:
            self.news()
        for _ in range(times):
            self.nudge()
        self.quiet()
        writes = [f"{write.what} {write.name}: {write.code}" for write in self.news()]
        assert writes == [], writes
        return True
