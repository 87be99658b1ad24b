"""A kubelet that is away for a while in the middle of an update, and then starts anew.

Since Kubernetes 1.35 (KEP-4781) it goes on with `started` and Ready as they were published, and
also for a container that is not the published one: just started, and seen by no probe.
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
"""Seconds: a kubelet calls it no restart of its own if a container is younger than ten."""
LATE = "serves-late"
BUSY: Json = {"postStart": {"exec": {"command": ["sleep", "6"]}}}
"""Keeps the kubelet from publishing what it has started, and from probing it."""
PATIENT = PROBE | {"failureThreshold": 30}


@pytest.fixture
def away(real: Trial, cluster: Cluster) -> Callable[[], None]:
    """Kills the kubelet for a while, in which nobody gives its node up."""
    plane = cluster.control_plane
    assert plane is not None

    def go() -> None:
        real.node.kubelet.stop(kill=True)
        plane.restart_controller_manager(kill=True, down=AWAY)
        real.node.kubelet.start()

    real.node.registry.publish(LATE, START_SECONDS="30")
    return go


def test_a_container_that_no_probe_has_seen_is_not_trusted(
    real: Trial, away: Callable[[], None]
) -> None:
    fields: Json = {"readinessProbe": PATIENT, "lifecycle": BUSY}
    real.began(container("1", **fields))
    born = real.app.uids()
    real.change(container(LATE, **fields))
    real.app.until(
        lambda: any(tag_of(each.image) == LATE for each in real.witness.now(real.app.namespace)),
        "the new container has begun",
        60,
    )
    away()
    real.app.until(lambda: len(real.begin_of(LATE)) > 1, "the roll goes on", 120)
    assert real.app.uids() == born
    assert real.always_served(2)
