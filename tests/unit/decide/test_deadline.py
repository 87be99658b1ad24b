"""Tests the deadline of a rollout: when it is exceeded, what counts as progress, what stops the
timer.
"""

from collections.abc import Callable
from typing import Any

import pytest

from tests.builders import (
    NOW,
    READY_SINCE,
    Document,
    crashing,
    running,
    tapp,
    template,
    terminating,
)
from tests.unit.world import World, condition, settled

NEW = template("nginx:2", container={"command": ["run"]})
"""Differs from the first template in more than its image, so every update replaces the pod."""
LIMIT = 600


def unready(pod: Document) -> Document:
    return running(pod, ready=False)


def stuck_rollout(replicas: int = 3, **spec: Any) -> World:
    """Returns a TApp whose rollout is stuck: the new pod of instance 0 never becomes Ready."""
    world = settled(replicas=replicas, **spec).change(template=NEW)
    for _ in range(4):
        world.sync()
        world.kubelet()
        if "web-0" in world.pods:
            world.modify(0, unready)
    world.sync()
    return world


def status_after(world: World, seconds: float) -> Document:
    """Runs a sync `seconds` seconds after `NOW`, and returns the status that it writes."""
    world.hook.now = NOW + seconds
    world.sync()
    status: Document = world.parent["status"]
    return status


def is_deadline_exceeded(status: Document) -> bool:
    """Returns True if the status says that the rollout has exceeded its deadline.

    Checks in addition that all conditions agree on that.
    """
    progressing, stalled = condition(status, "Progressing"), condition(status, "Stalled")
    assert progressing is not None
    found = progressing["reason"] == "ProgressDeadlineExceeded"
    assert (stalled is not None and stalled["reason"] == progressing["reason"]) == found
    if found:
        assert progressing["status"] == "False"
        assert condition(status, "Degraded")["status"] == "True"  # type: ignore[index]
        assert condition(status, "Ready")["status"] == "False"  # type: ignore[index]
    return found


# --- when the deadline has passed -----------------------------------------------------------------


@pytest.mark.parametrize(
    ("spec", "limit"),
    [
        ({}, LIMIT),
        ({"progressDeadlineSeconds": 20}, 20),
        ({"progressDeadlineSeconds": None}, LIMIT),
        ({"progressDeadlineSeconds": 20, "minReadySeconds": 30}, 50),
        (
            {
                "progressDeadlineSeconds": 20,
                "updateStrategy": {"inPlaceUpdateStrategy": {"gracePeriodSeconds": 7}},
            },
            27,
        ),
        ({"progressDeadlineSeconds": 2**31 - 1}, 2**31 - 1),
    ],
    ids=["default", "20 seconds", "null", "plus minReadySeconds", "plus grace period", "maximum"],
)
def test_rollout_without_progress_exceeds_its_deadline(spec: Document, limit: int) -> None:
    world = stuck_rollout(**spec)
    assert world.sync()["resyncAfterSeconds"] == limit
    assert not is_deadline_exceeded(status_after(world, limit - 1))
    assert world.sync()["resyncAfterSeconds"] == 1
    assert is_deadline_exceeded(status_after(world, limit))
    assert "resyncAfterSeconds" not in world.sync()


def test_rollout_never_exceeds_a_deadline_of_0() -> None:
    world = stuck_rollout(progressDeadlineSeconds=0)
    status = status_after(world, 10**6)
    assert not is_deadline_exceeded(status)
    assert "progressed" not in status


def test_stalled_message_names_each_instance_with_its_reason_and_time() -> None:
    status = status_after(stuck_rollout(replicas=9), LIMIT)
    message = condition(status, "Stalled")["message"]  # type: ignore[index]
    assert "the rollout has made no progress since 2026-01-05T11:00:00Z" in message
    assert "spec.progressDeadlineSeconds: 600" in message
    assert f"instance 0: its pod is not Ready since {READY_SINCE}" in message
    assert (
        "each of instances 1-8: the update waits for instance 0 to become available, because "
        "spec.updateStrategy.maxUnavailable allows 1 of 9 instances to be unavailable" in message
    )
    for type in ("Progressing", "Degraded", "Ready"):
        assert condition(status, type)["message"] == message  # type: ignore[index]
    assert condition(status, "Degraded")["reason"] == "Stalled"  # type: ignore[index]


def test_stalled_message_quotes_why_an_instance_is_broken() -> None:
    world = stuck_rollout().modify(0, crashing)
    status = status_after(world, LIMIT)
    assert is_deadline_exceeded(status)
    assert condition(status, "Degraded")["reason"] == "InstancesBroken"  # type: ignore[index]
    assert "CrashLoopBackOff" in condition(status, "Stalled")["message"]  # type: ignore[index]


def test_stalled_message_shows_five_instances_and_counts_the_rest() -> None:
    world = World(tapp(replicas=9))
    world.sync()
    for id in range(9):
        world.pods[f"web-{id}"] = running(
            world.pod(id), ready=False, since=f"2026-01-05T10:00:0{id}Z"
        )
    world.sync()
    message = condition(status_after(world, LIMIT), "Stalled")["message"]  # type: ignore[index]
    assert message.count("its pod is not Ready since") == 5
    assert "; and 4 more instances. " in message


# --- what counts as progress ----------------------------------------------------------------------


def pod_becomes_ready(world: World) -> None:
    world.kubelet()


def another_update_begins(world: World) -> None:
    """Raises the budget and runs a sync, so that one more update begins."""
    world.change(updateStrategy={"maxUnavailable": 2})
    world.sync()


def rollout_resumes(world: World) -> None:
    world.change(updateStrategy={"paused": True})
    assert not is_deadline_exceeded(status_after(world, 9 * LIMIT))
    world.change(updateStrategy={"paused": False})


def template_changes(world: World) -> None:
    world.change(template=template("nginx:3", container={"command": ["run"]}))


@pytest.mark.parametrize(
    "change", [pod_becomes_ready, another_update_begins, rollout_resumes, template_changes]
)
def test_conditions_recover_when_the_rollout_makes_progress(
    change: Callable[[World], None],
) -> None:
    world = stuck_rollout()
    assert is_deadline_exceeded(status_after(world, 10 * LIMIT))
    change(world)
    status = status_after(world, 10 * LIMIT)
    assert not is_deadline_exceeded(status)
    assert condition(status, "Progressing")["status"] == "True"  # type: ignore[index]


def test_deadline_restarts_with_each_updated_instance() -> None:
    world = settled(replicas=4).change(template=template("nginx:2"))
    for step in range(12):
        assert not is_deadline_exceeded(status_after(world, step * (LIMIT - 1)))
        world.kubelet()
    assert condition(world.parent["status"], "Ready")["status"] == "True"  # type: ignore[index]
    assert "progressed" not in world.parent["status"]


def test_instance_that_flaps_does_not_restart_the_deadline() -> None:
    world = stuck_rollout(updateStrategy={"maxUnavailable": 2})
    for step in range(5):
        world.modify(1, running if step % 2 else unready)
        status_after(world, step * LIMIT / 5)
    began = dict(world.parent["status"]["progressed"])
    for step in range(5, 9):
        world.modify(1, running if step % 2 else unready)
        status = status_after(world, step * LIMIT / 5)
        assert status.get("progressed") == began
    assert is_deadline_exceeded(status)


def test_status_is_not_written_while_a_rollout_makes_no_progress() -> None:
    world = stuck_rollout()
    before = world.parent["status"]
    assert status_after(world, 1) == before
    assert status_after(world, LIMIT - 1) == before


# --- changes that are no rollout, and reasons that stop the timer ---------------------------------


def being_deleted(pod: Document) -> Document:
    return terminating(pod)


@pytest.mark.parametrize("happens", [unready, crashing, being_deleted])
def test_failure_of_an_instance_without_an_edit_starts_no_deadline(
    happens: Callable[[Document], Document],
) -> None:
    world = settled(replicas=3).modify(1, happens)
    assert "progressed" not in world.sync()["status"]
    status = status_after(world, 100 * LIMIT)
    assert not is_deadline_exceeded(status)
    assert "progressed" not in status


def test_first_creation_has_a_deadline() -> None:
    world = World(tapp(replicas=2))
    world.sync()
    world.kubelet(ready=False)
    world.sync()
    assert not is_deadline_exceeded(status_after(world, LIMIT - 1))
    assert is_deadline_exceeded(status_after(world, LIMIT))
    world.kubelet()
    status = status_after(world, LIMIT + 1)
    assert condition(status, "Ready")["status"] == "True"  # type: ignore[index]


def test_restart_of_a_killed_instance_has_a_deadline() -> None:
    world = settled(replicas=2, statuses={"0": "Killed"}).change(statuses=None)
    world.sync()
    world.kubelet(ready=False)
    assert not is_deadline_exceeded(status_after(world, 0))
    assert is_deadline_exceeded(status_after(world, LIMIT))


def test_pause_stops_the_deadline() -> None:
    world = stuck_rollout().change(updateStrategy={"paused": True})
    status = status_after(world, 100 * LIMIT)
    assert not is_deadline_exceeded(status)
    assert "resyncAfterSeconds" not in world.sync()


def test_rollout_that_is_paused_from_the_start_has_no_deadline() -> None:
    world = settled(replicas=2, updateStrategy={"paused": True}).change(template=NEW)
    status = status_after(world, 100 * LIMIT)
    assert condition(status, "Progressing")["reason"] == "Paused"  # type: ignore[index]
    assert "progressed" not in status


@pytest.mark.parametrize(
    "spec",
    [{"templates": {"1": "typo"}}, {"template": NEW, "updateStrategy": {"maxUnavailable": 0}}],
    ids=["no template", "no budget"],
)
def test_refused_spec_is_reported_as_stuck_without_a_deadline(spec: Document) -> None:
    world = settled(replicas=2).change(**spec)
    status = status_after(world, 100 * LIMIT)
    assert condition(status, "Progressing")["reason"] == "Stuck"  # type: ignore[index]
    assert "progressed" not in status


@pytest.mark.parametrize(
    "spec",
    [{"replicas": 0}, {"replicas": 2, "statuses": {"0": "Killed"}}],
    ids=["no instances", "one killed instance"],
)
def test_status_stays_the_same_if_nothing_is_to_be_done(spec: Document) -> None:
    world = settled(**spec)
    before = world.parent["status"]
    assert status_after(world, 100 * LIMIT) == before
    assert "resyncAfterSeconds" not in world.sync()


def test_deadline_includes_the_termination_grace_period_of_a_pod() -> None:
    slow = {"spec": {**template()["spec"], "terminationGracePeriodSeconds": 3_600}}
    world = settled(replicas=2, template=slow).change(template=NEW)
    world.sync()
    assert not is_deadline_exceeded(status_after(world, LIMIT + 3_599))
    status = status_after(world, LIMIT + 3_600)
    assert is_deadline_exceeded(status)
    assert "instance 0: pod web-0 is being deleted" in condition(status, "Stalled")["message"]  # type: ignore[index]
