"""Status and conditions of a TApp whose containers a real kubelet runs."""

from __future__ import annotations

import time

import pytest

from .realnode.images import app as image
from .realnode.trial import Trial
from .realnode.workloads import PROBE, container

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]


def test_unready_instance_is_not_shown_as_updating_after_its_update(real: Trial) -> None:
    """An instance that becomes unready later must not be shown as Updating."""
    probed = {"readinessProbe": PROBE}
    real.create(container("1", **probed)).roll(container("2", **probed))
    real.spoil(1)
    real.app.until(lambda: not real.ready(1), "instance 1 is not Ready", 120)
    real.app.quiet()
    assert "Updating" not in real.app.statuses
    assert real.app.statuses.split()[0] == "Running"


def degraded_texts(real: Trial, seconds: float) -> set[str]:
    """Returns all texts of the condition Degraded within a time."""
    found, end = set(), time.monotonic() + seconds
    while time.monotonic() < end:
        found.add(real.app.condition("Degraded"))
        time.sleep(0.2)
    return found


def test_crash_loop_stays_degraded_until_the_next_template(real: Trial) -> None:
    """The condition has exit code, count and time, even while the kubelet shows the back-off as
    terminated.

    The first restart follows at once, so only the second one counts as a loop. The repair happens
    in place and at once, because the back-off belongs to the image that crashed.
    """
    real.create("1", minReadySeconds=4)
    born = real.app.uids()
    real.change("crash")
    real.app.until(lambda: real.container(0)["restartCount"] >= 3, "the container crashes", 60)
    real.app.until(
        lambda: real.app.condition("Degraded").startswith("True "), "the TApp is degraded", 120
    )
    words = degraded_texts(real, 15)
    assert all(each.startswith("True ") and "code 3" in each for each in words), words
    real.roll("2")
    assert real.app.uids() == born
    assert real.never_fewer_than(2)


def test_failed_pull_names_the_image_and_the_error(real: Trial) -> None:
    """The kubelet's reason alternates with CrashLoopBackOff, but the container never crashed."""
    real.create("1").change("missing")
    real.app.until(
        lambda: image("missing") in real.app.condition("Degraded"), "the image is named", 120
    )
    words = degraded_texts(real, 25)
    assert [each for each in words if image("missing") not in each] == []
    assert [each for each in words if "CrashLoopBackOff" in each] == []
    assert any("not found" in each for each in words)


@pytest.mark.parametrize("kind", ["sidecar", "second container"])
def test_stuck_second_container_is_named(real: Trial, kind: str) -> None:
    """The kubelet shows a sidecar that it stopped and cannot pull as terminated, Completed."""

    def pod(tag: str) -> dict[str, object]:
        side = container(tag, "side")
        if kind == "sidecar":
            return {"initContainers": [side | {"restartPolicy": "Always"}]}
        return {"containers": [container("1"), side]}

    real.create("1", pod=pod("1"))
    real.change("1", **pod("missing"))
    real.app.until(lambda: "side" in real.app.condition("Degraded"), "the container is named", 75)
    real.wait(10)
    assert real.app.condition("Degraded").startswith("True ")
    assert image("missing") in real.app.condition("Degraded")
    assert real.never_fewer_than(2)


def test_stuck_init_container_is_named(real: Trial) -> None:
    """The pod is new, because a plain init container cannot be updated in place."""
    real.create("1", pod={"initContainers": [container("ends", "first")]})
    real.change("1", initContainers=[container("missing", "first")])
    real.app.until(lambda: "first" in real.app.condition("Degraded"), "the container is named", 120)
    assert real.never_fewer_than(2)
    real.roll("2", initContainers=[container("ends", "first")])
    assert real.never_fewer_than(2)
