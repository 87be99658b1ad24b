"""Words on instances that do not get well by themselves, which are their pods' own."""

from collections.abc import Callable
from typing import Any

import pytest

from tests.builders import NOW, Document, running, template
from tests.unit.pod.test_completion import OLD, WANTED, first, shows, updated
from tests.unit.world import World, condition, settled

CRASHED = {
    "exitCode": 3,
    "reason": "Error",
    "startedAt": "2026-01-05T10:59:00Z",
    "finishedAt": "2026-01-05T10:59:01Z",
    "containerID": "containerd://dead",
}


def degraded(world: World) -> str:
    """The message of Degraded, "" while it is False."""
    found = condition(world.hook.sync(world.request()), "Degraded")
    assert found is not None
    return str(found["message"]) if found["status"] == "True" else ""


def container(*, ready: bool = False, **status: Any) -> Callable[[Document], Document]:
    """The pod whose container shows this."""

    def change(pod: Document) -> Document:
        pod = running(pod, ready=ready, since="2026-01-05T10:59:59Z")
        item = {**pod["status"]["containerStatuses"][0], "ready": ready, **status}
        return {**pod, "status": {**pod["status"], "containerStatuses": [item]}}

    return change


LOOPS: dict[str, Document] = {
    "in back-off, shown as terminated": {"state": {"terminated": CRASHED}},
    "in back-off, shown as waiting": {
        "state": {"waiting": {"reason": "CrashLoopBackOff"}},
        "lastState": {"terminated": CRASHED},
    },
    "started anew, and not trusted yet": {
        "ready": True,
        "state": {"running": {"startedAt": "2026-01-05T10:59:41Z"}},
        "lastState": {"terminated": CRASHED},
    },
}


@pytest.mark.parametrize(("action", "says"), [("Restart", True), ("RestartAllContainers", False)])
def test_a_pod_that_starts_anew_as_a_whole_is_in_no_crash_loop(action: str, says: bool) -> None:
    """Its kubelet does so at once, whatever the count, and ends the others for it."""
    rule = {"action": action, "exitCodes": {"operator": "In", "values": [3]}}
    own = {"restartPolicy": "Never", "restartPolicyRules": [rule]}
    world = settled(template=template(container=own, sidecars=[{"name": "side", "image": "a:1"}]))

    def anew(pod: Document) -> Document:
        pod = running(pod, ready=False)
        state = {"terminated": {**CRASHED, "exitCode": 137}}
        _, side = pod["status"]["containerStatuses"]
        side = {**side, "ready": False, "restartCount": 4, "state": state}
        (main,) = container(restartCount=4, state={"terminated": CRASHED})(pod)["status"][
            "containerStatuses"
        ]
        return {**pod, "status": {**pod["status"], "containerStatuses": [main, side]}}

    assert ("CrashLoopBackOff" in degraded(world.modify(0, anew))) is says


@pytest.mark.parametrize("shown", LOOPS.values(), ids=LOOPS)
def test_a_crash_loop_is_degraded_throughout(shown: Document) -> None:
    """With its exit code, how often and since when; P1 and the status agree on it at any moment."""
    world = settled().modify(0, container(restartCount=4, **shown))
    said = degraded(world)
    assert "instance 0: container app: CrashLoopBackOff" in said
    assert "exit code 3, restarted 4 times, last at 2026-01-05T10:59:01Z" in said


def test_a_container_is_trusted_again_when_it_has_run_as_long_as_it_was_kept_waiting() -> None:
    world = settled().modify(
        0, container(restartCount=4, **LOOPS["started anew, and not trusted yet"])
    )
    assert world.hook.sync(world.request())["resyncAfterSeconds"] == 21
    world.hook.now = NOW + 21
    assert degraded(world) == ""


def test_one_crash_is_no_loop() -> None:
    state = {"running": {"startedAt": "2026-01-05T10:59:02Z"}}
    last = {"terminated": CRASHED}
    world = settled().modify(0, container(ready=True, restartCount=1, state=state, lastState=last))
    assert degraded(world) == ""


def test_a_stop_for_an_update_is_no_crash() -> None:
    world = updated()
    dead = {**CRASHED, "containerID": first(world)}
    shows(
        world,
        seen=2,
        restartCount=1,
        containerID="containerd://2",
        state={"running": {"startedAt": "2026-01-05T10:59:55Z"}},
        lastState={"terminated": dead},
    )
    assert degraded(world) == ""


PULLS = {
    "ErrImagePull": "failed to pull: registry says: not found",
    "ImagePullBackOff": 'Back-off pulling image "nginx:2": ErrImagePull: failed to pull: registry '
    "says: not found",
}


@pytest.mark.parametrize("reason", PULLS)
def test_a_failed_pull_names_the_image_and_what_the_registry_said(reason: str) -> None:
    """Both reasons give one text, so that the status keeps still while they take turns."""
    world = updated()
    state = {"waiting": {"reason": reason, "message": PULLS[reason]}}
    shows(world, seen=2, containerID=first(world), image=OLD, ready=False, state=state)
    world.modify(0, _unready)
    assert degraded(world) == (
        "instance 0: container app: ImagePullBackOff: image nginx:2 cannot be pulled: "
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
    ids=["shown as a crash loop", "shown as completed"],
)
def test_a_container_that_was_stopped_and_does_not_start_is_named(state: Document) -> None:
    """A failed pull shows so between its attempts: at restartCount 0 nothing has crashed."""
    world = updated()
    last = {"terminated": {**CRASHED, "exitCode": 0}}
    shows(world, seen=2, containerID=first(world), image=OLD, state=state, lastState=last)
    world.modify(0, _unready)
    assert degraded(world) == (
        "instance 0: container app was stopped for image nginx:2, which has not started since"
    )
    assert "CrashLoopBackOff" not in degraded(world)


def test_a_back_off_tells_of_a_failed_attempt_at_once() -> None:
    """So Degraded does not flap while the names of a failed pull take turns."""
    world = updated()
    last = {"terminated": {**CRASHED, "finishedAt": "2026-01-05T10:59:59Z"}}
    state = {"waiting": {"reason": "CrashLoopBackOff", "message": "back-off 10s"}}
    shows(world, seen=2, containerID=first(world), image=OLD, state=state, lastState=last)
    world.modify(0, _unready)
    assert "was stopped for image nginx:2" in degraded(world)


def test_a_stop_that_was_just_now_is_no_trouble_yet() -> None:
    world = updated()
    just = {"terminated": {**CRASHED, "finishedAt": "2026-01-05T10:59:55Z"}}
    shows(world, seen=2, containerID=first(world), image=OLD, state=just)
    world.modify(0, _unready)
    assert degraded(world) == ""
    assert world.hook.sync(world.request())["resyncAfterSeconds"] == 25


STARTS = {
    "InvalidImageName": "InvalidImageName: 'nginx:2' is no image name",
    "ErrImageNeverPull": "image nginx:2 is not on the node",
    "CreateContainerConfigError": 'CreateContainerConfigError: configmap "settings" not found',
    "RunContainerError": 'RunContainerError: configmap "settings" not found',
}


@pytest.mark.parametrize("reason", STARTS)
def test_what_keeps_a_container_from_starting_is_said(reason: str) -> None:
    state = {"waiting": {"reason": reason, "message": 'configmap "settings" not found'}}
    world = settled(template=template(WANTED)).modify(0, container(state=state))
    assert STARTS[reason] in degraded(world)


def test_an_init_container_that_fails_again_and_again_is_named() -> None:
    body = template(initContainers=[{"name": "prepare", "image": "init:1"}])

    def stuck(pod: Document) -> Document:
        pod = running(pod, ready=False)
        item = pod["status"]["initContainerStatuses"][0]
        item = {**item, "restartCount": 2, "state": {"terminated": CRASHED}}
        status = {**pod["status"], "phase": "Pending", "initContainerStatuses": [item]}
        return {**pod, "status": status}

    assert "container prepare: CrashLoopBackOff: it ends with exit code 3" in degraded(
        settled(template=body).modify(0, stuck)
    )


def pending(**conditions: tuple[str, str, str]) -> Callable[[Document], Document]:
    """A Pending pod with conditions, type -> (status, reason, message), all since 10:59:40."""

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


def test_a_pod_without_a_node_is_told_of_after_a_while() -> None:
    said = "0/3 nodes are available: 3 Insufficient cpu."
    world = settled().modify(0, pending(PodScheduled=("False", "Unschedulable", said)))
    assert degraded(world) == ""
    assert world.hook.sync(world.request())["resyncAfterSeconds"] == 10
    world.hook.now = NOW + 279
    assert degraded(world) == ""
    world.hook.now = NOW + 280
    assert degraded(world) == f"instance 0: no node for its pod: Unschedulable ({said})"


def test_a_pod_that_somebody_holds_back_is_no_trouble() -> None:
    world = settled().modify(0, pending(PodScheduled=("False", "SchedulingGated", "gated")))
    world.hook.now = NOW + 3_600
    assert degraded(world) == ""


def test_missing_volumes_are_told_of_as_far_as_the_status_knows() -> None:
    world = settled().modify(
        0, pending(PodScheduled=("True", "", ""), PodReadyToStartContainers=("False", "", ""))
    )
    assert degraded(world) == ""
    world.hook.now = NOW + 40
    assert "volumes or network of its pod are not ready" in degraded(world)
