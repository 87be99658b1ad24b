"""Tests the status of a TApp with a partition, and partitions whose revisions the history lacks."""

import pytest

from tests.builders import Document, tapp
from tests.unit.decide.partitions import (
    Step,
    delete_revisions,
    edit,
    image_tags,
    lose_pods,
    play,
    roll_out,
    set_partition,
    start_rollout,
    tapp_at_web_1,
    web_template,
)
from tests.unit.world import World, condition

REVISION = "tapp_template_hash_key"


# --- status ---------------------------------------------------------------------------------------


def tags_of_revisions(found: World) -> tuple[str, str]:
    """Returns the image tags of `status.currentRevision` and `status.updateRevision`."""
    named = {
        item["metadata"]["labels"][REVISION]: item["data"]["template"]["spec"]["containers"][0]
        for item in found.revisions.values()
    }
    status = found.parent["status"]
    current, update = (
        named[status[field]]["image"].rpartition(":")[2]
        for field in ("currentRevision", "updateRevision")
    )
    return current, update


@pytest.mark.parametrize(
    ("steps", "expected"),
    [
        ([], ("1", "1")),
        ([start_rollout(2, 1)], ("1", "2")),
        ([start_rollout(2, 2), start_rollout(3, 1)], ("1", "3")),
        ([roll_out(2)], ("2", "2")),
        ([roll_out(2, 2)], ("1", "2")),
        ([roll_out(2, 2), roll_out(3)], ("1", "3")),
        ([roll_out(2, 2), roll_out(1)], ("1", "1")),
        ([roll_out(2, 2), set_partition(0)], ("2", "2")),
        ([roll_out(2, 2), set_partition("0%")], ("2", "2")),
        ([roll_out(2, 6)], ("1", "2")),
        ([roll_out(2, "x")], ("1", "2")),
        ([roll_out(2, 2), edit(replicas=0)], ("1", "2")),
        ([edit(replicas=0), roll_out(2)], ("2", "2")),
    ],
    ids=[
        "no rollout",
        "rollout began",
        "second rollout began",
        "rollout",
        "rollout stopped at a partition",
        "next rollout after a partition",
        "rollback after a partition",
        "partition of 0",
        "partition of 0%",
        "partition of all instances",
        "invalid partition",
        "scaled to 0 during a rollout",
        "rollout with 0 replicas",
    ],
)
def test_status_has_current_and_update_revision_like_a_stateful_set(
    steps: list[Step], expected: tuple[str, str]
) -> None:
    """Compares both revisions in the status after several steps; a rollout is complete when both
    are equal.
    """
    found = tapp_at_web_1()
    for step in steps:
        step(found)
    found.sync()
    if expected != ("2", "2") or found.parent["spec"]["replicas"]:
        assert tags_of_revisions(found) == expected
    else:
        status = found.parent["status"]
        assert status["currentRevision"] == status["updateRevision"]


def test_rollout_is_complete_when_it_has_reached_its_partition() -> None:
    found = play([roll_out(2, 2)])
    status = found.parent["status"]
    first = found.pod(0)["metadata"]["labels"][REVISION]
    last = found.pod(5)["metadata"]["labels"][REVISION]
    assert status["updateRevision"] == first
    assert status["currentRevision"] == last
    assert status["kept"] == {last: "4,5"}
    assert status["replicas"] == 6
    assert status["updatedReplicas"] == 4
    assert status["availableReplicas"] == 6
    assert status["templates"]["default"]["updatedReplicas"] == 4
    assert not {"outdated", "progressed"} & status.keys()
    message = (
        f"4 of 6 instances are updated; spec.updateStrategy.partition 2 keeps instances 4, 5 at "
        f"revision {last}; "
        "`kubectl tapp advance web -n shop` updates them"
    )
    for type, value in (("Progressing", "False"), ("Ready", "True")):
        said = condition(status, type)
        assert said is not None
        assert said["status"] == value
        assert said["message"] == message
    assert condition(status, "Ready")["reason"] == "PartitionReached"  # type: ignore[index]
    assert found.decisions()[5] == "Keep/Kept"
    plan = found.hook.answer("/plan", found.request())["instances"]
    assert plan[5]["message"] == f"spec.updateStrategy.partition keeps it at revision {last}"


def test_status_lists_kept_instances_only_while_a_partition_is_set() -> None:
    for value in (None, 0, "0%"):
        assert "kept" not in play([roll_out(2, 2), set_partition(value)]).parent["status"]
    found = play([roll_out(2, 2), edit(replicas=3)])
    assert sorted(found.parent["status"]["kept"].values()) == ["1,2", "4,5"]


@pytest.mark.parametrize(
    "status",
    [
        {"kept": "4,5", "currentRevision": 5, "updateRevision": ["x"]},
        {"kept": {"v1-0": "0-99999,0-99999", "": "x", "v1-1": None}, "currentRevision": ""},
        {"kept": {"v1-0": "5"}},
        {"kept": {"v1-" + "0" * 200_000: "5", "unknown": "4-99999"}, "currentRevision": "x" * 999},
        None,
    ],
    ids=["wrong types", "overlapping ranges", "wrong revision", "long texts", "no status"],
)
def test_pods_stay_if_somebody_changed_or_removed_the_status(status: Document | None) -> None:
    found = play([roll_out(2, 2)])
    kept = {} if status is None else {**found.parent["status"], **status}
    found.parent = {**found.parent, "status": kept}
    found.settle()
    assert image_tags(found) == "222211"
    assert tags_of_revisions(found) in {("1", "2"), ("2", "2")}


def test_upgrade_of_the_service_during_a_rollout_keeps_the_rollout_going() -> None:
    """Removes the revisions from the status, as an earlier release had none: the rollout continues
    as before.

    The revisions are found in pods and in the history.
    """
    found = tapp_at_web_1()
    start_rollout(2, 3)(found)
    before = {key: item for key, item in found.parent["status"].items() if "Revision" not in key}
    found.parent = {**found.parent, "status": before}
    found.change(updateStrategy={"partition": 3})
    found.sync()
    assert not [line for line in found.writes if line != "update Pod/web-2"]
    assert tags_of_revisions(found) == ("1", "2")
    lose_pods(5)(found)
    assert image_tags(found.settle()) == "222111"


# --- revisions that are missing in the history ----------------------------------------------------


def test_kept_pod_without_a_recorded_revision_stays_and_is_not_recreated() -> None:
    """Deletes the history: a kept pod stays, and after its loss the instance gets no pod.

    A new pod would have another revision, which the partition does not allow.
    """
    found = play([roll_out(2, 2), delete_revisions])
    assert image_tags(found) == "222211"
    assert condition(found.parent["status"], "Ready")["status"] == "True"  # type: ignore[index]
    plan = found.hook.answer("/plan", found.request())["instances"]
    assert plan[5]["action"] == "Keep"
    assert plan[5]["reason"] == "Kept"
    assert "which is not in the history" in plan[5]["message"]
    lose_pods(5)(found)
    found.settle()
    assert image_tags(found) == "22221-"
    assert found.decisions()[5] == "Absent/RevisionNotFound"
    said = condition(found.parent["status"], "RevisionsNotFound")
    assert said is not None
    assert "instance 5 at revision v1-" in said["message"]
    assert condition(found.parent["status"], "Degraded")["reason"] == "RevisionsNotFound"  # type: ignore[index]
    set_partition(1, maxUnavailable=2)(found)
    assert image_tags(found) == "22222-"
    set_partition(0)(found)
    assert image_tags(found) == "222222"


def test_lost_kept_pods_are_recreated_when_their_template_is_the_current_one_again() -> None:
    found = play([roll_out(2, 2), delete_revisions, lose_pods(4, 5)])
    assert image_tags(found) == "2222--"
    roll_out(1)(found)
    assert image_tags(found) == "111111"


@pytest.mark.parametrize("history", [True, False], ids=["limit 0", "no history"])
def test_kept_pods_stay_and_are_not_recreated_without_a_history(history: bool) -> None:
    found = World(
        tapp(replicas=4, template=web_template(1), revisionHistoryLimit=0), history=history
    )
    found.settle()
    roll_out(2, 2)(found)
    assert image_tags(found) == "2211"
    lose_pods(3)(found)
    assert image_tags(found.settle()) == "221-"
    assert image_tags(found.change(replicas=5).settle()) == "221-2"
    assert image_tags(found.change(updateStrategy=None).settle()) == "22222"


def test_history_keeps_revisions_of_kept_instances_beyond_its_limit() -> None:
    """Rolls out seven times with a growing partition, so that eight revisions are needed: all stay
    in the history.
    """
    found = tapp_at_web_1(replicas=8, revisionHistoryLimit=1)
    for tag in range(2, 9):
        roll_out(tag, tag - 1)(found)
    assert image_tags(found) == "87654321"
    lose_pods(*range(8))(found)
    assert image_tags(found.settle()) == "87654321"
    assert len(found.revisions) == 8
    set_partition(0)(found)
    assert image_tags(found) == "88888888"
    assert len(found.revisions) == 3


def test_new_revision_is_recorded_although_all_instances_are_kept() -> None:
    found = play([roll_out(2, "100%")])
    assert tags_of_revisions(found) == ("1", "2")
