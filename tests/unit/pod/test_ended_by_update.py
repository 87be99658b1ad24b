"""Tests pods of batch instances: whether a pod ended because of its update, or because its work is
done.
"""

from typing import Any

import pytest

from tests.builders import Document, template
from tests.unit.pod.updates import (
    BETWEEN,
    GRACE,
    OLD,
    STOPPED,
    WANTED,
    kubelet_publishes,
    recorded_container_id,
)
from tests.unit.world import World, settled


def batch_tapp(policy: str, **spec: Any) -> World:
    """Returns a TApp with two batch instances, the first of which has just been updated.

    `policy` is the restart policy of the pods.
    """

    def version(image: str) -> Document:
        return template(image, restartPolicy=policy, terminationGracePeriodSeconds=GRACE)

    world = settled(replicas=2, template=version(OLD), **spec)
    world.change(template=version(WANTED)).sync()
    return world


def ends(world: World, phase: str, code: int, **container: Any) -> None:
    state = {"terminated": {**STOPPED, "exitCode": code}}
    id = recorded_container_id(world)
    shown = {"seen": 2, "phase": phase, "containerID": id, "image": OLD, **container}
    kubelet_publishes(world, ready=False, state=state, **shown)


@pytest.mark.parametrize(
    ("policy", "phase", "code"),
    [("Never", "Failed", 137), ("Never", "Succeeded", 0), ("OnFailure", "Succeeded", 0)],
    ids=["Never, failed", "Never, succeeded", "OnFailure, succeeded"],
)
def test_pod_that_ended_because_of_its_update_is_replaced_and_other_updates_wait(
    policy: str, phase: str, code: int
) -> None:
    world = batch_tapp(policy)
    ends(world, phase, code)
    assert world.decisions() == {0: "Delete/EndedByUpdate", 1: "Keep/WaitingForBudget"}
    status = world.hook.sync(world.request())["status"]
    assert status["statuses"]["0"] == ("PodFailed" if phase == "Failed" else "PodSucc")
    assert status["appStatus"] == "Running"
    degraded = next(item for item in status["conditions"] if item["type"] == "Degraded")
    assert "container app failed to start image nginx:2" in degraded["message"]


def test_pod_whose_new_image_has_ended_is_finished() -> None:
    world = batch_tapp("Never")
    ends(world, "Succeeded", 0, containerID="containerd://2", image=WANTED)
    assert world.decisions()[0] == "Keep/Finished"
    assert world.decisions()[1].startswith("UpdateInPlace")


@pytest.mark.parametrize(
    ("ran", "expected"),
    [(GRACE + 14, "Delete/EndedByUpdate"), (GRACE + 15, "Keep/Finished")],
    ids=["44 seconds", "45 seconds"],
)
def test_pod_with_another_image_name_is_finished_only_if_it_ran_long_enough(
    ran: int, expected: str
) -> None:
    """A container with an unexpected image name has ended: only after 45 seconds it counts as the
    new one.

    The name may be another tag of the new image, or of an image that the kubelet has stopped.
    """
    world = batch_tapp("Never")
    ended = {
        **STOPPED,
        "exitCode": 0,
        "startedAt": "2026-01-05T10:58:00Z",
        "finishedAt": f"2026-01-05T10:58:{ran}Z",
    }
    kubelet_publishes(
        world,
        seen=2,
        phase="Succeeded",
        containerID="containerd://2",
        image=BETWEEN,
        ready=False,
        state={"terminated": ended},
    )
    assert world.decisions()[0] == expected


def test_pod_that_ended_because_of_its_update_stays_and_uses_the_budget_with_never_migrate() -> (
    None
):
    world = batch_tapp("Never", neverMigrate=True)
    ends(world, "Failed", 137)
    assert world.decisions() == {0: "Keep/NeverMigrate", 1: "Keep/WaitingForBudget"}


def test_pod_that_ended_because_of_an_update_is_replaced_after_a_rollback() -> None:
    world = batch_tapp("Never")
    back = template(OLD, restartPolicy="Never", terminationGracePeriodSeconds=GRACE)
    world.change(template=back).sync()
    world.sync()
    ends(world, "Failed", 137, seen=3)
    assert world.decisions()[0] == "Delete/EndedByUpdate"


@pytest.mark.parametrize("policy", ["Never", "OnFailure"])
def test_recorded_container_is_never_finished_however_long_it_ran(policy: str) -> None:
    """The container from before the update has ended after two hours: its pod is replaced.

    Its status may show the new image name, if both names are tags of one image.
    """
    world = batch_tapp(policy)
    code = 137 if policy == "Never" else 0
    ended = {**STOPPED, "exitCode": code, "startedAt": "2026-01-05T09:00:00Z"}
    phase = "Failed" if code else "Succeeded"
    kubelet_publishes(
        world,
        seen=2,
        phase=phase,
        containerID=recorded_container_id(world),
        image=WANTED,
        ready=False,
        state={"terminated": {**ended, "finishedAt": "2026-01-05T10:58:00Z"}},
    )
    assert world.decisions()[0] == "Delete/EndedByUpdate"
