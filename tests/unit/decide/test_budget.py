"""Updates that happen now: budgets, groups, order."""

from typing import Any

import pytest

from tests.builders import NOW, Document, crashing, running, tapp, template, terminating
from tests.unit.world import Hook, World, condition, settled

NEW = template("nginx:2", container={"command": ["run"]})
"""Differs in more than images: instances are recreated."""


def chosen(world: World) -> list[int]:
    """The instances that the next sync updates."""
    actions = world.decisions()
    return [
        id for id, text in actions.items() if text.split("/")[0] in ("UpdateInPlace", "Recreate")
    ]


def rolling(replicas: int, budget: Any) -> World:
    """Instances on the rolling template, which has just changed."""
    strategy = {} if budget is None else {"maxUnavailable": budget}
    return settled(replicas=replicas, updateStrategy=strategy).change(template=NEW)


def forced(replicas: int, budget: Any) -> World:
    """Instances off the rolling template, which all get another one; the last one runs it."""
    pool = {"v1": template(), "v2": NEW, "stable": template()}
    strategy: Document = {"template": "stable"}
    if budget is not None:
        strategy["forceUpdate"] = {"maxUnavailable": budget}
    world = settled(
        replicas=replicas + 1,
        templatePool=pool,
        templates={str(replicas): "stable"},
        defaultTemplateName="v1",
        updateStrategy=strategy,
    )
    return world.change(defaultTemplateName="v2")


@pytest.mark.parametrize(
    ("replicas", "budget", "expected"),
    [
        pytest.param(4, None, 1, id="one is the default"),
        pytest.param(4, 1, 1, id="one"),
        pytest.param(4, 3, 3, id="a number"),
        pytest.param(4, 9, 4, id="more than there are"),
        pytest.param(4, "25%", 1, id="an exact percentage"),
        pytest.param(4, "26%", 2, id="a percentage is rounded up"),
        pytest.param(3, "1%", 1, id="the least percentage still updates one"),
        pytest.param(10, "30%", 3, id="30 percent of 10 is 3 and not a float's 4"),
        pytest.param(7, "100%", 7, id="all"),
    ],
)
def test_the_rolling_budget_says_how_many(replicas: int, budget: Any, expected: int) -> None:
    assert chosen(rolling(replicas, budget)) == list(range(expected))


@pytest.mark.parametrize(
    ("replicas", "budget", "expected"),
    [
        pytest.param(4, None, 4, id="all by default"),
        pytest.param(4, 2, 2, id="a number"),
        pytest.param(5, "50%", 3, id="a percentage is rounded up"),
        pytest.param(12, 3, 3, id="the lowest numbers first, also of more than ten"),
    ],
)
def test_the_force_budget_is_for_all_other_instances(
    replicas: int, budget: Any, expected: int
) -> None:
    assert chosen(forced(replicas, budget)) == list(range(expected))


@pytest.mark.parametrize("budget", [0, -1, "0%", "101%", "abc", "", "1", "50", "1.5%", "%", "-5%"])
@pytest.mark.parametrize("group", [rolling, forced])
def test_an_invalid_budget_updates_nothing_and_says_so(group: Any, budget: Any) -> None:
    world = group(3, budget)
    assert chosen(world) == []
    found = condition(world.sync(), "InvalidBudget")
    assert found is not None
    assert repr(budget) in found["message"]
    assert condition(world.parent["status"], "Degraded")["status"] == "True"  # type: ignore[index]


def test_an_invalid_budget_holds_back_broken_instances_too() -> None:
    world = rolling(2, 0).modify(0, crashing)
    assert chosen(world) == []


def test_an_invalid_budget_stops_neither_creates_nor_deletes() -> None:
    world = rolling(3, "abc").change(replicas=4, statuses={"0": "Killed"})
    assert world.decisions()[0] == "Delete/Killed"
    assert world.decisions()[3] == "Create/NoPod"


def test_the_force_group_goes_first_and_both_share_the_available_ones() -> None:
    pool = {"a": template(), "b": template()}
    world = settled(
        replicas=4,
        templatePool=pool,
        templates={"2": "a", "3": "b"},
        updateStrategy={"maxUnavailable": 2, "forceUpdate": {"maxUnavailable": 1}},
    )
    world.change(template=NEW, templatePool={"a": NEW, "b": NEW})
    assert world.decisions() == {
        0: "Recreate/TemplateChanged",
        1: "Keep/WaitingForBudget",
        2: "Recreate/TemplateChanged",
        3: "Keep/WaitingForBudget",
    }


def test_a_force_group_that_takes_all_leaves_nothing_for_the_rolling_group() -> None:
    pool = {"a": template()}
    world = settled(replicas=3, templatePool=pool, templates={"1": "a", "2": "a"})
    world.change(template=NEW, templatePool={"a": NEW})
    assert chosen(world) == [1, 2]


def test_which_group_an_instance_is_in_is_a_matter_of_its_target_template() -> None:
    """An instance that moves onto the rolling template moves on that template's budget."""
    pool = {"v1": template(), "v2": NEW}
    strategy = {"template": "v2", "forceUpdate": {"maxUnavailable": 3}}
    world = settled(
        replicas=3, templatePool=pool, defaultTemplateName="v1", updateStrategy=strategy
    )
    world.change(templates={"0": "v2", "1": "v2", "2": "v2"})
    assert chosen(world) == [0]


def test_the_rolling_template_follows_the_default_name_at_every_sync() -> None:
    pool = {"v1": template(), "v2": NEW}
    world = settled(replicas=3, templatePool=pool, defaultTemplateName="v1")
    assert chosen(world.change(defaultTemplateName="v2")) == [0]


def test_an_unavailable_instance_may_always_be_updated() -> None:
    world = settled(replicas=4).modify(2, crashing).modify(3, lambda pod: running(pod, ready=False))
    assert chosen(world.change(template=NEW)) == [2, 3]


def test_a_broken_roll_out_is_repaired_by_the_next_template() -> None:
    world = settled(replicas=3).change(template=template("typo:1")).settle_up_to_broken()
    assert chosen(world.change(template=template("nginx:3"))) == [0]
    world.settle()
    assert [world.container(id)["image"] for id in range(3)] == ["nginx:3"] * 3


def test_a_terminating_pod_counts_as_unavailable() -> None:
    world = settled(replicas=3).modify(2, terminating).change(template=NEW)
    assert world.decisions() == {
        0: "Keep/WaitingForBudget",
        1: "Keep/WaitingForBudget",
        2: "Keep/Terminating",
    }


def test_an_instance_without_a_pod_uses_up_budget() -> None:
    world = settled(replicas=3)
    del world.pods["web-2"]
    world.change(template=NEW)
    assert chosen(world) == []
    assert world.decisions()[2] == "Create/NoPod"


def test_killed_instances_neither_count_nor_use_up_budget() -> None:
    world = settled(replicas=4, statuses={"0": "Killed", "1": "Killed"})
    world.change(template=NEW, updateStrategy={"maxUnavailable": "50%"})
    assert chosen(world) == [2]


def test_creates_are_never_budgeted() -> None:
    world = settled(replicas=1).change(replicas=50)
    assert list(world.decisions().values())[1:] == ["Create/NoPod"] * 49


def test_updates_go_on_one_after_the_other_until_all_are_done() -> None:
    world = settled(replicas=4).change(template=template("nginx:2"))
    order = []
    for _ in range(4):
        order += chosen(world)
        world.sync()
        assert chosen(world) == []  # the first one restarts
        world.kubelet()
    assert order == [0, 1, 2, 3]
    assert not chosen(world)


def test_waiting_says_for_what_it_waits() -> None:
    world = rolling(3, 1)
    plan = world.hook.answer("/plan", world.request())
    waiting = plan["instances"][1]
    assert waiting["reason"] == "WaitingForBudget"
    assert "maxUnavailable" in waiting["message"]


# --- minReadySeconds ------------------------------------------------------------------------------


def young(seconds: float, **spec: Any) -> tuple[World, Hook]:
    """Three running pods which became Ready that many seconds before the clock's time."""
    hook = Hook(now=NOW)
    world = World(tapp(replicas=3, minReadySeconds=30, **spec), hook=hook)
    world.sync()
    world.kubelet()
    world.sync()
    hook.now = NOW - 3540 + seconds  # pods are Ready since 59 minutes before NOW
    return world, hook


@pytest.mark.parametrize(
    ("seconds", "available", "again"), [(0, 0, 30), (12, 0, 18), (29.5, 0, 0.5), (30, 3, None)]
)
def test_an_instance_is_available_once_it_was_ready_for_min_ready_seconds(
    seconds: float, available: int, again: float | None
) -> None:
    world, _ = young(seconds)
    answer = world.sync()
    assert answer["status"]["availableReplicas"] == available
    assert answer["status"]["readyReplicas"] == 3
    assert answer.get("resyncAfterSeconds") == again


def test_the_next_instance_waits_for_min_ready_seconds_of_the_last_one() -> None:
    world, hook = young(3000)
    world.change(template=template("nginx:2"))
    assert chosen(world) == [0]
    world.sync()
    later = "2026-01-05T11:00:00Z"
    world.modify(0, lambda pod: running(pod, since=later))
    hook.now = NOW + 10
    answer = world.sync()
    assert chosen(world) == []
    assert answer["resyncAfterSeconds"] == 20
    hook.now = NOW + 31
    assert chosen(world) == [1]


def test_without_min_ready_seconds_the_clock_plays_no_part() -> None:
    world = settled(replicas=2)
    answers = [world.hook.post("/sync", world.request()).data]
    for world.hook.now in (0.0, 4e9):
        answers.append(world.hook.post("/sync", world.request()).data)
    assert len(set(answers)) == 1


def test_an_unreadable_ready_time_means_not_yet_available() -> None:
    world = settled(minReadySeconds=5).modify(0, lambda pod: running(pod, since="yesterday"))
    assert world.sync()["status"]["availableReplicas"] == 0


def test_a_pod_whose_replacement_may_be_unseen_counts_as_unavailable() -> None:
    """It was broken when it was chosen, and the cache shows that it recovered: P2."""
    world = settled(replicas=3).change(template=template("nginx:2"))
    world.modify(2, crashing)
    world.change(template=NEW)
    answer = world.hook.sync(world.request())
    assert answer["status"]["replacing"] == {"2": world.pod(2)["metadata"]["uid"]}
    world.parent["status"] = answer["status"]
    world.modify(2, running)
    assert chosen(world) == [2]
    world.modify(2, lambda pod: {**pod, "metadata": {**pod["metadata"], "uid": "another"}})
    assert chosen(world) == [0]
