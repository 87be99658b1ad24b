"""Tests holds: which pods the service leaves alone and for how long, and what their annotations
say.

A hold is an annotation on a pod that asks the service not to change the pod. The service writes the
*pending action* to the pod: Update, Recreate or Delete, which follows when the hold is removed.
"""

from collections.abc import Callable
from typing import Any

import pytest

from tests.builders import Document, completed, in_phase, tapp, template, terminating
from tests.unit.decide.holds import (
    BEGAN,
    GROUP,
    SINCE,
    WANTED,
    Change,
    annotated,
    at_second,
    by_new_pods,
    in_place,
    is_on_hold,
    killed,
    pending_action,
    planned,
    scaled_down,
    tapp_on_hold,
    with_invalid_status,
)
from tests.unit.world import Hook, World, settled


def labels_only(world: World) -> World:
    return world.change(template=template(labels={"app": "web", "more": "x"}))


def restarted(world: World) -> World:
    def change(pod: Document) -> Document:
        notes = {**pod["metadata"]["annotations"], f"{GROUP}/restart-instance": "now"}
        return {**pod, "metadata": {**pod["metadata"], "annotations": notes}}

    return world.modify(0, change)


def resized(world: World) -> World:
    resources = {"requests": {"cpu": "2"}}
    return world.change(template=template(container={"resources": resources}))


def other_template(world: World) -> World:
    body = template("nginx:1.25", container={"command": ["other"]})
    return world.change(templatePool={"blue": body}, templates={"0": "blue"})


PENDING: list[tuple[Change, str, Document]] = [
    (in_place, "Update", {}),
    (labels_only, "Update", {}),
    (restarted, "Recreate", {}),
    (by_new_pods, "Recreate", {}),
    (other_template, "Recreate", {}),
    (resized, "Recreate", {}),
    (killed, "Delete", {}),
    (scaled_down, "Delete", {}),
]
IDS = [change.__name__ for change, _, _ in PENDING]


@pytest.mark.parametrize(("change", "action", "spec"), PENDING, ids=IDS)
@pytest.mark.parametrize("only", [None, "update", "delete", "both", ""])
def test_hold_prevents_the_actions_named_by_hold_for_and_no_others(
    change: Change, action: str, spec: Document, only: str | None
) -> None:
    world = change(tapp_on_hold(only=only, **spec))
    uid = world.pod(0)["metadata"]["uid"]
    covered = {"update": action != "Delete", "delete": action != "Update"}.get(only or "", True)
    assert world.decisions()[0].endswith("/Held") == covered
    if not covered:
        return
    image = world.container(0)["image"]
    for _ in range(4):
        world.sync()
        world.kubelet()
    assert world.pod(0)["metadata"]["uid"] == uid
    assert world.container(0)["image"] == image
    assert pending_action(world) == (action, BEGAN, "true")
    assert world.parent["status"]["held"] == "0"


@pytest.mark.parametrize(("change", "action", "spec"), PENDING, ids=IDS)
def test_pending_action_is_carried_out_when_the_hold_is_removed(
    change: Change, action: str, spec: Document
) -> None:
    world = change(tapp_on_hold(**spec)).settle().modify(0, annotated(hold=None))
    first = world.decisions()[0]
    assert first.split("/")[0] == {"Update": "UpdateInPlace"}.get(action, action)
    world.settle()
    assert "held" not in world.parent["status"]
    if "web-0" in world.pods:
        assert pending_action(world) == (None, None, None)
        assert world.decisions()[0] == "Keep/UpToDate"


@pytest.mark.parametrize("empty", ["", None], ids=["empty", "absent"])
def test_hold_annotation_without_a_reason_has_no_effect(empty: str | None) -> None:
    world = by_new_pods(settled().modify(0, annotated(hold=empty, only="update")))
    assert world.decisions()[0] == "Recreate/TemplateChanged"


ENDED: dict[str, Callable[[Document], Document]] = {
    "terminating": terminating,
    "failed": lambda pod: completed(pod, "Failed"),
    "succeeded": lambda pod: completed(pod, "Succeeded"),
}


@pytest.mark.parametrize("change", ENDED.values(), ids=ENDED)
def test_pod_that_has_ended_or_is_being_deleted_cannot_be_on_hold(
    change: Callable[[Document], Document],
) -> None:
    """Kills an instance whose pod has a hold and has ended: the pod is deleted.

    A program that has ended could not remove its hold any more.
    """
    world = tapp_on_hold().modify(0, change)
    assert not killed(world).decisions()[0].endswith("/Held")
    world.settle()
    assert "web-0" not in world.pods


def test_pending_pod_can_be_on_hold() -> None:
    world = by_new_pods(tapp_on_hold().modify(0, lambda pod: in_phase(pod, "Pending")))
    assert is_on_hold(world)


def test_pod_without_an_instance_number_is_not_written() -> None:
    world = tapp_on_hold()
    stray = {**world.pod(0), "metadata": {**world.pod(0)["metadata"], "name": "web-x"}}
    world.pods["web-x"] = stray
    scaled_down(world).sync()
    meta = world.pods["web-x"]["metadata"]
    assert "deletionTimestamp" not in meta
    assert not {WANTED, SINCE} & meta["annotations"].keys()


def test_pending_action_is_written_to_pods_without_the_last_applied_annotation() -> None:
    """Kills an instance whose pod has no annotation of Metacontroller: it gets the pending action
    all the same.

    Another controller created the pod, or somebody removed Metacontroller's annotation.
    """
    world = World(tapp(replicas=2), strip=True).settle().modify(0, annotated(hold="x"))
    killed(world).settle()
    assert pending_action(world) == ("Delete", BEGAN, "true")
    world.change(statuses=None).modify(0, annotated(hold=None)).settle()
    assert not any(pending_action(world))


@pytest.mark.parametrize("change", [killed, scaled_down])
def test_time_limit_of_a_hold_does_not_start_for_a_pod_with_an_invalid_status(
    change: Change,
) -> None:
    """A pod on hold cannot be read, so the pending action is not written to it: its hold never
    expires.

    The program cannot know about the limit if the pending action is not written to its pod.
    """
    world = change(tapp_on_hold(deletionHoldTimeoutSeconds=90).modify(0, with_invalid_status))
    for seconds in (0, 90, 10**7):
        answer = at_second(world, seconds).sync()
        assert "resyncAfterSeconds" not in answer
        assert "delete Pod/web-0" not in world.writes
        assert pending_action(world) == (None, None, "true")
        assert planned(world)["message"].startswith(
            "its pod is on hold (reason: 'match 42'), and the TApp service cannot write the "
            "pending action to the pod, because it cannot read the pod; the deletion is pending. "
        )
    assert answer["status"]["held"] == "0"
    world.change(deletionHoldTimeoutSeconds=0)
    assert world.decisions()[0].startswith("Delete/")


def test_time_limit_counts_from_a_pending_action_that_the_pod_already_has() -> None:
    world = (
        killed(tapp_on_hold(deletionHoldTimeoutSeconds=90)).settle().modify(0, with_invalid_status)
    )
    assert at_second(world, 89).decisions()[0] == "Keep/Held"
    assert at_second(world, 90).decisions()[0] == "Delete/Killed"


# --- the pending action ---------------------------------------------------------------------------


def test_hold_without_a_pending_action_changes_the_label_and_not_the_status() -> None:
    """Sets and removes a hold while the service has nothing to do with the pod: only the label of
    the pod changes.

    Programs set and remove a hold with every match. The TApp stays Ready meanwhile.
    """
    world = settled(replicas=3)
    status = world.parent["status"]
    for text, label in (("match 1", "true"), (None, None)):
        world.modify(0, annotated(hold=text))
        assert world.decisions()[0] == "Mark/UpToDate"
        world.sync()
        assert world.writes == ["update Pod/web-0"]
        assert pending_action(world) == (None, None, label)
        assert world.parent["status"] == status
        world.sync()
        assert not world.writes


CANCELED: dict[str, tuple[Change, Document]] = {
    "a rollback": (in_place, {"template": template()}),
    "a pause": (by_new_pods, {"updateStrategy": {"paused": True}}),
    "no budget": (by_new_pods, {"updateStrategy": {"maxUnavailable": "x"}}),
    "a start": (killed, {"statuses": None}),
    "a scale up": (scaled_down, {"replicas": 3}),
}


@pytest.mark.parametrize(("change", "back"), CANCELED.values(), ids=CANCELED)
def test_pending_action_is_removed_from_the_pod_when_the_edit_is_reverted(
    change: Change, back: Document
) -> None:
    world = change(tapp_on_hold()).settle()
    uid = world.pod(0)["metadata"]["uid"]
    assert pending_action(world)[0]
    world.change(**back).settle()
    assert pending_action(world) == (None, None, "true")
    assert world.pod(0)["metadata"]["uid"] == uid
    assert "held" not in world.parent["status"]


def test_time_of_the_pending_action_restarts_if_the_action_changes() -> None:
    world = in_place(tapp_on_hold()).settle()
    by_new_pods(at_second(world, 60)).settle()
    assert pending_action(world) == ("Recreate", "2026-01-05T11:01:00Z", "true")
    killed(at_second(world, 120)).settle()
    assert pending_action(world) == ("Delete", "2026-01-05T11:02:00Z", "true")


def test_time_of_the_pending_action_stays_if_another_update_of_the_same_kind_follows() -> None:
    world = in_place(tapp_on_hold()).settle()
    at_second(world, 60).change(template=template("nginx:3")).settle()
    assert pending_action(world) == ("Update", BEGAN, "true")


@pytest.mark.parametrize(
    "marks",
    [
        {"since": None},
        {"since": "yesterday"},
        {"since": "2026-01-05"},
        {"since": "9" * 5000},
        {"since": "2026-01-05T12:00:00Z"},
        {"wanted": None},
        {"wanted": "Tea"},
        {"wanted": None, "since": None},
    ],
    ids=[
        "no time",
        "no timestamp",
        "only a date",
        "a long number",
        "in the future",
        "no action",
        "unknown action",
        "neither",
    ],
)
def test_time_of_the_pending_action_restarts_if_somebody_removed_or_changed_it(marks: Any) -> None:
    """Damages the pending action or its time on a pod: the service writes both again, with the
    present time.

    A time in the future is replaced, too, because time limits follow the service's clock.
    """
    spec = {"updateStrategy": {"holdTimeoutSeconds": 600}}
    world = at_second(in_place(tapp_on_hold(**spec)).settle(), 300).modify(0, annotated(**marks))
    world.settle()
    assert pending_action(world) == ("Update", "2026-01-05T11:05:00Z", "true")
    assert at_second(world, 899).decisions()[0] == "Keep/Held"
    assert at_second(world, 900).decisions()[0] == "UpdateInPlace/TemplateChanged"


def test_pending_action_stays_on_a_released_pod_until_the_update_runs() -> None:
    """Removes a hold while the update of the pod has to wait for the budget: the pending action
    stays on the pod.

    A program that sees no pending action would start another match.
    """
    world = tapp_on_hold(id=1, replicas=3)
    by_new_pods(world).sync()  # instance 0 is replaced
    assert pending_action(world, 1)[0] == "Recreate"
    world.modify(1, annotated(hold=None))
    world.sync()
    world.kubelet()
    assert world.decisions()[1] == "Keep/WaitingForBudget"
    assert pending_action(world, 1) == ("Recreate", BEGAN, None)
    world.settle()
    assert not any(pending_action(world, 1))


# --- a status that the service did not write ------------------------------------------------------


@pytest.mark.parametrize(
    "noted_before",
    [5, None, [], "0-99999999999999999999", "x", {"0": "1"}],
    ids=["number", "null", "list", "huge range", "no range", "mapping"],
)
def test_invalid_list_of_pods_on_hold_in_the_status_is_ignored(noted_before: Any) -> None:
    world = by_new_pods(tapp_on_hold()).settle()
    status = {**world.parent["status"], "held": noted_before}
    world.parent = {**world.parent, "status": status}
    assert world.sync()["status"]["held"] == "0"


def test_upgrade_of_the_service_writes_no_pod_without_a_hold() -> None:
    world = settled(replicas=3)
    world.hook = Hook()
    world.sync()
    assert not world.writes
    assert "held" not in world.parent["status"]


def test_pod_with_an_unknown_phase_can_be_on_hold() -> None:
    assert is_on_hold(killed(tapp_on_hold().modify(0, lambda pod: in_phase(pod, "Unknown"))))
