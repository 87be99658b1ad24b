"""A kubelet that stops during an update and starts again.

Since Kubernetes 1.35 (KEP-4781) the kubelet keeps `started` and Ready as published. The kubelet
does so even for a container that replaced the published one, has just started and was not probed
yet.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from .cluster import Cluster
from .kube import Json
from .realnode.trial import Trial
from .realnode.workloads import PROBE, container, tag_of

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]
AWAY = 12
"""Seconds without a kubelet.

It recognizes its restart only for containers older than ten seconds.
"""
LATE = "serves-late"
BUSY: Json = {"postStart": {"exec": {"command": ["sleep", "6"]}}}
"""A hook that keeps the kubelet from publishing and probing the started container."""
PATIENT = PROBE | {"failureThreshold": 30}


@pytest.fixture
def away(real: Trial, cluster: Cluster) -> Callable[[], None]:
    """Returns a function that kills the kubelet for a while, during which the control plane does
    not act on its node.
    """
    plane = cluster.control_plane
    assert plane is not None

    def go() -> None:
        real.node.kubelet.stop(kill=True)
        plane.restart_controller_manager(kill=True, down=AWAY)
        real.node.kubelet.start()

    real.node.registry.publish(LATE, START_SECONDS="30")
    return go


def test_unprobed_container_does_not_count_after_a_kubelet_restart(
    real: Trial, away: Callable[[], None]
) -> None:
    fields: Json = {"readinessProbe": PATIENT, "lifecycle": BUSY}
    real.create(container("1", **fields))
    born = real.app.uids()
    real.change(container(LATE, **fields))
    real.app.until(
        lambda: any(tag_of(each.image) == LATE for each in real.witness.now(real.app.namespace)),
        "the new container runs",
        60,
    )
    away()
    real.app.until(lambda: len(real.begin_of(LATE)) > 1, "the rollout continues", 120)
    assert real.app.uids() == born
    assert real.always_served(2)
