"""`make e2e-bench`: 500 instances created, rolled in place by tenths, and then left alone.

All of it without and with the policy `tapp-lean-pods`, in turns, so that both meet the same
machine. Where the API server has no such policies, only without.
"""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest

from . import policies
from .app import App, Watcher, tapp, template
from .audit import tally
from .cluster import Cluster
from .costs import cpu_seconds
from .kube import Json, Kube
from .metacontroller import USER, Controller, RealMetacontroller
from .proxy import HookProxy

pytestmark = [pytest.mark.e2e, pytest.mark.bench, pytest.mark.timeout(2400)]
INSTANCES = 500
BUDGET = INSTANCES // 10
PATIENCE = 500.0
IDLE_SECONDS = 60
PLAIN, LEAN = "plain", "lean"
TURNS = (PLAIN, LEAN, LEAN, PLAIN)
"""Who begins has a cold cluster, who comes second a fuller one: each is both."""
TARGET = 0.6
HEAD = [
    "pods", "step", "seconds", "Metacontroller CPU s", "API server CPU s", "API writes",
    "hook calls", "request MB", "hook ms", "mean ms", "longest ms", "fewest serving",
]  # fmt: skip


@dataclass
class Cost:
    """What creating and rolling took, one way."""

    controller: float = 0.0
    server: float = 0.0
    request_bytes: int = 0
    writes: Counter[str] = field(default_factory=Counter)


@dataclass
class Bench:
    """Measures one step after the other."""

    cluster: Cluster
    proxy: HookProxy
    pids: tuple[int | None, int | None]
    """Metacontroller and API server, where they are processes of ours."""
    switch: Callable[[str], None]
    """Makes the pods that are created from now on lean, or plain."""
    way: str = PLAIN
    rows: list[list[str]] = field(default_factory=list)
    costs: dict[str, Cost] = field(default_factory=dict)
    _begun: float = 0.0
    _mark: int = 0
    _cpu: list[float] = field(default_factory=list)

    def turn(self, way: str) -> None:
        """From now on pods are lean, or plain."""
        self.switch(way)
        self.way = way

    def begin(self) -> None:
        """Starts to measure."""
        self.proxy.reset()
        self._mark = self.cluster.audit.mark() if self.cluster.audit else 0
        self._cpu = [cpu_seconds(pid) for pid in self.pids]
        self._begun = time.monotonic()

    def end(self, what: str, fewest: int, *, counts: bool = True) -> dict[str, int]:
        """Ends a step; returns Metacontroller's writes in it."""
        seconds = time.monotonic() - self._begun
        used = [cpu_seconds(pid) - before for pid, before in zip(self.pids, self._cpu, strict=True)]
        count, spent, sent = self.proxy.count, self.proxy.hook_seconds, self.proxy.request_bytes
        audit = self.cluster.audit
        writes = tally(audit.writes(self._mark, user=USER)) if audit else Counter[str]()
        told = ", ".join(f"{n} {what}" for what, n in sorted(writes.items())) or "none"
        mean = f"{1000 * spent / count:.0f}" if count else "-"
        longest = max((call.seconds for call in list(self.proxy.calls)), default=0.0)
        self.rows.append(
            [self.way, what, f"{seconds:.1f}", *(f"{each:.1f}" for each in used), told, str(count),
             f"{sent / 1e6:.0f}", f"{1000 * spent:.0f}", mean, f"{1000 * longest:.0f}", str(fewest)]
        )  # fmt: skip
        if counts:
            cost = self.costs.setdefault(self.way, Cost())
            cost.controller += used[0]
            cost.server += used[1]
            cost.request_bytes += sent
            cost.writes += writes
        return dict(writes)

    def table(self, title: str) -> str:
        """The measurements, for people."""
        lines = [HEAD, *self.rows]
        widths = [max(len(line[column]) for line in lines) for column in range(len(HEAD))]

        def row(line: list[str]) -> str:
            padded = [cell.ljust(width) for cell, width in zip(line, widths, strict=True)]
            return "  ".join(padded).rstrip()

        return "\n".join([title, *map(row, lines), *self.compared()])

    def compared(self) -> list[str]:
        """Lean pods against plain ones, where both were measured."""
        if self.costs.keys() != {PLAIN, LEAN}:
            return ["lean pods: not measured, this API server has no MutatingAdmissionPolicy v1"]
        plain, lean = self.costs[PLAIN], self.costs[LEAN]
        ratio = lean.controller / plain.controller
        verdict = "unknown" if math.isnan(ratio) else "met" if ratio <= TARGET else "missed"
        pods = [
            sum(n for what, n in cost.writes.items() if "pods" in what) for cost in (plain, lean)
        ]
        return [
            "lean pods / plain pods, created and rolled in place, all turns:",
            f"  Metacontroller CPU  {ratio:.2f} (target <= {TARGET} {verdict}): "
            f"{lean.controller:.1f} / {plain.controller:.1f} s",
            f"  API server CPU      {lean.server / plain.server:.2f}: "
            f"{lean.server:.1f} / {plain.server:.1f} s",
            f"  bytes of requests   {lean.request_bytes / plain.request_bytes:.2f}: "
            f"{lean.request_bytes / 1e6:.0f} / {plain.request_bytes / 1e6:.0f} MB",
            f"  writes              {lean.writes.total()} / {plain.writes.total()}, "
            f"to pods {pods[1]} / {pods[0]}",
        ]  # fmt: skip


@pytest.fixture
def watcher(kube: Kube, namespace: str) -> Iterator[Watcher]:
    """Counts who serves."""
    made = Watcher(kube, namespace)
    made.start()
    yield made
    made.stop()


@pytest.fixture
def switch(kube: Kube) -> Iterator[Callable[[str], None]]:
    """Makes the pods that are created from now on lean, or plain."""
    with policies.switchable(kube) as put:
        yield lambda way: put(way == LEAN)


@pytest.fixture
def bench(
    cluster: Cluster, hook_proxy: HookProxy, tapps: Controller, switch: Callable[[str], None]
) -> Bench:
    """What measures."""
    controller = tapps.process.pid if isinstance(tapps, RealMetacontroller) else None
    server = cluster.control_plane.pids["kube-apiserver"] if cluster.control_plane else None
    return Bench(cluster, hook_proxy, (controller, server), switch)


def updated_and_seen(pod: Json, image: str) -> bool:
    """Whether the kubelet has acted on the last update, and its container runs this image."""
    (status,) = pod["status"]["containerStatuses"]
    # Before Kubernetes 1.34 a pod does not tell.
    acted = pod["status"].get("observedGeneration") in (None, pod["metadata"]["generation"])
    return bool(acted and status["image"].endswith(image) and status["ready"])


def live(app: App, bench: Bench, watcher: Watcher, *, idle: bool) -> None:
    """One turn: created, rolled, left alone, deleted."""

    def done(**wanted: Any) -> bool:
        found = app.kube.request("GET", app.path)
        status = found.get("status") or {}
        seen = status.get("observedGeneration") == found["metadata"]["generation"]
        return seen and all(status.get(key) == value for key, value in wanted.items())

    all_of_them = {"readyReplicas": INSTANCES, "updatedReplicas": INSTANCES}
    all_of_them["availableReplicas"] = INSTANCES
    manifest = tapp("many", replicas=INSTANCES, updateStrategy={"maxUnavailable": "10%"})

    bench.begin()
    app.apply(manifest)
    app.until(lambda: done(**all_of_them), "all are ready", PATIENCE)
    writes = bench.end(f"{INSTANCES} created", 0)
    assert not writes or (writes["create pods"], writes.get("update pods")) == (INSTANCES, None)
    born = app.uids()
    assert len(born) == INSTANCES

    watcher.begin()
    bench.begin()
    app.patch(template=template("app:2"))
    app.until(lambda: done(**all_of_them), "all are updated", PATIENCE)
    writes = bench.end(f"{INSTANCES} rolled in place, 10%", watcher.fewest)
    assert not writes or writes["update pods"] == INSTANCES
    pods = app.pods
    assert [n for n, pod in pods.items() if not updated_and_seen(pod, "app:2")] == []
    assert app.uids() == born
    assert watcher.fewest >= INSTANCES - BUDGET

    if idle:
        watcher.begin()
        bench.begin()
        time.sleep(IDLE_SECONDS)  # what is measured here is that nothing happens
        writes = bench.end(f"idle for {IDLE_SECONDS} s", watcher.fewest, counts=False)
        assert writes == {}
        assert watcher.fewest == INSTANCES

    app.patch(replicas=0)
    app.until(lambda: not app.pods, "all are gone", PATIENCE)
    app.delete()


@pytest.mark.usefixtures("kubelet")
def test_five_hundred_instances(
    tapps: Controller, app: App, bench: Bench, watcher: Watcher, note: list[str]
) -> None:
    for number, way in enumerate(TURNS if app.kube.minor >= 36 else (PLAIN,)):
        bench.turn(way)
        live(app, bench, watcher, idle=way not in TURNS[:number])
    print(f"\n{bench.table(tapps.description)}")  # noqa: T201 - this is what it is for
    note.append(bench.table(f"{INSTANCES} instances on {tapps.description}"))
