"""Tests the back-off between replacements of failed pods, and its messages."""

from typing import Any

import pytest

from tests.builders import NOW, Document, completed, refused, running, template
from tests.unit.world import World, condition, settled

FAILURES = "apps.tkestack.io/failures"
SCHEDULED = "2026-01-05T10:59:59Z"
ENDED = NOW - 1
"""The time when the pod was rejected, from its PodScheduled condition."""


def just_rejected(pod: Document) -> Document:
    """Returns the pod after its kubelet has rejected it, a second ago."""
    pod = refused(pod)
    bound = {"type": "PodScheduled", "status": "True", "lastTransitionTime": SCHEDULED}
    return {**pod, "status": {**pod["status"], "conditions": [bound]}}


def rejected_after(failures: int) -> Any:
    """Returns a function that returns a rejected pod, before which `failures` pods of the instance
    have failed.
    """

    def change(pod: Document) -> Document:
        meta = pod["metadata"]
        annotations = {**meta["annotations"], FAILURES: str(failures)}
        return just_rejected({**pod, "metadata": {**meta, "annotations": annotations}})

    return change


def with_written_status(world: World) -> World:
    """Runs a sync of which only the status is written, and returns the world."""
    world.parent = {**world.parent, "status": world.hook.sync(world.request())["status"]}
    return world


@pytest.mark.parametrize(
    ("before", "wait"), [(0, 1), (1, 2), (2, 4), (5, 32), (8, 256), (9, 300), (900, 300)]
)
def test_each_consecutive_failure_doubles_the_back_off_up_to_five_minutes(
    before: int, wait: int
) -> None:
    world = with_written_status(settled(replicas=2).modify(0, rejected_after(before)))
    assert world.parent["status"]["failures"] == {"0": before + 1}
    world.hook.now = ENDED + wait - 0.1
    assert world.decisions()[0] == "Keep/BackOff"
    world.hook.now = ENDED + wait
    assert world.decisions()[0] == "Delete/Completed"


def test_resync_is_due_when_the_back_off_ends() -> None:
    world = with_written_status(settled().modify(0, rejected_after(3)))
    assert world.hook.sync(world.request())["resyncAfterSeconds"] == 7


def test_number_of_failures_moves_from_the_status_to_the_annotation_of_the_next_pod() -> None:
    world = with_written_status(settled().modify(0, rejected_after(2)))
    world.hook.now = NOW + 60
    world.sync()
    del world.pods["web-0"]
    assert world.parent["status"]["failures"] == {"0": 3}
    world.sync()
    assert world.pod(0)["metadata"]["annotations"][FAILURES] == "3"
    world.kubelet()
    assert "failures" not in world.sync()["status"]


def test_failed_pod_is_deleted_only_after_the_number_is_in_the_status() -> None:
    """The first sync after a failure writes the number of failures, and the second one deletes the
    pod.

    A number that is not written yet would be lost together with the pod.
    """
    world = settled().modify(0, rejected_after(2))
    world.hook.now = NOW + 60
    answer = world.hook.sync(world.request())
    assert world.decisions()[0] == "Keep/BackOff"
    assert answer["resyncAfterSeconds"] == 1
    assert with_written_status(world).decisions()[0] == "Delete/Completed"


def test_pod_that_ran_for_long_is_replaced_without_a_back_off_and_resets_the_number() -> None:
    def evicted(pod: Document) -> Document:
        pod = rejected_after(7)(running(pod))
        ended = completed(pod, "Failed")
        disrupted = {
            "type": "DisruptionTarget",
            "status": "True",
            "lastTransitionTime": "2026-01-05T10:59:59Z",
        }
        return {**ended, "status": {**ended["status"], "conditions": [disrupted]}}

    world = settled().modify(0, evicted)
    assert world.decisions() == {0: "Delete/Completed"}
    assert "failures" not in world.hook.sync(world.request())["status"]


def test_pod_of_a_deleted_node_is_replaced_without_a_back_off() -> None:
    """The pod garbage collector has set a pod to Failed: it is replaced at once and does not count
    as a failure.

    The pod stays Ready, and no container has ended.
    """

    def collected(pod: Document) -> Document:
        status = pod["status"]
        gone = {"type": "DisruptionTarget", "status": "True", "lastTransitionTime": SCHEDULED}
        conditions = [*status["conditions"], gone]
        return {**pod, "status": {**status, "phase": "Failed", "conditions": conditions}}

    world = settled().modify(0, collected)
    assert world.decisions()[0] == "Delete/Completed"
    assert "failures" not in world.hook.sync(world.request())["status"]


def test_changed_template_ends_the_back_off() -> None:
    world = with_written_status(settled().modify(0, rejected_after(7)))
    assert world.decisions()[0] == "Keep/BackOff"
    world.change(template=template("nginx:2"))
    assert world.decisions()[0] == "Delete/Completed"


@pytest.mark.parametrize(
    "edit", [{"statuses": {"0": "Killed"}}, {"replicas": 0}], ids=["kill", "scale down"]
)
def test_kill_and_scale_down_do_not_wait_for_the_back_off(edit: Document) -> None:
    world = with_written_status(settled().modify(0, rejected_after(7))).change(**edit)
    assert world.decisions()[0].startswith("Delete/")
    assert "failures" not in world.hook.sync(world.request())["status"]


def test_degraded_names_the_rejection_and_the_time_of_the_next_pod() -> None:
    world = with_written_status(settled().modify(0, rejected_after(3)))
    status = world.hook.sync(world.request())["status"]
    found = condition(status, "Degraded")
    assert found is not None
    assert found["status"] == "True"
    assert found["reason"] == "InstancesBroken"
    assert "OutOfcpu: Node didn't have enough cpu" in found["message"]
    assert "4 pods have failed in a row" in found["message"]
    assert "2026-01-05T11:00:08Z" in found["message"]
    assert status["statuses"] == {"0": "PodFailed"}


@pytest.mark.parametrize("text", ["", "many", "-3", "1e9", "99999999", "٣"])
def test_invalid_number_of_failures_counts_as_zero(text: str) -> None:
    def change(pod: Document) -> Document:
        meta = pod["metadata"]
        annotations = {**meta["annotations"], FAILURES: text}
        return just_rejected({**pod, "metadata": {**meta, "annotations": annotations}})

    world = with_written_status(settled().modify(0, change))
    assert world.parent["status"]["failures"] == {"0": 1}


def test_update_in_place_of_a_running_pod_resets_the_number_of_failures() -> None:
    world = with_written_status(settled().modify(0, rejected_after(2)))
    world.hook.now = NOW + 60
    world.sync()
    del world.pods["web-0"]
    world.settle()
    assert world.sync() is not None
    assert not world.writes
    assert world.pod(0)["metadata"]["annotations"][FAILURES] == "3"
    world.change(template=template("nginx:2")).settle()
    assert FAILURES not in world.pod(0)["metadata"]["annotations"]
