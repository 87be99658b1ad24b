"""Batch instances: whether a pod was ended by its update, or by its work."""

from typing import Any

import pytest

from tests.builders import Document, template
from tests.unit.pod.test_completion import BETWEEN, GRACE, OLD, STOPPED, WANTED, first, shows
from tests.unit.world import World, settled


def batch(policy: str, **spec: Any) -> World:
    """Two batch instances, the first of which was just updated."""

    def version(image: str) -> Document:
        return template(image, restartPolicy=policy, terminationGracePeriodSeconds=GRACE)

    world = settled(replicas=2, template=version(OLD), **spec)
    world.change(template=version(WANTED)).sync()
    return world


def ends(world: World, phase: str, code: int, **container: Any) -> None:
    state = {"terminated": {**STOPPED, "exitCode": code}}
    id = first(world)
    shows(world, **{"seen": 2, "phase": phase, "containerID": id, "image": OLD, **container},
          ready=False, state=state)  # fmt: skip


@pytest.mark.parametrize(
    ("policy", "phase", "code"),
    [("Never", "Failed", 137), ("Never", "Succeeded", 0), ("OnFailure", "Succeeded", 0)],
)
def test_a_pod_that_its_update_ended_is_broken_and_the_others_wait(
    policy: str, phase: str, code: int
) -> None:
    world = batch(policy)
    ends(world, phase, code)
    assert world.decisions() == {0: "Delete/EndedByUpdate", 1: "Keep/WaitingForBudget"}
    status = world.hook.sync(world.request())["status"]
    assert status["statuses"]["0"] == ("PodFailed" if phase == "Failed" else "PodSucc")
    assert status["appStatus"] == "Running"
    degraded = next(item for item in status["conditions"] if item["type"] == "Degraded")
    assert "container app did not come to run nginx:2" in degraded["message"]


def test_what_ran_to_its_end_on_the_wanted_image_is_finished() -> None:
    world = batch("Never")
    ends(world, "Succeeded", 0, containerID="containerd://2", image=WANTED)
    assert world.decisions()[0] == "Keep/Finished"
    assert world.decisions()[1].startswith("UpdateInPlace")


@pytest.mark.parametrize(
    ("ran", "expected"), [(GRACE + 14, "Delete/EndedByUpdate"), (GRACE + 15, "Keep/Finished")]
)
def test_what_ended_under_another_name_has_to_have_outlasted_the_kubelet(
    ran: int, expected: str
) -> None:
    """It may be another tag of the wanted image, or one in between that the kubelet has stopped."""
    world = batch("Never")
    ended = {
        **STOPPED,
        "exitCode": 0,
        "startedAt": "2026-01-05T10:58:00Z",
        "finishedAt": f"2026-01-05T10:58:{ran}Z",
    }
    shows(
        world,
        seen=2,
        phase="Succeeded",
        containerID="containerd://2",
        image=BETWEEN,
        ready=False,
        state={"terminated": ended},
    )
    assert world.decisions()[0] == expected


def test_never_migrate_keeps_what_an_update_ended_and_its_place_in_the_budget() -> None:
    world = batch("Never", neverMigrate=True)
    ends(world, "Failed", 137)
    assert world.decisions() == {0: "Keep/NeverMigrate", 1: "Keep/WaitingForBudget"}


def test_a_container_stopped_for_an_image_that_was_taken_back_is_broken_too() -> None:
    world = batch("Never")
    back = template(OLD, restartPolicy="Never", terminationGracePeriodSeconds=GRACE)
    world.change(template=back).sync()
    world.sync()
    ends(world, "Failed", 137, seen=3)
    assert world.decisions()[0] == "Delete/EndedByUpdate"


@pytest.mark.parametrize("policy", ["Never", "OnFailure"])
def test_how_long_the_replaced_container_had_run_proves_nothing(policy: str) -> None:
    """It may bear the wanted name, another tag of its image; and nothing tells of the write."""
    world = batch(policy)
    code = 137 if policy == "Never" else 0
    ended = {**STOPPED, "exitCode": code, "startedAt": "2026-01-05T09:00:00Z"}
    phase = "Failed" if code else "Succeeded"
    shows(world, seen=2, phase=phase, containerID=first(world), image=WANTED, ready=False,
          state={"terminated": {**ended, "finishedAt": "2026-01-05T10:58:00Z"}})  # fmt: skip
    assert world.decisions()[0] == "Delete/EndedByUpdate"
