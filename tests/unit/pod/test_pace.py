"""The pace at which failed pods are replaced, and what is said meanwhile."""

from typing import Any

import pytest

from tests.builders import NOW, Document, completed, refused, running, template
from tests.unit.world import World, condition, settled

FAILURES = "apps.tkestack.io/failures"
SCHEDULED = "2026-01-05T10:59:59Z"
ENDED = NOW - 1
"""The time when the pod was refused, as its PodScheduled condition tells."""


def just_refused(pod: Document) -> Document:
    """The kubelet refused it a second ago."""
    pod = refused(pod)
    bound = {"type": "PodScheduled", "status": "True", "lastTransitionTime": SCHEDULED}
    return {**pod, "status": {**pod["status"], "conditions": [bound]}}


def after(failures: int) -> Any:
    """A pod that is the next one after so many failures, refused a second ago."""

    def change(pod: Document) -> Document:
        meta = pod["metadata"]
        annotations = {**meta["annotations"], FAILURES: str(failures)}
        return just_refused({**pod, "metadata": {**meta, "annotations": annotations}})

    return change


def noted(world: World) -> World:
    """The world after a sync whose status has been written."""
    world.parent = {**world.parent, "status": world.hook.sync(world.request())["status"]}
    return world


@pytest.mark.parametrize(
    ("before", "wait"), [(0, 1), (1, 2), (2, 4), (5, 32), (8, 256), (9, 300), (900, 300)]
)
def test_each_failure_in_a_row_doubles_the_wait_up_to_five_minutes(before: int, wait: int) -> None:
    world = noted(settled(replicas=2).modify(0, after(before)))
    assert world.parent["status"]["failures"] == {"0": before + 1}
    world.hook.now = ENDED + wait - 0.1
    assert world.decisions()[0] == "Keep/BackOff"
    world.hook.now = ENDED + wait
    assert world.decisions()[0] == "Delete/Completed"


def test_the_hook_asks_to_be_called_when_the_time_has_come() -> None:
    world = noted(settled().modify(0, after(3)))
    assert world.hook.sync(world.request())["resyncAfterSeconds"] == 7


def test_the_next_pod_carries_the_number_and_the_status_hands_it_on() -> None:
    world = noted(settled().modify(0, after(2)))
    world.hook.now = NOW + 60
    world.sync()
    del world.pods["web-0"]
    assert world.parent["status"]["failures"] == {"0": 3}
    world.sync()
    assert world.pod(0)["metadata"]["annotations"][FAILURES] == "3"
    world.kubelet()
    assert "failures" not in world.sync()["status"]


def test_a_pod_goes_only_when_the_number_is_remembered() -> None:
    """A status that was decided but not written yet would be lost with the pod."""
    world = settled().modify(0, after(2))
    world.hook.now = NOW + 60
    answer = world.hook.sync(world.request())
    assert world.decisions()[0] == "Keep/BackOff"
    assert answer["resyncAfterSeconds"] == 1
    assert noted(world).decisions()[0] == "Delete/Completed"


def test_a_pod_that_lived_long_is_replaced_at_once_and_the_count_begins_anew() -> None:
    def evicted(pod: Document) -> Document:
        pod = after(7)(running(pod))
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


def test_a_pod_whose_node_object_went_has_not_failed_soon() -> None:
    """PodGC writes `Failed` and `DisruptionTarget`; the pod stays Ready, and no container ended."""

    def collected(pod: Document) -> Document:
        status = pod["status"]
        gone = {"type": "DisruptionTarget", "status": "True", "lastTransitionTime": SCHEDULED}
        conditions = [*status["conditions"], gone]
        return {**pod, "status": {**status, "phase": "Failed", "conditions": conditions}}

    world = settled().modify(0, collected)
    assert world.decisions()[0] == "Delete/Completed"
    assert "failures" not in world.hook.sync(world.request())["status"]


def test_a_changed_template_need_not_wait() -> None:
    world = noted(settled().modify(0, after(7)))
    assert world.decisions()[0] == "Keep/BackOff"
    world.change(template=template("nginx:2"))
    assert world.decisions()[0] == "Delete/Completed"


@pytest.mark.parametrize("edit", [{"statuses": {"0": "Killed"}}, {"replicas": 0}])
def test_a_pod_that_is_not_wanted_need_not_wait(edit: Document) -> None:
    world = noted(settled().modify(0, after(7))).change(**edit)
    assert world.decisions()[0].startswith("Delete/")
    assert "failures" not in world.hook.sync(world.request())["status"]


def test_what_is_refused_and_when_the_next_pod_follows_is_said() -> None:
    world = noted(settled().modify(0, after(3)))
    status = world.hook.sync(world.request())["status"]
    found = condition(status, "Degraded")
    assert found is not None
    assert (found["status"], found["reason"]) == ("True", "InstancesBroken")
    assert "OutOfcpu: Node didn't have enough cpu" in found["message"]
    assert "failed pods in a row: 4" in found["message"]
    assert "2026-01-05T11:00:08Z" in found["message"]
    assert status["statuses"] == {"0": "PodFailed"}


@pytest.mark.parametrize("text", ["", "many", "-3", "1e9", "99999999", "٣"])
def test_a_number_that_somebody_broke_is_none(text: str) -> None:
    def change(pod: Document) -> Document:
        meta = pod["metadata"]
        annotations = {**meta["annotations"], FAILURES: text}
        return just_refused({**pod, "metadata": {**meta, "annotations": annotations}})

    world = noted(settled().modify(0, change))
    assert world.parent["status"]["failures"] == {"0": 1}


def test_an_update_in_place_of_a_pod_that_works_begins_the_count_anew() -> None:
    world = noted(settled().modify(0, after(2)))
    world.hook.now = NOW + 60
    world.sync()
    del world.pods["web-0"]
    world.settle()
    assert world.sync() is not None
    assert not world.writes
    assert world.pod(0)["metadata"]["annotations"][FAILURES] == "3"
    world.change(template=template("nginx:2")).settle()
    assert FAILURES not in world.pod(0)["metadata"]["annotations"]
