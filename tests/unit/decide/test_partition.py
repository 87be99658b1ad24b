"""Tests `updateStrategy.partition`: which instances are kept, at which revision, and for how long.

A test plays steps: functions that change a world.
"""

from collections.abc import Callable, Iterable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.builders import Document, crashing, tapp, template
from tests.sizes import size
from tests.unit.decide.pods import annotated
from tests.unit.world import Hook, World, condition

PRIORITY = "apps.tkestack.io/update-priority"
REVISION = "tapp_template_hash_key"
Step = Callable[[World], Any]


def web_template(tag: object, **more: Any) -> Document:
    return template(f"web:{tag}", **more)


def tapp_at_web_1(replicas: int = 6, **spec: Any) -> World:
    """Returns a TApp whose instances run the image `web:1`, after it has settled."""
    return World(tapp(replicas=replicas, template=web_template(1), **spec), history=True).settle()


def image_tags(found: World) -> str:
    """Returns the last part of each instance's image in one text, such as `2211`; `-` if it has no
    pod.
    """
    replicas = found.parent["spec"]["replicas"]
    there = [f"web-{id}" in found.pods for id in range(replicas)]
    return "".join(
        found.container(id)["image"].rpartition(":")[2] if here else "-"
        for id, here in enumerate(there)
    )


def roll_out(tag: object, partition: Any = None, **strategy: Any) -> Step:
    """Returns a step that changes the image to `web:TAG` and fields of the update strategy, and
    then settles.

    A partition of None leaves the field as it is.
    """

    def change(found: World) -> None:
        before = found.parent["spec"].get("updateStrategy") or {}
        changed = {**before, **strategy}
        if partition is not None:
            changed["partition"] = partition
        found.change(template=web_template(tag), updateStrategy=changed).settle()

    return change


def set_partition(value: Any, **strategy: Any) -> Step:
    """Returns a step that sets the partition and fields of the update strategy, and then settles.

    None removes a field.
    """

    def change(found: World) -> None:
        before = found.parent["spec"].get("updateStrategy") or {}
        changed = {**before, "partition": value, **strategy}
        kept = {key: item for key, item in changed.items() if item is not None}
        found.change(updateStrategy=kept).settle()

    return change


def edit(**spec: Any) -> Step:
    return lambda found: found.change(**spec).settle()


def lose_pods(*ids: int) -> Step:
    """Returns a step that removes the pods of these instances, together with their annotations."""

    def change(found: World) -> None:
        for id in ids:
            del found.pods[f"web-{id}"]

    return change


def settle(found: World) -> None:
    found.settle()


def set_priority(id: int, text: str) -> Step:
    return lambda found: found.modify(id, annotated(PRIORITY, text))


def delete_revisions(found: World) -> None:
    """Deletes all ControllerRevisions, as a user may do."""
    found.revisions.clear()


def start_rollout(tag: object, syncs: int = 1, **strategy: Any) -> Step:
    """Returns a step that starts a rollout to the image `web:TAG` and runs only `syncs` syncs of
    it.
    """

    def change(found: World) -> None:
        found.change(template=web_template(tag), updateStrategy=strategy)
        for _ in range(syncs):
            found.sync()
            found.kubelet()

    return change


def play(steps: Iterable[Step], **spec: Any) -> World:
    found = tapp_at_web_1(**spec)
    for step in steps:
        step(found)
    return found.settle()


# --- how many instances are kept, and which -------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "replicas", "kept"),
    [
        (0, 4, 0),
        (1, 4, 1),
        (4, 4, 4),
        (9, 4, 4),
        ("0%", 4, 0),
        ("1%", 4, 1),
        ("25%", 4, 1),
        ("26%", 4, 2),
        ("030%", 4, 2),
        ("99%", 4, 3),
        ("100%", 4, 4),
        ("99%", 1, 1),
        ("1%", 1, 1),
        ("50%", 3, 2),
    ],
)
def test_partition_keeps_a_number_or_a_percentage_of_instances(
    value: Any, replicas: int, kept: int
) -> None:
    """Rolls out with several partitions, and counts the kept instances.

    Numbers work as in a StatefulSet, and percentages as in a CloneSet: rounded up, below 100%.
    """
    found = play([roll_out(2, value)], replicas=replicas)
    assert image_tags(found) == "2" * (replicas - kept) + "1" * kept


@pytest.mark.parametrize("value", [-1, "-1", "1", "101%", "x", "", "30 %", "1e1%", "999999999999%"])
def test_invalid_partition_blocks_updates_and_sets_a_condition(value: Any) -> None:
    found = play([roll_out(2, value)])
    assert image_tags(found) == "111111"
    problem = condition(found.parent["status"], "InvalidPartition")
    assert problem is not None
    assert f"{value!r} is neither a number from 0 nor a percentage" in problem["message"]
    assert condition(found.parent["status"], "Degraded")["reason"] == "InvalidPartition"
    # New instances are still created, at the revision of the others.
    assert image_tags(play([roll_out(2, value), edit(replicas=7)])) == "1111111"
    assert image_tags(play([roll_out(2, value), set_partition(None)])) == "222222"


@pytest.mark.parametrize(("value", "after"), [(4, "221111"), ("100%", "111111"), (0, "222222")])
def test_partition_blocks_updates_if_its_rolling_template_does_not_exist(
    value: Any, after: str
) -> None:
    """Mistypes the name of the rolling template during a rollout: all instances stay as they are.

    With a partition of 0 there is nothing to keep, so they are updated. Once, such a typo let no
    instance be kept any more.
    """
    pool = {"app": web_template(1), "canary": web_template(7)}
    found = World(tapp(replicas=6, templatePool=pool, defaultTemplateName="app"), history=True)
    found.settle()
    strategy = {"partition": value, "maxUnavailable": 6}
    found.change(templatePool={**pool, "app": web_template(2)}, updateStrategy=strategy).settle()
    before = image_tags(found)
    found.change(updateStrategy={**strategy, "template": "ap"}, templates={"0": "canary"}).settle()
    if value == 0:
        assert image_tags(found) == "722222"
        return
    assert image_tags(found) == before == after
    for type in ("InvalidPartition", "RollingTemplateUnused"):
        said = condition(found.parent["status"], type)
        assert said is not None
        assert "there is no" in said["message"]
        assert "is updated" in said["message"]
    lose_pods(3, 5)(found)
    assert image_tags(found.settle()) == before
    found.change(updateStrategy=strategy, templates={}).settle()
    assert image_tags(found) == before


@pytest.mark.parametrize("value", [True, 1.5, [], {}])
def test_partition_of_a_wrong_type_is_refused(value: Any) -> None:
    found = World(tapp(updateStrategy={"partition": value}))
    assert Hook().post("/sync", found.request()).status_code == 400


CASES: dict[str, tuple[list[Step], str]] = {
    "last ones in the order": ([roll_out(2, 2)], "222211"),
    "descending order": ([roll_out(2, 2, order="Descending")], "112222"),
    "low priority": ([set_priority(0, "-1"), roll_out(2, 2)], "122221"),
    "all kept": ([roll_out(2, 6)], "111111"),
    "none kept": ([roll_out(2, 0)], "222222"),
    # Pods that are lost.
    "one pod lost": ([roll_out(2, 2), lose_pods(5)], "222211"),
    "all pods lost": ([roll_out(2, 2), lose_pods(0, 1, 2, 3, 4, 5)], "222211"),
    "lost before the rollout": ([lose_pods(5), roll_out(2, 2)], "222211"),
    "pod with a priority lost": ([set_priority(0, "-1"), roll_out(2, 2), lose_pods(0)], "122221"),
    "pod with a priority lost twice": (
        [set_priority(0, "-1"), roll_out(2, 2), lose_pods(0), settle, lose_pods(0, 5)],
        "122221",
    ),
    "priority set after the rollout": (
        [roll_out(2, 2), set_priority(5, "9"), lose_pods(4)],
        "222211",
    ),
    "priority set during the rollout": (
        [start_rollout(2, 2, partition=2), set_priority(5, "9"), set_priority(0, "-9")],
        "222211",
    ),
    # Other partitions, rollbacks, and further rollouts.
    "lowered": ([roll_out(2, 4), set_partition(2)], "222211"),
    "lowered by priority": ([roll_out(2, 3), set_priority(5, "9"), set_partition(2)], "222112"),
    "removed": ([roll_out(2, 4), set_partition(None)], "222222"),
    "raised": ([roll_out(2, 2), set_partition(4)], "222211"),
    "raised, then pods lost": ([roll_out(2, 2), set_partition(4), lose_pods(3, 5)], "222211"),
    "pods lost, then raised": ([roll_out(2, 2), lose_pods(3, 5), set_partition(4)], "222211"),
    "raised during the rollout": ([start_rollout(2, 2), set_partition(2)], "222211"),
    "order reversed": ([roll_out(2, 2), set_partition(2, order="Descending")], "222211"),
    "rolled back": ([roll_out(2, 2), roll_out(1)], "111111"),
    "rolled back, then pods lost": ([roll_out(2, 2), roll_out(1), lose_pods(5, 0)], "111111"),
    "rolled back and forward": ([roll_out(2, 2), roll_out(1), roll_out(2), lose_pods(5)], "222211"),
    "rolled back in reverse order": ([roll_out(2, 2), roll_out(1, order="Descending")], "221111"),
    "second rollout": ([roll_out(2, 2), roll_out(3)], "333311"),
    "second rollout keeps more": ([roll_out(2, 2), roll_out(3, 4)], "332211"),
    "second rollout, then pods lost": (
        [roll_out(2, 2), roll_out(3, 4), lose_pods(2, 3, 4)],
        "332211",
    ),
    "pods lost, then second rollout": ([roll_out(2, 2), lose_pods(3, 4), roll_out(3, 4)], "332211"),
    "third rollout": (
        [roll_out(2, 2), roll_out(3, 3), roll_out(4, 4), lose_pods(2, 3, 4, 5)],
        "443211",
    ),
    "second rollout, then no partition": (
        [roll_out(2, 2), roll_out(3, 4), set_partition(0)],
        "333333",
    ),
    # Scaling.
    "scaled down and up": ([roll_out(2, 2), edit(replicas=4), edit(replicas=6)], "222211"),
    "scaled to 0 and up": ([roll_out(2, 2), edit(replicas=0), edit(replicas=6)], "222211"),
    "scaled down": ([roll_out(2, 2), edit(replicas=5)], "22221"),
    "two kept revisions scaled down and up": (
        [roll_out(2, 2), roll_out(3, 4), edit(replicas=1), edit(replicas=6)],
        "332211",
    ),
    "scaled up, partition is a number": ([roll_out(2, 2), edit(replicas=8)], "22221122"),
    "scaled up, partition is a percentage": ([roll_out(2, "50%"), edit(replicas=8)], "22211121"),
    "scaled up, descending order": (
        [roll_out(2, 4, order="Descending"), edit(replicas=8)],
        "11112222",
    ),
    "fewer instances than kept, scaled up": (
        [edit(replicas=2), roll_out(2, 4, order="Descending"), edit(replicas=6)],
        "111122",
    ),
    "scaled up from 0 after the edit": (
        [edit(replicas=0), roll_out(2, 2), edit(replicas=6)],
        "222211",
    ),
    # Killed and broken instances.
    "killed and started": (
        [roll_out(2, 2), edit(statuses={"5": "Killed"}), edit(statuses={})],
        "222211",
    ),
    "killed before the rollout": (
        [edit(statuses={"5": "Killed"}), roll_out(2, 2), edit(statuses={})],
        "222211",
    ),
    "killed instance keeps its place": ([edit(statuses={"5": "Killed"}), roll_out(2, 2)], "22221-"),
    "killed during a second rollout": (
        [roll_out(2, 2), edit(statuses={"5": "Killed"}), roll_out(3, 3), edit(statuses={})],
        "333211",
    ),
    "broken instance is kept": (
        [lambda found: found.modify(5, crashing), start_rollout(2, 9, partition=2)],
        "222211",
    ),
    # The force group.
    "force group is not kept": (
        [edit(templatePool={"x": web_template(7)}, templates={"4": "x"}), roll_out(2, 2)],
        "222171",
    ),
    "moved into the force group and back": (
        [
            edit(templatePool={"x": web_template(7)}),
            roll_out(2, 2),
            edit(templates={"5": "x"}),
            edit(templates={}),
        ],
        "222212",
    ),
}


@pytest.mark.parametrize(("steps", "expected"), CASES.values(), ids=CASES)
def test_kept_instances_stay_at_their_revision(steps: list[Step], expected: str) -> None:
    assert image_tags(play(steps)) == expected


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
    assert plan[5]["message"] == f"the partition keeps it at revision {last}"


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
    assert "instance 5 at v1-" in said["message"]
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


# --- kept instances and other features ------------------------------------------------------------


def template_with_values(tag: object) -> Document:
    """Returns a template with the image `web:TAG` that reads a value and the instance number."""
    env = [{"name": "MAP", "value": "$(tapp.values.map)"}, {"name": "N", "value": "$(tapp.index)"}]
    return web_template(tag, container={"env": env})


def tags_and_values(found: World) -> list[str]:
    containers = [found.container(id) for id in range(len(found.pods))]
    return [f"{each['image'].rpartition(':')[2]} {each['env'][0]['value']}" for each in containers]


def test_kept_instance_keeps_the_values_of_its_revision() -> None:
    """Changes values after a rollout with a partition: a kept instance has its earlier values, also
    in a new pod.
    """
    found = World(
        tapp(replicas=4, template=template_with_values(1), defaultValues={"map": "a"}), history=True
    )
    found.settle()
    found.change(values={"3": {"map": "b"}}).settle()
    strategy = {"partition": 2, "maxUnavailable": 4}
    found.change(
        template=template_with_values(2), updateStrategy=strategy, defaultValues={"map": "c"}
    ).settle()
    assert tags_and_values(found) == ["2 c", "2 c", "1 a", "1 b"]
    uids = found.uids()
    lose_pods(2, 3)(found)
    found.settle()
    assert tags_and_values(found) == ["2 c", "2 c", "1 a", "1 b"]
    found.change(values={"3": {"map": "d"}, "0": {"map": "e"}}).settle()
    assert tags_and_values(found) == ["2 e", "2 c", "1 a", "1 b"]
    lose_pods(2, 3)(found)
    found.settle()
    assert tags_and_values(found) == ["2 e", "2 c", "1 a", "1 b"]
    assert found.uids()["web-1"] == uids["web-1"]
    status = found.parent["status"]
    assert status["updateRevision"].count("-") == status["currentRevision"].count("-") == 2
    set_partition(0)(found)
    assert tags_and_values(found) == ["2 e", "2 c", "2 c", "2 d"]


def test_kept_instance_gets_its_values_again_when_its_revision_is_restored() -> None:
    """Deletes the history and restores it later: a lost kept pod is created again with its earlier
    values.

    The status still names the revision while the ControllerRevision is missing.
    """
    found = World(
        tapp(replicas=4, template=template_with_values(1), defaultValues={"map": "a"}), history=True
    )
    found.settle()
    strategy = {"partition": 2, "maxUnavailable": 4}
    found.change(template=template_with_values(2), updateStrategy=strategy).settle()
    records, noted = dict(found.revisions), found.parent["status"]["kept"]
    delete_revisions(found)
    found.settle()
    lose_pods(3)(found)
    found.settle()
    assert found.parent["status"]["kept"] == noted
    found.revisions.update(records)
    found.settle()
    assert tags_and_values(found) == ["2 a", "2 a", "1 a", "1 a"]


def test_change_of_the_resources_mode_does_not_update_kept_pods() -> None:
    small, large = ({"resources": {"requests": {"cpu": cpu}}} for cpu in ("1", "2"))
    found = World(
        tapp(replicas=4, template=web_template(1, container=small)), history=True
    ).settle()
    changed = {"template": web_template(2, container=large), "updateStrategy": {"partition": 2}}
    found.change(**changed).settle()
    uids = found.uids()
    for mode in ("Ignore", None):
        in_place = {"inPlaceUpdateStrategy": {"resources": mode}}
        found.change(updateStrategy={"partition": 2, **in_place}).settle()
        assert image_tags(found) == "2211"
        assert found.uids() == uids
    lose_pods(3)(found)
    found.settle()
    assert image_tags(found) == "2211"
    assert found.container(3)["resources"] == {"requests": {"cpu": "1"}}


def test_kept_pod_is_restarted_on_request() -> None:
    found = play([roll_out(2, 2)])
    asked = {"apps.tkestack.io/restart-instance": "now"}

    def ask(pod: Document) -> Document:
        meta = pod["metadata"]
        return {**pod, "metadata": {**meta, "annotations": {**meta["annotations"], **asked}}}

    found.modify(5, ask)
    uid = found.uids()["web-5"]
    found.settle()
    assert image_tags(found) == "222211"
    assert found.uids()["web-5"] != uid, (
        "the pod has to be replaced, because its image has no digest"
    )


def test_kept_pods_are_recreated_although_the_current_template_is_invalid() -> None:
    found = play([roll_out(2, 2)])
    found.change(template={"spec": {"containers": "none"}})
    lose_pods(1, 5)(found)
    found.settle()
    assert image_tags(found) == "2-2211"


def test_pods_of_another_controller_are_adopted_if_they_match_and_kept_if_not() -> None:
    found = play([roll_out(2, 2)])

    def by_another(pod: Document) -> Document:
        meta = pod["metadata"]
        labels = {key: text for key, text in meta["labels"].items() if "hash_key" not in key}
        return {**pod, "metadata": {**meta, "labels": labels}}

    for id in (0, 5):
        found.modify(id, by_another)
    assert found.decisions()[0] == "Adopt/Adopted"
    assert found.decisions()[5] == "Keep/Kept"
    found.settle()
    assert image_tags(found) == "222211"
    lose_pods(5)(found)
    assert image_tags(found.settle()) == "22221-"


def test_one_sync_creates_pods_of_two_revisions() -> None:
    found = play([roll_out(2, 3)])
    found.pods.clear()
    found.sync()
    assert image_tags(found) == "222111"


# --- random edits ---------------------------------------------------------------------------------


def edit_only(**spec: Any) -> Step:
    return lambda found: found.change(**spec)


def lose_if_present(id: int) -> Step:
    return lambda found: found.pods.pop(f"web-{id}", None)


def set_priority_if_present(id: int, text: str) -> Step:
    return lambda found: (
        found.modify(id, annotated(PRIORITY, text)) if f"web-{id}" in found.pods else None
    )


_ids = st.integers(0, 5)
_partitions = st.sampled_from([0, 1, 2, 3, 5, "30%", "50%", "99%", None, "x"])
_steps = st.one_of(
    st.builds(lambda tag: edit_only(template=web_template(tag)), st.integers(1, 4)),
    st.builds(
        lambda value, order: edit_only(updateStrategy={"partition": value, "order": order}),
        _partitions,
        st.sampled_from([None, "Ascending", "Descending"]),
    ),
    st.builds(lambda count: edit_only(replicas=count), st.integers(0, 6)),
    st.builds(lambda ids: edit_only(statuses={str(id): "Killed" for id in ids}), st.sets(_ids)),
    st.builds(
        lambda id, name: edit_only(templates={str(id): name}),
        _ids,
        st.sampled_from(["x", "default"]),
    ),
    st.builds(lose_if_present, _ids),
    st.builds(set_priority_if_present, _ids, st.sampled_from(["-1", "1", "9"])),
    st.just(lambda found: found.sync()),
    st.just(lambda found: (found.sync(), found.kubelet())),
    st.just(lambda found: found.settle()),
)


@given(st.lists(_steps, max_size=14))
@settings(max_examples=size(15, 400), deadline=None)
def test_random_edits_never_update_a_kept_instance(steps: list[Step]) -> None:
    """Plays random edits and losses of pods; `tests.invariants` checks each response
    (`tests/kept_instances.py`).
    """
    found = World(
        tapp(replicas=4, template=web_template(1), templatePool={"x": web_template(7)}),
        history=True,
    )
    for step in steps:
        step(found)
    found.settle()
    found.change(updateStrategy=None, statuses=None).settle()
    newest = found.parent["spec"]["template"]["spec"]["containers"][0]["image"][-1]
    assert set(image_tags(found)) <= {newest, "7"}
