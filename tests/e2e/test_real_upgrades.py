"""Upgrades of API server, controllers and kubelet under a TApp on the real node.

The upgrades begin at the version before the newest, or for a kubelet at the oldest. Without their
binaries (`E2E_KUBERNETES=1.36 make e2e-binaries`) the tests are skipped with one line.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.holds import WANTED

from .binaries import build
from .cluster import Cluster
from .controlplane import LocalControlPlane
from .kube import Json
from .realnode.trial import Trial
from .realnode.workloads import PROBE, container, environment

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(400)]
BEFORE, OLDEST = "1.36", "1.34"
GRACE = {"terminationGracePeriodSeconds": 4}


def slow(tag: str) -> Json:
    """Returns a container that takes a second to stop."""
    return container(tag, env=environment(TERM_SECONDS=1), readinessProbe=PROBE)


def binaries_of(wanted: str) -> Path:
    """Returns the directory of a version's binaries; skips the test if they do not exist."""
    part = build.kubernetes(wanted)
    if not all((part.bin_dir / name).exists() for name in part.names):
        pytest.skip(f"no Kubernetes {wanted}: E2E_KUBERNETES={wanted} make e2e-binaries")
    return part.bin_dir


@pytest.fixture
def plane(cluster: Cluster, real: Trial) -> Iterator[LocalControlPlane]:
    """The control plane. At the end it has its first version again."""
    found = cluster.control_plane
    assert found is not None
    if build.kubernetes_version() != build.kubernetes_version(build.NEWEST):
        pytest.skip("an upgrade needs the newest version's control plane")
    binaries, kubelet = found.binaries, real.node.kubelet.binary
    yield found
    if found.binaries != binaries:
        found.become(binaries)
    if real.node.kubelet.binary != kubelet:
        real.node.kubelet.become(kubelet)


@pytest.fixture
def kubelet_is(real: Trial, plane: LocalControlPlane) -> Callable[[str], None]:
    """Returns a function that replaces the kubelet by a version and waits until the API server
    shows it.
    """
    assert plane.binaries

    def become(version: str) -> None:
        wanted = build.kubernetes_version(version)
        real.node.kubelet.become(binaries_of(version) / "kubelet")

        def version_is_shown() -> bool:
            node = real.app.kube.get("v1", "nodes", None, real.node.name)
            return bool(node["status"]["nodeInfo"]["kubeletVersion"] == wanted)

        real.app.until(version_is_shown, f"the kubelet is {wanted}", 60)
        real.node.kubelet.wait_ready(real.app.kube)

    return become


def running_containers(real: Trial, number: int | None = None) -> set[str]:
    """Returns the ids of the running containers, of all instances or of one."""
    found = real.witness.now(real.app.namespace)
    return {each.id for each in found if number is None or each.pod == f"web-{number}"}


def begin_to_roll(real: Trial, tag: str) -> None:
    """Sets another image and waits until the first instance has it."""
    before = sum(real.app.restarts().values())
    real.change(slow(tag), **GRACE)
    real.app.until(lambda: sum(real.app.restarts().values()) > before, "the rollout has begun", 60)


def test_rollout_survives_an_upgrade_of_the_control_plane(
    real: Trial, plane: LocalControlPlane, kubelet_is: Callable[[str], None]
) -> None:
    """The API server is upgraded first, on the same data, then the controllers, and the kubelet
    after the rollout.
    """
    real.node.kubelet.stop()
    plane.become(binaries_of(BEFORE))
    kubelet_is(BEFORE)
    real.create(slow("1"), replicas=4, pod=GRACE)
    born = real.app.uids()
    begin_to_roll(real, "2")
    plane.become(binaries_of(build.NEWEST))
    real.app.settle(180)
    assert real.tags() == "2 2 2 2"
    assert real.app.uids() == born
    assert set(real.app.restarts().values()) == {1}
    assert real.never_fewer_than(3)
    assert real.always_served(3)
    kept = running_containers(real)
    real.witness.begin(real.app.namespace, "main")
    kubelet_is(build.NEWEST)
    real.app.settle(60)
    assert running_containers(real) == kept
    assert real.app.uids() == born
    assert real.always_served(4)


@pytest.mark.parametrize("version", [BEFORE, OLDEST])
def test_rollout_survives_an_upgrade_of_an_older_kubelet(
    real: Trial, kubelet_is: Callable[[str], None], version: str
) -> None:
    """The control plane is the newest. An instance on hold must not restart in the meantime."""
    kubelet_is(version)
    real.create(slow("1"), replicas=4, pod=GRACE)
    born = real.app.uids()
    real.roll(slow("2"), **GRACE)
    assert set(real.app.restarts().values()) == {1}
    kept = running_containers(real, 3)
    real.app.annotate(3, hold="a match")
    begin_to_roll(real, "3")
    kubelet_is(build.NEWEST)
    real.app.until(lambda: real.tags() == "3 3 3 2", "all other instances are updated", 120)
    real.app.until(
        lambda: WANTED in real.app.pod(3)["metadata"]["annotations"],
        "the pending action is announced",
        60,
    )
    assert running_containers(real, 3) == kept
    real.app.annotate(3, hold=None)
    real.app.settle(120)
    assert real.tags() == "3 3 3 3"
    assert real.app.uids() == born
    assert set(real.app.restarts().values()) == {2}
    assert real.never_fewer_than(3)
    assert real.always_served(3)
