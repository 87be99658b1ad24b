"""The deadline of a roll: when it has passed, what counts as coming further, and what stops it."""

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
"""Differs in more than images: instances are recreated."""
LIMIT = 600


def unready(pod: Document) -> Document:
    return running(pod, ready=False)


def stuck(replicas: int = 3, **spec: Any) -> World:
    """A roll by new pods whose first instance never becomes ready; it comes no further."""
    world = settled(replicas=replicas, **spec).change(template=NEW)
    for _ in range(4):
        world.sync()
        world.kubelet()
        if "web-0" in world.pods:
            world.modify(0, unready)
    world.sync()
    return world


def after(world: World, seconds: float) -> Document:
    """The status of a sync so many seconds after the world began."""
    world.hook.now = NOW + seconds
    world.sync()
    status: Document = world.parent["status"]
    return status


def late(status: Document) -> bool:
    """True if a status says that a roll is too late, and all of it does."""
    progressing, stalled = condition(status, "Progressing"), condition(status, "Stalled")
    assert progressing is not None
    found = progressing["reason"] == "ProgressDeadlineExceeded"
    assert (stalled is not None and stalled["reason"] == progressing["reason"]) == found
    if found:
        assert progressing["status"] == "False"
        assert condition(status, "Degraded")["status"] == "True"  # type: ignore[index]
        assert condition(status, "Ready")["status"] == "False"  # type: ignore[index]
    return found


# --- when -----------------------------------------------------------------------------------------


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
    ids=["by default", "its own", "null", "with minReadySeconds", "with a grace period", "most"],
)
def test_a_roll_that_comes_no_further_is_too_late_after(spec: Document, limit: int) -> None:
    world = stuck(**spec)
    assert world.sync()["resyncAfterSeconds"] == limit
    assert not late(after(world, limit - 1))
    assert world.sync()["resyncAfterSeconds"] == 1
    assert late(after(world, limit))
    assert "resyncAfterSeconds" not in world.sync()


def test_without_a_deadline_a_roll_may_take_for_ever() -> None:
    world = stuck(progressDeadlineSeconds=0)
    status = after(world, 10**6)
    assert not late(status)
    assert "progressed" not in status


def test_it_names_the_instances_and_what_each_waits_for_since_when() -> None:
    status = after(stuck(replicas=9), LIMIT)
    message = condition(status, "Stalled")["message"]  # type: ignore[index]
    assert "nothing has come further since 2026-01-05T11:00:00Z" in message
    assert "spec.progressDeadlineSeconds: 600" in message
    assert f"instance 0: its pod is not Ready since {READY_SINCE}" in message
    assert "instances 1-8: spec.updateStrategy.maxUnavailable: 1 allows 1 of 9" in message
    for type in ("Progressing", "Degraded", "Ready"):
        assert condition(status, type)["message"] == message  # type: ignore[index]
    assert condition(status, "Degraded")["reason"] == "Stalled"  # type: ignore[index]


def test_what_is_broken_is_said_in_its_own_words() -> None:
    world = stuck().modify(0, crashing)
    status = after(world, LIMIT)
    assert late(status)
    assert condition(status, "Degraded")["reason"] == "InstancesBroken"  # type: ignore[index]
    assert "CrashLoopBackOff" in condition(status, "Stalled")["message"]  # type: ignore[index]


def test_a_message_shows_five_waits_and_counts_the_rest() -> None:
    world = World(tapp(replicas=9))
    world.sync()
    for id in range(9):
        world.pods[f"web-{id}"] = running(
            world.pod(id), ready=False, since=f"2026-01-05T10:00:0{id}Z"
        )
    world.sync()
    message = condition(after(world, LIMIT), "Stalled")["message"]  # type: ignore[index]
    assert message.count("its pod is not Ready since") == 5
    assert "; and 4 more. " in message


# --- what counts as coming further ----------------------------------------------------------------


def made_ready(world: World) -> None:
    world.kubelet()


def made_anew(world: World) -> None:
    """A person raises the budget, so one more update begins."""
    world.change(updateStrategy={"maxUnavailable": 2})
    world.sync()


def resumed(world: World) -> None:
    world.change(updateStrategy={"paused": True})
    assert not late(after(world, 9 * LIMIT))
    world.change(updateStrategy={"paused": False})


def edited(world: World) -> None:
    world.change(template=template("nginx:3", container={"command": ["run"]}))


@pytest.mark.parametrize("change", [made_ready, made_anew, resumed, edited])
def test_it_heals_by_itself_when_the_roll_goes_on(change: Callable[[World], None]) -> None:
    world = stuck()
    assert late(after(world, 10 * LIMIT))
    change(world)
    status = after(world, 10 * LIMIT)
    assert not late(status)
    assert condition(status, "Progressing")["status"] == "True"  # type: ignore[index]


def test_each_instance_that_comes_further_begins_the_time_anew() -> None:
    world = settled(replicas=4).change(template=template("nginx:2"))
    for step in range(12):
        assert not late(after(world, step * (LIMIT - 1)))
        world.kubelet()
    assert condition(world.parent["status"], "Ready")["status"] == "True"  # type: ignore[index]
    assert "progressed" not in world.parent["status"]


def test_an_instance_that_recovers_and_falls_again_is_no_progress() -> None:
    world = stuck(updateStrategy={"maxUnavailable": 2})
    for step in range(5):
        world.modify(1, running if step % 2 else unready)
        after(world, step * LIMIT / 5)
    began = dict(world.parent["status"]["progressed"])
    for step in range(5, 9):
        world.modify(1, running if step % 2 else unready)
        status = after(world, step * LIMIT / 5)
        assert status.get("progressed") == began
    assert late(status)


def test_a_roll_writes_its_progress_only_with_counts_that_change_anyway() -> None:
    world = stuck()
    before = world.parent["status"]
    assert after(world, 1) == before
    assert after(world, LIMIT - 1) == before


# --- what is no roll, and what nobody waits for ---------------------------------------------------


def gone(pod: Document) -> Document:
    return terminating(pod)


@pytest.mark.parametrize("happens", [unready, crashing, gone])
def test_an_instance_that_fails_by_itself_is_no_roll(
    happens: Callable[[Document], Document],
) -> None:
    world = settled(replicas=3).modify(1, happens)
    assert "progressed" not in world.sync()["status"]
    status = after(world, 100 * LIMIT)
    assert not late(status)
    assert "progressed" not in status


def test_the_first_creation_is_a_roll() -> None:
    world = World(tapp(replicas=2))
    world.sync()
    world.kubelet(ready=False)
    world.sync()
    assert not late(after(world, LIMIT - 1))
    assert late(after(world, LIMIT))
    world.kubelet()
    status = after(world, LIMIT + 1)
    assert condition(status, "Ready")["status"] == "True"  # type: ignore[index]


def test_an_instance_that_is_started_again_is_a_roll() -> None:
    world = settled(replicas=2, statuses={"0": "Killed"}).change(statuses=None)
    world.sync()
    world.kubelet(ready=False)
    assert not late(after(world, 0))
    assert late(after(world, LIMIT))


def test_a_pause_stops_the_time() -> None:
    world = stuck().change(updateStrategy={"paused": True})
    status = after(world, 100 * LIMIT)
    assert not late(status)
    assert "resyncAfterSeconds" not in world.sync()


def test_a_roll_that_is_paused_before_it_begins_is_none() -> None:
    world = settled(replicas=2, updateStrategy={"paused": True}).change(template=NEW)
    status = after(world, 100 * LIMIT)
    assert condition(status, "Progressing")["reason"] == "Paused"  # type: ignore[index]
    assert "progressed" not in status


@pytest.mark.parametrize(
    "spec",
    [{"templates": {"1": "typo"}}, {"template": NEW, "updateStrategy": {"maxUnavailable": 0}}],
    ids=["no template", "no budget"],
)
def test_what_is_refused_is_said_at_once_and_not_waited_for(spec: Document) -> None:
    world = settled(replicas=2).change(**spec)
    status = after(world, 100 * LIMIT)
    assert condition(status, "Progressing")["reason"] == "Stuck"  # type: ignore[index]
    assert "progressed" not in status


@pytest.mark.parametrize("spec", [{"replicas": 0}, {"replicas": 2, "statuses": {"0": "Killed"}}])
def test_what_needs_nothing_is_never_touched(spec: Document) -> None:
    world = settled(**spec)
    before = world.parent["status"]
    assert after(world, 100 * LIMIT) == before
    assert "resyncAfterSeconds" not in world.sync()


def test_a_pod_that_is_being_stopped_has_its_grace_period() -> None:
    slow = {"spec": {**template()["spec"], "terminationGracePeriodSeconds": 3_600}}
    world = settled(replicas=2, template=slow).change(template=NEW)
    world.sync()
    assert not late(after(world, LIMIT + 3_599))
    status = after(world, LIMIT + 3_600)
    assert late(status)
    assert "instance 0: pod web-0 is being deleted" in condition(status, "Stalled")["message"]  # type: ignore[index]
