"""Tests messages about instances that need help, because their pods do not recover without it."""

from collections.abc import Callable
from typing import Any

import pytest

from tests.builders import NOW, Document, running, template
from tests.unit.pod.updates import (
    OLD,
    WANTED,
    just_updated,
    kubelet_publishes,
    recorded_container_id,
)
from tests.unit.world import World, condition, settled

CRASHED = {
    "exitCode": 3,
    "reason": "Error",
    "startedAt": "2026-01-05T10:59:00Z",
    "finishedAt": "2026-01-05T10:59:01Z",
    "containerID": "containerd://dead",
}


def degraded_message(world: World) -> str:
    """Returns the message of Degraded in the response to the next sync, or "" if Degraded is
    False.
    """
    found = condition(world.hook.sync(world.request()), "Degraded")
    assert found is not None
    return str(found["message"]) if found["status"] == "True" else ""


def with_container_status(*, ready: bool = False, **status: Any) -> Callable[[Document], Document]:
    """Returns a function that sets fields of the status of a pod's container, and the pod's
    readiness.
    """

    def change(pod: Document) -> Document:
        pod = running(pod, ready=ready, since="2026-01-05T10:59:59Z")
        item = {**pod["status"]["containerStatuses"][0], "ready": ready, **status}
        return {**pod, "status": {**pod["status"], "containerStatuses": [item]}}

    return change


LOOPS: dict[str, Document] = {
    "back-off, terminated": {"state": {"terminated": CRASHED}},
    "back-off, waiting": {
        "state": {"waiting": {"reason": "CrashLoopBackOff"}},
        "lastState": {"terminated": CRASHED},
    },
    "restarted a moment ago": {
        "ready": True,
        "state": {"running": {"startedAt": "2026-01-05T10:59:41Z"}},
        "lastState": {"terminated": CRASHED},
    },
}


@pytest.mark.parametrize(("action", "says"), [("Restart", True), ("RestartAllContainers", False)])
def test_restart_of_all_containers_is_no_crash_loop(action: str, says: bool) -> None:
    """A rule restarts one container or all: only the restart of one is reported as
    CrashLoopBackOff.

    The kubelet restarts all containers without a back-off, and stops those that still run.
    """
    rule = {"action": action, "exitCodes": {"operator": "In", "values": [3]}}
    own = {"restartPolicy": "Never", "restartPolicyRules": [rule]}
    world = settled(template=template(container=own, sidecars=[{"name": "side", "image": "a:1"}]))

    def restarting(pod: Document) -> Document:
        pod = running(pod, ready=False)
        state = {"terminated": {**CRASHED, "exitCode": 137}}
        _, side = pod["status"]["containerStatuses"]
        side = {**side, "ready": False, "restartCount": 4, "state": state}
        (main,) = with_container_status(restartCount=4, state={"terminated": CRASHED})(pod)[
            "status"
        ]["containerStatuses"]
        return {**pod, "status": {**pod["status"], "containerStatuses": [main, side]}}

    assert ("CrashLoopBackOff" in degraded_message(world.modify(0, restarting))) is says


@pytest.mark.parametrize("shown", LOOPS.values(), ids=LOOPS)
def test_crash_loop_makes_the_tapp_degraded_in_each_of_its_states(shown: Document) -> None:
    world = settled().modify(0, with_container_status(restartCount=4, **shown))
    said = degraded_message(world)
    assert "instance 0: container app keeps crashing (CrashLoopBackOff)" in said
    assert "exit code 3, restarted 4 times, last at 2026-01-05T10:59:01Z" in said


def test_crash_loop_ends_when_the_container_has_run_as_long_as_its_back_off() -> None:
    world = settled().modify(
        0, with_container_status(restartCount=4, **LOOPS["restarted a moment ago"])
    )
    assert world.hook.sync(world.request())["resyncAfterSeconds"] == 21
    world.hook.now = NOW + 21
    assert degraded_message(world) == ""


def test_one_crash_is_no_crash_loop() -> None:
    state = {"running": {"startedAt": "2026-01-05T10:59:02Z"}}
    last = {"terminated": CRASHED}
    world = settled().modify(
        0, with_container_status(ready=True, restartCount=1, state=state, lastState=last)
    )
    assert degraded_message(world) == ""


def test_stop_for_an_update_is_no_crash() -> None:
    world = just_updated()
    dead = {**CRASHED, "containerID": recorded_container_id(world)}
    kubelet_publishes(
        world,
        seen=2,
        restartCount=1,
        containerID="containerd://2",
        state={"running": {"startedAt": "2026-01-05T10:59:55Z"}},
        lastState={"terminated": dead},
    )
    assert degraded_message(world) == ""


PULLS = {
    "ErrImagePull": "failed to pull: registry says: not found",
    "ImagePullBackOff": 'Back-off pulling image "nginx:2": ErrImagePull: failed to pull: registry '
    "says: not found",
}


@pytest.mark.parametrize("reason", PULLS)
def test_failed_pull_is_reported_with_image_and_reason_of_the_registry(reason: str) -> None:
    """The kubelet reports a failed pull with two alternating reasons: both have the same message.

    So the status stays the same.
    """
    world = just_updated()
    state = {"waiting": {"reason": reason, "message": PULLS[reason]}}
    kubelet_publishes(
        world, seen=2, containerID=recorded_container_id(world), image=OLD, ready=False, state=state
    )
    world.modify(0, _unready)
    assert degraded_message(world) == (
        "instance 0: container app: image nginx:2 cannot be pulled (ImagePullBackOff): "
        "failed to pull: registry says: not found"
    )


def _unready(pod: Document) -> Document:
    conditions = [
        {**item, "status": "False"} if item["type"] in ("Ready", "ContainersReady") else item
        for item in pod["status"]["conditions"]
    ]
    return {**pod, "status": {**pod["status"], "conditions": conditions}}


@pytest.mark.parametrize(
    "state",
    [
        {"waiting": {"reason": "CrashLoopBackOff", "message": "back-off 10s"}},
        {"terminated": {**CRASHED, "exitCode": 0, "reason": "Completed"}},
    ],
    ids=["CrashLoopBackOff", "Completed"],
)
def test_container_that_does_not_start_after_an_update_is_reported(state: Document) -> None:
    """A container was stopped for an update whose image cannot be pulled: the message says so.

    Between two attempts to pull, the status shows CrashLoopBackOff or Completed; nothing has
    crashed.
    """
    world = just_updated()
    last = {"terminated": {**CRASHED, "exitCode": 0}}
    kubelet_publishes(
        world,
        seen=2,
        containerID=recorded_container_id(world),
        image=OLD,
        state=state,
        lastState=last,
    )
    world.modify(0, _unready)
    assert degraded_message(world) == (
        "instance 0: container app was stopped for an update to image nginx:2 and has not "
        "started since"
    )
    assert "CrashLoopBackOff" not in degraded_message(world)


def test_back_off_after_an_update_is_reported_at_once() -> None:
    """A container was stopped for an update a second ago and waits in a back-off: the message says
    so at once.

    Otherwise Degraded would change with each attempt to pull the image.
    """
    world = just_updated()
    last = {"terminated": {**CRASHED, "finishedAt": "2026-01-05T10:59:59Z"}}
    state = {"waiting": {"reason": "CrashLoopBackOff", "message": "back-off 10s"}}
    kubelet_publishes(
        world,
        seen=2,
        containerID=recorded_container_id(world),
        image=OLD,
        state=state,
        lastState=last,
    )
    world.modify(0, _unready)
    assert "was stopped for an update to image nginx:2" in degraded_message(world)


def test_container_that_was_just_stopped_is_not_reported_yet() -> None:
    world = just_updated()
    just = {"terminated": {**CRASHED, "finishedAt": "2026-01-05T10:59:55Z"}}
    kubelet_publishes(
        world, seen=2, containerID=recorded_container_id(world), image=OLD, state=just
    )
    world.modify(0, _unready)
    assert degraded_message(world) == ""
    assert world.hook.sync(world.request())["resyncAfterSeconds"] == 25


STARTS = {
    "InvalidImageName": "'nginx:2' is not an image name (InvalidImageName)",
    "ErrImageNeverPull": "image nginx:2 is not on the node",
    "CreateContainerConfigError": 'CreateContainerConfigError: configmap "settings" not found',
    "RunContainerError": 'RunContainerError: configmap "settings" not found',
}


@pytest.mark.parametrize("reason", STARTS)
def test_reason_why_a_container_cannot_start_is_reported(reason: str) -> None:
    state = {"waiting": {"reason": reason, "message": 'configmap "settings" not found'}}
    world = settled(template=template(WANTED)).modify(0, with_container_status(state=state))
    assert STARTS[reason] in degraded_message(world)


def test_init_container_in_a_crash_loop_is_reported() -> None:
    body = template(initContainers=[{"name": "prepare", "image": "init:1"}])

    def stuck(pod: Document) -> Document:
        pod = running(pod, ready=False)
        item = pod["status"]["initContainerStatuses"][0]
        item = {**item, "restartCount": 2, "state": {"terminated": CRASHED}}
        status = {**pod["status"], "phase": "Pending", "initContainerStatuses": [item]}
        return {**pod, "status": status}

    assert (
        "container prepare keeps crashing (CrashLoopBackOff): it ends with exit code 3"
        in degraded_message(settled(template=body).modify(0, stuck))
    )


def pending(**conditions: tuple[str, str, str]) -> Callable[[Document], Document]:
    """Returns a function that makes a pod Pending with these conditions since 10:59:40.

    Each argument maps the type of a condition to its status, reason and message.
    """

    def change(pod: Document) -> Document:
        found = [
            {
                "type": kind,
                "status": status,
                "reason": reason,
                "message": message,
                "lastTransitionTime": "2026-01-05T10:59:40Z",
            }
            for kind, (status, reason, message) in conditions.items()
        ]
        return {**pod, "status": {"phase": "Pending", "conditions": found}}

    return change


def test_unschedulable_pod_is_reported_after_five_minutes() -> None:
    said = "0/3 nodes are available: 3 Insufficient cpu."
    world = settled().modify(0, pending(PodScheduled=("False", "Unschedulable", said)))
    assert degraded_message(world) == ""
    assert world.hook.sync(world.request())["resyncAfterSeconds"] == 10
    world.hook.now = NOW + 279
    assert degraded_message(world) == ""
    world.hook.now = NOW + 280
    assert degraded_message(world) == f"instance 0: its pod has no node yet: Unschedulable ({said})"


def test_pod_with_a_scheduling_gate_is_not_reported() -> None:
    world = settled().modify(0, pending(PodScheduled=("False", "SchedulingGated", "gated")))
    world.hook.now = NOW + 3_600
    assert degraded_message(world) == ""


def test_volumes_that_are_not_ready_are_reported_after_a_minute() -> None:
    world = settled().modify(
        0, pending(PodScheduled=("True", "", ""), PodReadyToStartContainers=("False", "", ""))
    )
    assert degraded_message(world) == ""
    world.hook.now = NOW + 40
    assert "volumes or network of its pod are not ready" in degraded_message(world)
