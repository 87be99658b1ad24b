"""Tests `updateStrategy.partition`: which instances are kept, at which revision, and for how long.

A test plays steps: functions that change a world.
"""

from typing import Any

import pytest

from tests.builders import crashing, tapp
from tests.unit.decide.partitions import (
    PRIORITY,
    Step,
    edit,
    image_tags,
    lose_pods,
    play,
    roll_out,
    set_partition,
    start_rollout,
    web_template,
)
from tests.unit.decide.pods import annotated
from tests.unit.world import Hook, World, condition


def settle(found: World) -> None:
    found.settle()


def set_priority(id: int, text: str) -> Step:
    return lambda found: found.modify(id, annotated(PRIORITY, text))


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
    assert (f"{value!r} is neither a whole number of at least 0 nor a percentage") in problem[
        "message"
    ]
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


@pytest.mark.parametrize("value", [True, 1.5, [], {}], ids=["boolean", "float", "list", "mapping"])
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
