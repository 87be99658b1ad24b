"""`make e2e-bench`: instances with a readiness probe are updated in place, by tenths.

Their containers start fast or slowly, they are plain or lean, and syncs of large TApps are paced or
not (`BENCH_PACE`: at other paces, such as `0.5 2`). With `KRUISE_DIR` (`kruise.py`) OpenKruise's
Advanced StatefulSet goes through the same. Each row is a test, so `E2E_ARGS='-k slow-lean'`
chooses; `BENCH_PODS` is how many instances there are.
"""

from __future__ import annotations

import copy
import os
import time
import urllib.request
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests import builders

from . import kruise, policies
from .app import GROUP, tapp
from .audit import AuditLog, tally
from .cluster import Cluster
from .costs import Peak, cpu_seconds, with_children
from .hook import HookService
from .kube import Json, Kube
from .kubelet import FakeKubelet
from .metacontroller import USER, Controller, RealMetacontroller, registered
from .patience import until

pytestmark = [pytest.mark.e2e, pytest.mark.bench, pytest.mark.timeout(1200)]
PODS = int(os.environ.get("BENCH_PODS", "500"))
BUDGET = "10%"
PATIENCE = 900.0
NAME = "many"
PROBE = {"httpGet": {"path": "/", "port": 80}, "initialDelaySeconds": 5, "periodSeconds": 5}
SPEEDS = {"fast": 0.05, "slow": 4.0}
"""Seconds that a container takes to start."""
PACES = {"at-once": {"TAPP_PACE_SECONDS": "0"}, "paced": {}} | {
    f"{each}s": {"TAPP_PACE_SECONDS": each, "TAPP_PACE_POD_SECONDS": "1"}
    for each in os.environ.get("BENCH_PACE", "").split()
}
"""How the service is set: as shipped, with others, and one that lets nothing wait."""
WAYS = [f"{weight}-{pace}" for weight in ("plain", "lean") for pace in PACES]
HEAD = (
    "containers", "way", "seconds", "syncs", "controller CPU s", "API server CPU s", "both",
    "writes a pod", "status writes", "peak MiB", "created in s",
)  # fmt: skip


@dataclass
class Rolls:
    """All rows of a run."""

    rows: list[list[str]] = field(default_factory=list)

    def table(self) -> str:
        """The rows, as Markdown."""
        lines = [HEAD, ["---"] * len(HEAD), *self.rows]
        return "\n".join(f"| {' | '.join(line)} |" for line in lines)


@pytest.fixture(scope="module")
def rolls(note: list[str]) -> Iterator[Rolls]:
    """Collects the rows, and prints them in the end."""
    made = Rolls()
    yield made
    title = f"{PODS} instances, updated in place, {BUDGET} at a time"
    print(f"\n{title}\n{made.table()}")  # noqa: T201 - this is what it is for
    note.append(f"{title}\n{made.table()}")


@dataclass
class Meter:
    """What one roll costs.

    Attributes:
        pids: the controller's processes.
        server: the API server's.
        writer: what tells the controller's writes in the audit log from others.
        syncs: counts the syncs so far.
    """

    audit: AuditLog
    pids: list[int]
    server: int
    writer: Mapping[str, str]
    syncs: Callable[[], int] | None = None

    def begin(self) -> None:
        """From now on."""
        self._peak = Peak(self.pids)
        self._mark = self.audit.mark()
        self._synced = self.syncs() if self.syncs else 0
        self._cpu = self._used()
        self._began = time.monotonic()

    def _used(self) -> tuple[float, float]:
        return sum(map(cpu_seconds, self.pids)), cpu_seconds(self.server)

    def row(self) -> list[str]:
        """Until now."""
        seconds = time.monotonic() - self._began
        controller, server = (
            after - before for after, before in zip(self._used(), self._cpu, strict=True)
        )
        synced = str(self.syncs() - self._synced) if self.syncs else "-"
        found = self.audit.writes(self._mark)
        kept = [
            each
            for each in found
            if all(getattr(each, key).startswith(value) for key, value in self.writer.items())
        ]
        writes: Counter[str] = tally(kept)
        pods = sum(n for what, n in writes.items() if " pods" in what)
        status = sum(
            n for what, n in writes.items() if what.endswith(("tapps/status", "sets/status"))
        )
        return [
            f"{seconds:.0f}", synced, f"{controller:.1f}", f"{server:.1f}",
            f"{controller + server:.1f}", f"{pods / PODS:.2f}", str(status),
            f"{self._peak.end():.0f}",
        ]  # fmt: skip


def synced(url: str) -> int:
    """How many syncs a service has answered."""
    with urllib.request.urlopen(f"{url}/metrics", timeout=10) as answer:
        text = answer.read().decode()
    lines = [one for one in text.splitlines() if one.startswith("tapp_hook_seconds_count")]
    return int(sum(float(one.split()[-1]) for one in lines if 'hook="sync"' in one))


def probed(image: str = "app:1") -> Json:
    """A template whose container has a readiness probe."""
    container = {"name": "main", "readinessProbe": PROBE}
    return builders.template(image, container=container, terminationGracePeriodSeconds=1)


@dataclass
class Workload:
    """A TApp or a StatefulSet, from its creation to its end."""

    kube: Kube
    path: str
    wanted: tuple[str, ...]
    """Fields of the status that are to count all instances."""

    def settled(self) -> bool:
        """Whether its status says that all is done."""
        found = self.kube.request("GET", self.path)
        status = found.get("status") or {}
        seen = status.get("observedGeneration") == found["metadata"]["generation"]
        count = found["spec"]["replicas"]
        return seen and all(status.get(key) == count for key in self.wanted)

    def run(self, manifest: Json, meter: Meter) -> list[str]:
        """Creates it and updates it; returns what the update took, and the creation's seconds."""
        began = time.monotonic()
        self.kube.apply(manifest)
        until(self.settled, "all are ready", PATIENCE)
        created = time.monotonic() - began
        time.sleep(8)  # what follows from the creation is over
        meter.begin()
        template = copy.deepcopy(manifest["spec"]["template"])
        template["spec"]["containers"][0]["image"] = "app:2"
        self.kube.patch(self.path, {"spec": {"template": template}})
        until(self.settled, "all are updated", PATIENCE)
        row = [*meter.row(), f"{created:.0f}"]
        self._check(manifest["metadata"]["namespace"])
        self.kube.patch(self.path, {"spec": {"replicas": 0}})
        until(lambda: not self._pods(manifest["metadata"]["namespace"]), "all are gone", PATIENCE)
        return row

    def _pods(self, namespace: str) -> list[Json]:
        return self.kube.list_all("v1", "pods", namespace)

    def _check(self, namespace: str) -> None:
        pods = self._pods(namespace)
        images = [pod["status"]["containerStatuses"][0]["image"] for pod in pods]
        assert len(pods) == PODS
        assert all(image.endswith("app:2") for image in images)


@pytest.fixture(scope="module")
def hooks(workspace: Path) -> Iterator[dict[str, HookService]]:
    """The service by its settings."""
    made = {}
    for name, settings in PACES.items():
        place = workspace / name
        place.mkdir()
        made[name] = HookService(place, settings=settings).start()
    yield made
    for each in made.values():
        each.stop()


@pytest.fixture
def lean(kube: Kube) -> Iterator[Callable[[bool], None]]:
    """Makes the pods that are created from now on lean, or plain."""
    with policies.switchable(kube) as switch:
        yield switch


def local(cluster: Cluster) -> tuple[AuditLog, int]:
    """The audit log and the API server's pid."""
    if cluster.control_plane is None or cluster.audit is None:
        pytest.skip("only on a control plane of our own the CPU can be told")
    return cluster.audit, cluster.control_plane.pids["kube-apiserver"]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("speed", SPEEDS)
def test_a_roll_of_a_tapp(  # noqa: PLR0913, PLR0917 - all that runs
    speed: str,
    way: str,
    cluster: Cluster,
    kube: Kube,
    namespace: str,
    controller: Controller,
    hooks: dict[str, HookService],
    lean: Callable[[bool], None],
    kubelet: FakeKubelet,
    rolls: Rolls,
) -> None:
    audit, server = local(cluster)
    if not isinstance(controller, RealMetacontroller):
        pytest.skip("only of the real Metacontroller the cost is of interest")
    weight, _, pace = way.partition("-")
    lean(weight == "lean")
    hook = hooks[pace]
    kubelet.levers.start_seconds = SPEEDS[speed]
    pids = [controller.process.pid, *(p for one in hook.replicas for p in with_children(one.pid))]
    meter = Meter(audit, pids, server, {"user": USER}, lambda: synced(hook.url))
    manifest = tapp(
        NAME, replicas=PODS, updateStrategy={"maxUnavailable": BUDGET}, template=probed()
    )
    manifest["metadata"]["namespace"] = namespace
    wanted = ("readyReplicas", "updatedReplicas", "availableReplicas")
    path = kube.path(GROUP, "tapps", namespace, NAME)
    with registered(controller, hook.url):
        try:
            rolls.rows.append([speed, way, *Workload(kube, path, wanted).run(manifest, meter)])
        finally:
            kube.delete(GROUP, "tapps", namespace, NAME)
            until(
                lambda: kube.find(GROUP, "tapps", namespace, NAME) is None,
                "the TApp is gone",
                PATIENCE,
            )


@pytest.fixture(scope="module")
def kruise_manager(cluster: Cluster, kube: Kube, workspace: Path) -> Iterator[int]:
    """OpenKruise's manager, where it is built."""
    built = kruise.directory(os.environ)
    if built is None:
        pytest.skip("KRUISE_DIR names no built OpenKruise")
    with kruise.manager(built, cluster, kube, workspace) as process:
        yield process.pid


@pytest.mark.parametrize("speed", SPEEDS)
def test_a_roll_of_a_stateful_set(  # noqa: PLR0913, PLR0917 - as above
    speed: str,
    cluster: Cluster,
    kube: Kube,
    namespace: str,
    kruise_manager: int,
    kubelet: FakeKubelet,
    rolls: Rolls,
) -> None:
    audit, server = local(cluster)
    kubelet.levers.start_seconds = SPEEDS[speed]
    meter = Meter(audit, [kruise_manager], server, {"agent": kruise.AGENT})
    manifest: dict[str, Any] = kruise.statefulset(NAME, PODS, BUDGET, probed())
    manifest["metadata"]["namespace"] = namespace
    path = kube.path(kruise.API, "statefulsets", namespace, NAME)
    wanted = ("readyReplicas", "updatedReplicas", "updatedReadyReplicas")
    rolls.rows.append([speed, "Kruise", *Workload(kube, path, wanted).run(manifest, meter)])
    kube.delete(kruise.API, "statefulsets", namespace, NAME)
