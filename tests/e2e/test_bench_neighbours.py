"""`make e2e-bench`: how soon a small TApp is served, alone and beside ten large ones that roll.

What is measured is what its author waits for: from the edit of its image to the write of its pod.
`BENCH_EACH` is how many instances each of the large ones has.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from . import policies
from .app import GROUP, tapp, template
from .hook import HookService
from .kube import Kube
from .kubelet import FakeKubelet
from .metacontroller import Controller, RealMetacontroller, registered
from .patience import until
from .test_bench_rolls import PACES, PATIENCE, Workload, probed

pytestmark = [pytest.mark.e2e, pytest.mark.bench, pytest.mark.timeout(1200)]
LARGE = [f"large-{number}" for number in range(10)]
EACH = int(os.environ.get("BENCH_EACH", "200"))
ALONE = 50
"""Edits while nothing else happens."""


class Neighbours:
    """A small TApp and large ones, in one namespace."""

    def __init__(self, kube: Kube, namespace: str) -> None:
        self._kube, self._namespace = kube, namespace

    def apply(self, name: str, **spec: Any) -> None:
        """Creates a TApp, or changes it."""
        manifest = tapp(name, **spec)
        manifest["metadata"]["namespace"] = self._namespace
        self._kube.apply(manifest)

    def roll(self, name: str, image: str) -> None:
        """Gives a large one that image, by tenths."""
        budget = {"maxUnavailable": "10%"}
        self.apply(name, replicas=EACH, updateStrategy=budget, template=probed(image))

    def is_settled(self, name: str) -> bool:
        """Whether its status says that all is done."""
        path = self._kube.path(GROUP, "tapps", self._namespace, name)
        return Workload(self._kube, path, ("availableReplicas", "updatedReplicas")).settled()

    def seconds_to_the_write(self, image: str) -> float:
        """From the edit of the small one's image until its pod has it."""
        began = time.monotonic()
        self.apply("small", replicas=1, template=template(image))
        while self._image() != image:
            time.sleep(0.005)
        seconds = time.monotonic() - began
        until(lambda: self.is_settled("small"), "the small one is done", PATIENCE)
        return seconds

    def _image(self) -> str:
        pod = self._kube.get("v1", "pods", self._namespace, "small-0")
        return str(pod["spec"]["containers"][0]["image"])

    def end(self) -> None:
        """Deletes all of them."""
        for name in ["small", *LARGE]:
            self._kube.delete(GROUP, "tapps", self._namespace, name)
        until(
            lambda: not self._kube.list_all(GROUP, "tapps", self._namespace),
            "all are gone",
            PATIENCE,
        )


@pytest.fixture
def hook(workspace: Path, request: pytest.FixtureRequest) -> Iterator[HookService]:
    """The service at a pace."""
    place = workspace / f"neighbours-{request.param}"
    place.mkdir()
    service = HookService(place, settings=PACES[request.param]).start()
    yield service
    service.stop()


def spread(seconds: list[float]) -> str:
    """Median, 99th percentile and the most, in milliseconds."""
    found = sorted(seconds)
    at = [found[round(part * (len(found) - 1))] for part in (0.5, 0.99, 1)]
    return ", ".join(f"{1000 * each:.0f}" for each in at) + f" ms ({len(found)} edits)"


@pytest.mark.parametrize("hook", PACES, indirect=True)
def test_a_small_one_beside_large_ones(  # noqa: PLR0913, PLR0917 - all that runs
    hook: HookService,
    kube: Kube,
    namespace: str,
    controller: Controller,
    kubelet: FakeKubelet,
    note: list[str],
    request: pytest.FixtureRequest,
) -> None:
    if not isinstance(controller, RealMetacontroller):
        pytest.skip("only of the real Metacontroller the time is of interest")
    kubelet.levers.start_seconds = 0.05
    apps = Neighbours(kube, namespace)
    with registered(controller, hook.url), policies.switchable(kube) as lean:
        lean(True)
        apps.apply("small", replicas=1, template=template("app:0"))
        until(lambda: apps.is_settled("small"), "the small one is there", PATIENCE)
        alone = [apps.seconds_to_the_write(f"app:{edit}") for edit in range(1, ALONE)]
        for name in LARGE:
            apps.roll(name, "app:1")
        until(lambda: all(map(apps.is_settled, LARGE)), "all large ones are there", PATIENCE)
        began = time.monotonic()
        for name in LARGE:
            apps.roll(name, "app:2")
        beside = []
        while not all(map(apps.is_settled, LARGE)):
            beside.append(apps.seconds_to_the_write(f"app:{ALONE + len(beside)}"))
        took = time.monotonic() - began
        apps.end()
    note.append(
        f"from an edit to the pod's write: p50, p99, most of a small TApp alone {spread(alone)}; "
        f"beside {len(LARGE)} of {EACH} instances that roll for {took:.0f} s {spread(beside)}; "
        f"{request.node.callspec.id}"
    )
    assert len(beside) > ALONE / 2
