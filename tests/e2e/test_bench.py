"""`make e2e-bench`: 500 instances created, rolled in place by tenths, and then left alone."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest

from .app import App, Watcher, tapp, template
from .audit import tally
from .cluster import Cluster
from .kube import Json, Kube
from .metacontroller import USER, Controller
from .proxy import HookProxy

pytestmark = [pytest.mark.e2e, pytest.mark.bench, pytest.mark.timeout(1200)]
INSTANCES = 500
BUDGET = INSTANCES // 10
PATIENCE = 500.0
IDLE_SECONDS = 60
HEAD = [
    "step", "seconds", "API writes", "hook calls", "hook ms", "mean ms", "longest ms",
    "fewest serving",
]  # fmt: skip


@dataclass
class Bench:
    """Measures one step after the other."""

    cluster: Cluster
    proxy: HookProxy
    rows: list[list[str]] = field(default_factory=list)
    _begun: float = 0.0
    _mark: int = 0

    def begin(self) -> None:
        """Starts to measure."""
        self.proxy.reset()
        self._mark = self.cluster.audit.mark() if self.cluster.audit else 0
        self._begun = time.monotonic()

    def end(self, what: str, fewest: int) -> dict[str, int]:
        """Ends a step; returns Metacontroller's writes in it."""
        seconds = time.monotonic() - self._begun
        count, spent = self.proxy.count, self.proxy.hook_seconds
        audit = self.cluster.audit
        writes = tally(audit.writes(self._mark, user=USER)) if audit else {}
        told = ", ".join(f"{n} {what}" for what, n in sorted(writes.items())) or "none"
        mean = f"{1000 * spent / count:.0f}" if count else "-"
        longest = max((call.seconds for call in list(self.proxy.calls)), default=0.0)
        self.rows.append(
            [what, f"{seconds:.1f}", told, str(count), f"{1000 * spent:.0f}", mean,
             f"{1000 * longest:.0f}", str(fewest)]
        )  # fmt: skip
        return dict(writes)

    def table(self, title: str) -> str:
        """The measurements, for people."""
        lines = [HEAD, *self.rows]
        widths = [max(len(line[column]) for line in lines) for column in range(len(HEAD))]

        def row(line: list[str]) -> str:
            padded = [cell.ljust(width) for cell, width in zip(line, widths, strict=True)]
            return "  ".join(padded).rstrip()

        return "\n".join([title, *map(row, lines)])


@pytest.fixture
def watcher(kube: Kube, namespace: str) -> Iterator[Watcher]:
    """Counts who serves."""
    made = Watcher(kube, namespace)
    made.start()
    yield made
    made.stop()


@pytest.fixture
def bench(cluster: Cluster, hook_proxy: HookProxy) -> Bench:
    """What measures."""
    return Bench(cluster, hook_proxy)


def updated_and_seen(pod: Json, image: str) -> bool:
    """Whether the kubelet has acted on the last update, and its container runs this image."""
    (status,) = pod["status"]["containerStatuses"]
    acted = pod["status"].get("observedGeneration") == pod["metadata"]["generation"]
    return bool(acted and status["image"].endswith(image) and status["ready"])


@pytest.mark.usefixtures("kubelet")
def test_five_hundred_instances(
    tapps: Controller, app: App, bench: Bench, watcher: Watcher, note: list[str]
) -> None:
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
    assert not writes or writes["create pods"] == INSTANCES
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

    watcher.begin()
    bench.begin()
    time.sleep(IDLE_SECONDS)  # what is measured here is that nothing happens
    writes = bench.end(f"idle for {IDLE_SECONDS} s", watcher.fewest)
    assert writes == {}
    assert watcher.fewest == INSTANCES

    print(f"\n{bench.table(tapps.description)}")  # noqa: T201 - this is what it is for
    note.append(bench.table(f"{INSTANCES} instances on {tapps.description}"))
    app.patch(replicas=0)
    app.until(lambda: not app.pods, "all are gone", PATIENCE)
