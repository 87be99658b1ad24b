"""A TApp on the real API server: changes it, waits for it, and reads it and its pods.

The API server's audit log tells the writes, and a watch of the test tells which pods are Ready.
Both are independent of the service and of Metacontroller.
"""

from __future__ import annotations

import copy
import json
import re
import time
from collections.abc import Callable
from typing import Any

from tests import builders
from tests.prepull import is_puller
from tests.scenarios.life import condition, is_complete
from tests.scenarios.life import example as example  # noqa: PLC0414 - most tests import it from here

from .audit import Write
from .cluster import Cluster
from .kube import Json, Kube
from .metacontroller import USER
from .proxy import HookProxy
from .waiting import PATIENCE
from .watcher import Watcher

OURS = "apps.tkestack.io"
GROUP = f"{OURS}/v1"
KINDS = {"pods": "Pod", "persistentvolumeclaims": "Claim", "tapps": "TApp"}
QUIET = 0.6


def template(image: str = "app:1", **spec: Any) -> Json:
    """Returns a pod template with one container `main`; `spec` is added to the pod's spec."""
    spec = {"terminationGracePeriodSeconds": 1} | spec
    return builders.template(image, container={"name": "main"}, **spec)


def tapp(name: str = "web", **spec: Any) -> Json:
    """Returns a TApp of three instances, unless `spec` says otherwise."""
    return builders.manifest(name, **{"replicas": 3, "template": template(), **spec})


def each(verb: str, name: str, *numbers: int) -> list[str]:
    """Returns a line for each instance: `each("create Pod", "web", 0, 1)`."""
    return [f"{verb} {name}-{number}" for number in numbers]


class App:
    """A TApp from its first manifest to its deletion. Tests get it from the fixture `app`."""

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
        """True if the cluster has an audit log, so that writes can be counted."""
        return self._audit is not None

    # Changes by a user

    def apply(self, *objects: Json) -> App:
        """Applies objects server-side in the test's namespace, without waiting."""
        for each_one in objects:
            placed = copy.deepcopy(each_one)
            placed["metadata"]["namespace"] = self.namespace
            if placed["kind"] == "TApp":
                self.name = placed["metadata"]["name"]
            self.kube.apply(placed)
        return self

    def patch(self, **spec: Any) -> App:
        """Merges fields into the spec, without waiting."""
        self.kube.patch(self.path, {"spec": spec})
        return self

    def delete(self, **options: Any) -> None:
        """Deletes the TApp and waits until it is gone."""
        self.kube.delete(GROUP, "tapps", self.namespace, self.name, **options)
        self.until(lambda: self.found is None, "the TApp is gone")

    def edit(self, number: int, patch: Json | list[Json], subresource: str | None = None) -> App:
        """Patches a pod by a merge patch, or by a list of JSON patch operations."""
        name = f"{self.name}-{number}"
        path = self.kube.path("v1", "pods", self.namespace, name, subresource)
        self.kube.patch(path, patch)
        return self

    def annotate(self, number: int, **annotations: str | None) -> App:
        """Sets annotations of this project on a pod. In the keyword names, `_` stands for `-`."""
        named = {f"{OURS}/{key.replace('_', '-')}": text for key, text in annotations.items()}
        return self.edit(number, {"metadata": {"annotations": named}})

    def delete_pod(self, number: int, **options: Any) -> App:
        """Deletes a pod, as a user or another controller may do."""
        self.kube.delete("v1", "pods", self.namespace, f"{self.name}-{number}", **options)
        return self

    def evict(self, number: int) -> None:
        """Evicts a pod by the API, as the descheduler, `kubectl drain` and the VPA do."""
        name = f"{self.name}-{number}"
        eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name}}
        path = self.kube.path("v1", "pods", self.namespace, name, "eviction")
        self.kube.request("POST", path, eviction)

    def wait_until_replaced(self, number: int, born: dict[int, str]) -> App:
        """Waits until the uid of an instance's pod differs from its uid in `born`."""
        return self.until(
            lambda: self.uids().get(number, born[number]) != born[number], "the pod is replaced"
        )

    def quota(self, name: str, **hard: str) -> str:
        """Creates a quota in the namespace, waits until it is enforced, and returns its path."""
        made = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": name}}
        self.apply({**made, "spec": {"hard": hard}})
        path = self.kube.path("v1", "resourcequotas", self.namespace, name)
        self.until(
            lambda: "used" in (self.kube.request("GET", path).get("status") or {}),
            "the quota is enforced",
        )
        return path

    def trigger_sync(self) -> None:
        """Changes an annotation of the TApp, and waits for the sync that follows."""
        self._nudges += 1
        self.kube.patch(self.path, {"metadata": {"annotations": {"nudge": str(self._nudges)}}})
        mine = re.compile(rf'"nudge": ?"{self._nudges}"'.encode())
        if self._proxy is not None:
            self.until(lambda: any(mine.search(call) for call in self.calls()), "another sync")

    # Reads by a user

    @property
    def path(self) -> str:
        """The path of the TApp."""
        return self.kube.path(GROUP, "tapps", self.namespace, self.name)

    @property
    def found(self) -> Json | None:
        """The TApp, or None if it does not exist."""
        return self.kube.find(GROUP, "tapps", self.namespace, self.name)

    @property
    def status(self) -> Json:
        """The status of the TApp, or an empty mapping."""
        return self.kube.request("GET", self.path).get("status") or {}

    @property
    def statuses(self) -> str:
        """The statuses of all instances, sorted by number, in one line."""
        found = self.status.get("statuses") or {}
        return " ".join(found[key] for key in sorted(found, key=int))

    def condition(self, type: str) -> str:
        """Returns `status reason: message` of a condition, or an empty string."""
        return condition(self.kube.request("GET", self.path), type)

    def reasons(self) -> list[str]:
        """Returns the reasons of the conditions Degraded and Ready."""
        found = [self.condition(type).split(":")[0] for type in ("Degraded", "Ready")]
        return [each_one.split(" ")[-1] for each_one in found]

    @property
    def pods(self) -> dict[int, Json]:
        """Pods by instance number, without pods that only pull images."""
        listed = self.kube.list_all("v1", "pods", self.namespace)
        start = f"{self.name}-"
        pods = {pod["metadata"]["name"]: pod for pod in listed if not is_puller(pod)}
        return {int(n.removeprefix(start)): pods[n] for n in sorted(pods) if n.startswith(start)}

    def pod(self, number: int) -> Json:
        """Returns the pod of an instance."""
        return self.kube.get("v1", "pods", self.namespace, f"{self.name}-{number}")

    def images(self, container: str | None = None) -> str:
        """Returns the image of each pod's first (or named) container, sorted by number, in one
        line.
        """
        return " ".join(
            next(c["image"] for c in pod["spec"]["containers"] if container in (None, c["name"]))
            for _, pod in sorted(self.pods.items())
        )

    def uids(self) -> dict[int, str]:
        """Returns the uids of the pods by instance number, which tell whether a pod was
        replaced.
        """
        return {number: pod["metadata"]["uid"] for number, pod in self.pods.items()}

    def restarts(self) -> dict[int, int]:
        """Returns the number of container restarts of each pod, by instance number."""
        return {
            number: sum(c["restartCount"] for c in pod["status"]["containerStatuses"])
            for number, pod in self.pods.items()
        }

    def claims(self) -> dict[str, str]:
        """Returns the uids of the claims by name, without claims that are being deleted."""
        claims = self.kube.list_all("v1", "persistentvolumeclaims", self.namespace)
        here = [c["metadata"] for c in claims if "deletionTimestamp" not in c["metadata"]]
        return {meta["name"]: meta["uid"] for meta in here}

    # Waiting

    def until(self, fact: Callable[[], bool], what: str, seconds: float = PATIENCE) -> App:
        """Waits until a condition holds.

        Raises AssertionError with the TApp's status after `seconds`.
        """
        deadline = time.monotonic() + seconds
        while not fact():
            if time.monotonic() > deadline:
                raise AssertionError(f"not in {seconds:.0f} s: {what}; {self.describe()}")
            time.sleep(0.05)
        return self

    def settle(self, seconds: float = PATIENCE) -> App:
        """Waits until the TApp is complete and syncs have stopped."""
        self.until(self._complete, "the TApp is complete", seconds)
        return self.quiet(seconds)

    def quiet(self, seconds: float = PATIENCE) -> App:
        """Waits until Metacontroller has sent no request for a while."""
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
        """Returns the requests about this namespace, or an empty list if they do not pass the
        proxy.
        """
        mine = self.namespace.encode()
        heard = list(self._proxy.calls) if self._proxy else []
        return [call.request for call in heard if mine in call.namespaces]

    def _complete(self) -> bool:
        return is_complete(self.kube.request("GET", self.path))

    def describe(self) -> str:
        """Returns the status and the last refused writes as JSON, for messages of failures."""
        found = self.found or {}
        refused = [
            f"{write.what} {write.name}: {(write.response or {}).get('message', write.code)}"
            for write in self._written()
            if not write.accepted
        ]
        return json.dumps({"status": found.get("status"), "refused": refused[-5:]}, indent=1)

    # Writes to the API server

    def _written(self) -> list[Write]:
        """Returns the writes of all users in the namespace since the last call of `news`."""
        return self._audit.writes(self._mark, namespace=self.namespace) if self._audit else []

    def news(self, *, refused: tuple[int, ...] = (404, 409)) -> list[Write]:
        """Returns Metacontroller's writes since the last call, including writes refused with the
        codes `refused`.

        By default these codes are conflicts and deleted objects. The test fails for other refusals,
        and for writes that changed nothing.
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
        """Returns Metacontroller's accepted writes to children since the last call, in order.

        The test fails for a refusal that is no conflict, and for a write that changed nothing.
        """
        children = ("pods", "persistentvolumeclaims")
        return [
            f"{write.verb} {KINDS[write.resource]} {write.name}"
            for write in self.news()
            if write.resource in children and write.accepted
        ]

    def wrote(self, *expected: str) -> bool:
        """Asserts that Metacontroller made exactly these writes since the last call, in any order.

        Returns True.
        """
        if self.counted:
            found = self.writes()
            assert sorted(found) == sorted(expected), f"{found} instead of {list(expected)}"
        return True

    def wrote_in_order(self, *expected: str) -> bool:
        """Asserts that Metacontroller made exactly these writes since the last call, in this order.

        Returns True.
        """
        if self.counted:
            found = self.writes()
            assert found == list(expected), f"{found} instead of {list(expected)}"
        return True

    def idle(self, times: int = 2) -> bool:
        """Asserts that further syncs write nothing, neither to children nor to the TApp.

        Returns True.
        """
        if self.counted:
            self.news()
        for _ in range(times):
            self.trigger_sync()
        self.quiet()
        writes = [f"{write.what} {write.name}: {write.code}" for write in self.news()]
        assert writes == [], writes
        return True
