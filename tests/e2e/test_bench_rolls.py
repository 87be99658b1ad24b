"""`make e2e-bench`: measures how instances with a readiness probe are created and updated in place.

Containers start fast or slowly. Pods are plain or lean, with a readiness gate or without. With
`KRUISE_DIR` (`kruise.py`), OpenKruise's Advanced StatefulSet, which always has a gate, is measured
as well. Each row has its own control plane and nothing else on it, and is measured `BENCH_RUNS`
times in changing order. The tables show medians with minimum and maximum.

`BENCH_PODS` is the number of instances. `BENCH_PACE` adds paces (`0.5 2`; without a pause: `0`).
`E2E_ARGS='-k "slow and gate"'` selects rows.
"""

from __future__ import annotations

import copy
import os
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

import pytest

from tapp.words.vocabulary import GATES
from tests import builders

from . import kruise, policies
from .app import GROUP, tapp
from .audit import AuditLog, changed_nothing
from .cluster import choose
from .controlplane import LocalControlPlane
from .costs import Peak, cpu_seconds, with_children
from .definitions import definition_files
from .hook import HookService
from .kube import Json, Kube
from .kubelet import FakeKubelet
from .metacontroller import USER, RealMetacontroller, choose_controller, install_account, registered
from .waiting import until

pytestmark = [pytest.mark.e2e, pytest.mark.bench, pytest.mark.timeout(1200)]
PODS = int(os.environ.get("BENCH_PODS", "500"))
RUNS = int(os.environ.get("BENCH_RUNS", "3"))
BUDGET = "10%"
PATIENCE = 900.0
NAME, NAMESPACE = "many", "default"
PROBE = {"httpGet": {"path": "/", "port": 80}, "initialDelaySeconds": 5, "periodSeconds": 5}
SPEEDS = {"fast": 0.05, "slow": 4.0}
"""Seconds until a container has started."""
PACES = {"paced": {}} | {
    f"{each}s": {"TAPP_PACE_SECONDS": each, "TAPP_PACE_POD_SECONDS": "1"}
    for each in os.environ.get("BENCH_PACE", "").split()
}
"""Settings of the service: as shipped, and with the paces of BENCH_PACE."""
KRUISE = "kruise-gate"
WAYS = [f"{pods}-{pace}" for pods in ("lean-gate", "plain-gate", "lean", "plain") for pace in PACES]
ROWS = [f"{speed}-{way}" for speed in SPEEDS for way in [KRUISE, *WAYS]]
TURNS = [
    pytest.param(row, run, id=f"{row}-{run}")
    for run in range(RUNS)
    for row in (ROWS[run:] + ROWS[:run])[:: -1 if run % 2 else 1]
]
HEAD = (
    "row", "seconds", "syncs", "controller CPU s", "API server CPU s", "both",
    "etcd and controller manager CPU s", "pod writes a pod", "empty ones", "refused writes",
    "status writes", "peak MiB",
)  # fmt: skip


@dataclass
class Rolls:
    """The runs of each row, by step."""

    runs: dict[str, dict[str, list[list[float]]]] = field(default_factory=dict)

    def add(self, step: str, row: str, cells: list[float]) -> None:
        """Adds a run."""
        self.runs.setdefault(step, {}).setdefault(row, []).append(cells)

    def table(self, step: str) -> str:
        """Returns the rows of a step as Markdown: medians, with minimum and maximum."""
        rows = [[row, *map(cell, zip(*self.runs[step][row], strict=True))]
                for row in ROWS if row in self.runs[step]]  # fmt: skip
        lines = [f"| {' | '.join(line)} |" for line in [HEAD, ["---"] * len(HEAD), *rows]]
        return "\n".join([f"{PODS} instances, {step}; medians (least to most)", *lines])


def cell(values: tuple[float, ...]) -> str:
    """Returns the median of a row's runs, with minimum and maximum if they differ."""
    shown = [f"{each:.4g}" for each in (median(values), min(values), max(values))]
    return f"{shown[0]} ({shown[1]} to {shown[2]})" if shown[1] != shown[2] else shown[0]


@pytest.fixture(scope="module")
def rolls(note: list[str]) -> Iterator[Rolls]:
    """Collects the runs and prints the tables at the end."""
    made = Rolls()
    yield made
    note.extend(made.table(step) for step in made.runs)


@dataclass
class Meter:
    """Measures the cost of one step.

    Attributes:
        audit: the audit log of the API server.
        pids: the controller's processes.
        servers: the process ids of the control plane, by name.
        user: the user name of the controller in the audit log.
        syncs: returns the number of syncs so far.
    """

    audit: AuditLog
    pids: list[int]
    servers: dict[str, int]
    user: str
    syncs: Callable[[], int] = lambda: 0

    def begin(self) -> None:
        """Starts the measurement."""
        self._peak = Peak(self.pids)
        self._mark = self.audit.mark()
        self._synced = self.syncs()
        self._cpu = self._used()
        self._began = time.monotonic()

    def _used(self) -> list[float]:
        groups = (self.pids, [self.servers["kube-apiserver"]],
                  [self.servers[name] for name in ("etcd", "kube-controller-manager")])  # fmt: skip
        return [sum(map(cpu_seconds, pids)) for pids in groups]

    def row(self) -> list[float]:
        """Returns the figures since `begin`."""
        seconds = time.monotonic() - self._began
        controller, server, others = (
            after - before for after, before in zip(self._used(), self._cpu, strict=True)
        )
        found = self.audit.writes(self._mark, user=self.user)
        kept = [each for each in found if each.accepted]
        pods = [each for each in kept if each.resource == "pods"]
        status = [each for each in kept if each.resource in {"tapps", "statefulsets"}]
        return [
            seconds, self.syncs() - self._synced, controller, server, controller + server, others,
            len(pods) / PODS, len(changed_nothing(pods)), len(found) - len(kept),
            len(status), self._peak.end(),
        ]  # fmt: skip


def synced(url: str) -> int:
    """Returns the number of syncs that a service has answered."""
    with urllib.request.urlopen(f"{url}/metrics", timeout=10) as answer:
        text = answer.read().decode()
    lines = [one for one in text.splitlines() if one.startswith("tapp_hook_seconds_count")]
    return int(sum(float(one.split()[-1]) for one in lines if 'hook="sync"' in one))


def probed(image: str = "app:1", **pod: Any) -> Json:
    """Returns a template whose container has a readiness probe."""
    container = {"name": "main", "readinessProbe": PROBE}
    return builders.template(image, container=container, terminationGracePeriodSeconds=1, **pod)


@dataclass
class Workload:
    """A TApp or a StatefulSet."""

    kube: Kube
    path: str
    wanted: tuple[str, ...]
    """Fields of the status that must count all instances at the end of a step."""

    def settled(self) -> bool:
        """Returns True if the status is current and counts all instances."""
        found = self.kube.request("GET", self.path)
        status = found.get("status") or {}
        seen = status.get("observedGeneration") == found["metadata"]["generation"]
        count = found["spec"]["replicas"]
        return seen and all(status.get(key) == count for key in self.wanted)

    def run(self, manifest: Json, meter: Meter) -> dict[str, list[float]]:
        """Creates the workload, updates it, and returns the figures of both steps."""
        meter.begin()
        self.kube.apply(manifest)
        until(self.settled, "all are ready", PATIENCE)
        created = meter.row()
        time.sleep(8)  # all work that follows the creation has ended
        meter.begin()
        template = copy.deepcopy(manifest["spec"]["template"])
        template["spec"]["containers"][0]["image"] = "app:2"
        self.kube.patch(self.path, {"spec": {"template": template}})
        until(self.settled, "all are updated", PATIENCE)
        rolled = meter.row()
        pods = self.kube.list_all("v1", "pods", NAMESPACE)
        images = [pod["status"]["containerStatuses"][0]["image"] for pod in pods]
        assert len(images) == PODS
        assert all(image.endswith("app:2") for image in images)
        return {"created": created, f"updated in place, {BUDGET} at a time": rolled}


@dataclass
class World:
    """A control plane with fake nodes and the measured controller. All of it stops with `stack`."""

    directory: Path
    stack: ExitStack

    def __post_init__(self) -> None:
        choice = choose(os.environ)
        if isinstance(choice, str) or choice.backend != "local":
            pytest.skip("only on a control plane of our own the CPU can be told")
        made = choice.make(self.directory, definition_files(os.environ))
        assert isinstance(made, LocalControlPlane)
        self.stack.callback(made.stop)
        made.start()
        self.cluster, self.kube = made, Kube(made.kubeconfig)
        self.stack.callback(self.kube.close)

    def nodes(self, start_seconds: float) -> None:
        """Starts nodes whose containers start after `start_seconds`."""
        kubelet = FakeKubelet(self.cluster.kubeconfig)
        kubelet.levers.start_seconds = start_seconds
        self.stack.enter_context(kubelet)

    def meter(self, pids: list[int], user: str, syncs: Callable[[], int] = lambda: 0) -> Meter:
        """Returns a meter for these processes and the control plane."""
        return Meter(self.cluster.audit, pids, self.cluster.pids, user, syncs)

    def tapp(self, pods: str, settings: dict[str, str]) -> dict[str, list[float]]:
        """Creates and updates a TApp."""
        if pods.startswith("lean"):
            policies.put(self.kube, policies.LEAN)
        install_account(self.kube, os.environ)
        controller = choose_controller(self.cluster, self.kube, self.directory, os.environ)
        if not isinstance(controller, RealMetacontroller):
            pytest.skip("only of the real Metacontroller the cost is of interest")
        hook = HookService(self.directory, settings=settings)
        for each in (hook, controller):
            self.stack.callback(each.stop)
            each.start()
        self.stack.enter_context(registered(controller, hook.url))
        template = probed()
        if pods.endswith("gate"):
            template = probed(readinessGates=[{"conditionType": GATES[0]}])
        manifest = tapp(
            NAME, replicas=PODS, updateStrategy={"maxUnavailable": BUDGET}, template=template
        )
        manifest["metadata"]["namespace"] = NAMESPACE
        pids = [controller.process.pid]
        pids += [pid for one in hook.replicas for pid in with_children(one.pid)]
        wanted = ("readyReplicas", "updatedReplicas", "availableReplicas")
        work = Workload(self.kube, self.kube.path(GROUP, "tapps", NAMESPACE, NAME), wanted)
        return work.run(manifest, self.meter(pids, USER, lambda: synced(hook.url)))

    def stateful_set(self) -> dict[str, list[float]]:
        """Creates and updates an Advanced StatefulSet."""
        built = kruise.directory(os.environ)
        if built is None:
            pytest.skip("KRUISE_DIR names no built OpenKruise")
        running = kruise.manager(built, self.cluster, self.kube, self.directory)
        process = self.stack.enter_context(running)
        manifest = kruise.statefulset(NAME, PODS, BUDGET, probed())
        manifest["metadata"]["namespace"] = NAMESPACE
        path = self.kube.path(kruise.API, "statefulsets", NAMESPACE, NAME)
        wanted = ("readyReplicas", "updatedReplicas", "updatedReadyReplicas")
        meter = self.meter([process.pid], kruise.USER)
        return Workload(self.kube, path, wanted).run(manifest, meter)


@pytest.mark.parametrize(("row", "run"), TURNS)
def test_rollout_is_measured_on_its_own_control_plane(
    row: str, run: int, workspace: Path, rolls: Rolls
) -> None:
    """Each row runs on its own control plane, so that rows do not disturb each other."""
    speed, _, way = row.partition("-")
    directory = workspace / f"{row}-{run}"
    directory.mkdir()
    with ExitStack() as stack:
        world = World(directory, stack)
        world.nodes(SPEEDS[speed])
        pods, _, pace = way.rpartition("-")
        steps = world.stateful_set() if way == KRUISE else world.tapp(pods, PACES[pace])
    for step, cells in steps.items():
        rolls.add(step, row, cells)
