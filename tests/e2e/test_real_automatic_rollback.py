"""Automatic rollback with real containers: a tag that does not exist, and an image that crashes."""

from __future__ import annotations

import pytest

from .realnode.trial import Trial
from .realnode.workloads import PROBE, container

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]


@pytest.mark.parametrize(
    ("image", "cause"),
    [("127.0.0.1:1/app:missing", "127.0.0.1:1/app:missing"), ("crash", "container main")],
    ids=["a tag that does not exist", "a crashing image"],
)
@pytest.mark.parametrize("replicas", [1, 3, 12])
def test_broken_image_is_rolled_back_in_place(
    real: Trial, image: str, cause: str, replicas: int
) -> None:
    """The processes of the old image run again in the same pods, and the message says why."""
    real.create(
        container("1", readinessProbe=PROBE),
        replicas=replicas,
        progressDeadlineSeconds=25,
        # The crashing container serves for a moment, which without this completes the rollout.
        minReadySeconds=5,
        updateStrategy={"onDeadline": "Rollback"},
    )
    born = real.app.uids()
    real.change(container(image, readinessProbe=PROBE))
    real.app.until(
        lambda: (
            real.app.condition("Stalled").startswith("True RolledBack")
            and all(real.ready(number) for number in range(replicas))
            and set(real.tags().split()) == {"1"}
        ),
        "the rollout is rolled back",
        180,
    )
    assert real.app.uids() == born
    assert set(real.runs().values()) == {"1"}
    assert len(real.runs()) == replicas
    assert cause in real.app.condition("Stalled")
    assert real.never_fewer_than(replicas - 1)
    # It stays so: a later deadline changes nothing.
    real.wait(30)
    assert set(real.tags().split()) == {"1"}
    assert real.app.uids() == born
