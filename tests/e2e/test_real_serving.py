"""Availability of instances after their containers were replaced on a real kubelet."""

from __future__ import annotations

import pytest

from .kube import Json
from .realnode.trial import Trial
from .realnode.workloads import BOOT, PROBE, container, environment

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]
PATIENT = PROBE | {"periodSeconds": 4, "failureThreshold": 30}
"""A probe whose first run comes seconds after the start."""


@pytest.mark.parametrize(
    "probes",
    [
        {"startupProbe": PATIENT},
        {"readinessProbe": PATIENT},
        {"startupProbe": PATIENT, "readinessProbe": PROBE},
        {"readinessProbe": PROBE | {"initialDelaySeconds": 5}},
    ],
    ids=["startup", "readiness", "startup and readiness", "readiness with a delay"],
)
def test_updated_instance_does_not_count_before_its_probe_has_run(
    real: Trial, probes: Json
) -> None:
    """Until then the kubelet reports the restarted container as started and ready."""
    real.create(container("1", **probes))
    real.roll(container("slow", **probes))
    assert real.never_fewer_than(2)
    assert real.always_served(2)
    assert real.tags() == "slow slow slow"


@pytest.mark.parametrize("seconds", [0, 5], ids=["at once", "minReadySeconds"])
def test_ready_does_not_count_before_the_startup_probe_has_run(real: Trial, seconds: int) -> None:
    """Readiness passes at once, while the kubelet does not count the container as started yet."""
    probes = {"startupProbe": BOOT, "readinessProbe": PROBE}
    real.create(container("1", **probes), replicas=4, minReadySeconds=seconds)
    real.roll(container("late", **probes), seconds=180)
    assert real.always_served(3)
    assert real.tags() == "late late late late"


def test_post_start_hook_delays_the_availability_of_an_instance(real: Trial) -> None:
    """The kubelet publishes and probes the container only after its postStart hook."""
    fields: Json = {"startupProbe": BOOT | {"periodSeconds": 4}, "readinessProbe": PROBE}
    fields["lifecycle"] = {"postStart": {"exec": {"command": ["sleep", "7"]}}}
    real.create(container("1", **fields))
    real.roll(container("late", **fields), seconds=180)
    assert real.always_served(2)
    assert real.tags() == "late late late"


def test_min_ready_seconds_begin_at_the_start_of_the_container(real: Trial) -> None:
    """Without a probe, Ready stays True through a crash, so its time would look long enough."""
    real.create("1", minReadySeconds=5)
    real.change("crash")
    real.app.until(
        lambda: real.container(0)["restartCount"] >= 3, "instance 0 has crashed again", 90
    )
    assert real.tags() == "crash 1 1"
    assert real.never_fewer_than(2)
    real.roll("2")
    assert real.never_fewer_than(2)
    assert real.tags() == "2 2 2"


@pytest.mark.parametrize("probes", [{}, {"readinessProbe": PROBE}], ids=["no probe", "readiness"])
def test_pause_between_instances_lasts_at_least_min_ready_seconds(
    real: Trial, probes: Json
) -> None:
    """The witness measures the pauses.

    Kubernetes truncates the time of Ready to seconds for all workloads.
    """
    wanted, cut = 2, 1 if probes else 0
    real.create(container("1", **probes), replicas=6, minReadySeconds=wanted)
    real.roll(container("2", **probes))
    begins, ends = real.begin_of("2"), real.end_of("1")
    pauses = [ends[f"web-{n + 1}"] - begins[f"web-{n}"] for n in range(5)]
    assert min(pauses) >= wanted - cut, pauses


def test_late_crash_within_min_ready_seconds_stops_the_rollout(real: Trial) -> None:
    real.create("1", minReadySeconds=8)
    real.change("crash-late").wait(20)
    assert real.tags() == "crash-late 1 1"
    assert real.never_fewer_than(2)


def test_crash_after_a_passed_probe_stops_the_rollout(real: Trial) -> None:
    """The first probe runs at once, and the kubelet reports the crash a second later."""
    real.create(container("1", readinessProbe=PROBE), minReadySeconds=4)
    real.change(container("crash", readinessProbe=PROBE)).wait(15)
    assert real.tags() == "crash 1 1"
    assert real.never_fewer_than(2)


def test_rollout_succeeds_after_a_liveness_restart(real: Trial) -> None:
    alive = {"livenessProbe": PROBE | {"failureThreshold": 1}}
    real.create(container("1", **alive))
    real.spoil(1)
    real.app.until(lambda: real.container(1)["restartCount"] == 1, "instance 1 has restarted", 120)
    real.witness.begin(real.app.namespace)
    real.roll(container("2", **alive))
    assert real.never_fewer_than(2)


def test_image_that_never_becomes_ready_stops_the_rollout(real: Trial) -> None:
    real.create(container("1", readinessProbe=PROBE))
    real.change(container("dead", readinessProbe=PROBE)).wait(12)
    assert real.tags() == "dead 1 1"
    real.roll(container("2", readinessProbe=PROBE))
    assert real.always_served(2)


def test_image_with_too_little_memory_stops_the_rollout(real: Trial) -> None:
    small = {"resources": {"limits": {"memory": "24Mi"}}, "readinessProbe": PROBE}
    real.create(container("1", **small))
    real.change(container("oom", **small))
    real.app.until(
        lambda: "OOMKilled" in str(real.container(0).get("lastState")), "instance 0 was killed", 60
    )
    real.app.until(
        lambda: "OOMKilled" in real.app.condition("Degraded"), "the condition names OOMKilled", 30
    )
    assert real.tags() == "oom 1 1"
    real.roll(container("2", **small))
    assert real.never_fewer_than(2)


@pytest.mark.parametrize(
    "fields",
    [
        {"env": environment(TERM_SECONDS=3)},
        {"env": environment(IGNORE_TERM=1)},
        {"lifecycle": {"preStop": {"exec": {"command": ["sleep", "3"]}}}},
    ],
    ids=["slow", "ignored", "preStop"],
)
def test_slow_end_of_a_container_delays_the_next_instance(real: Trial, fields: Json) -> None:
    """The next instance must wait until the new container runs, even if the old one ends slowly."""
    pod = {"terminationGracePeriodSeconds": 5}
    real.create(container("1", **fields), pod=pod)
    real.roll(container("2", **fields), **pod)
    assert real.never_fewer_than(2)
    assert {number: real.container(number)["restartCount"] for number in range(3)} == {
        0: 1, 1: 1, 2: 1
    }  # fmt: skip
