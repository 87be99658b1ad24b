"""Tests how many instances a sync updates: the budgets of both groups, and minReadySeconds.

The *rolling group* are the instances that run the rolling template (`updateStrategy.template`, or
else the default template). The *force group* are all others, with a budget of their own.
"""

from typing import Any

import pytest

from tests.builders import NOW, Document, crashing, running, tapp, template, terminating
from tests.unit.world import Hook, World, condition, settled

NEW = template("nginx:2", container={"command": ["run"]})
"""Differs from the first template in more than its image, so every update replaces the pod."""


def updated_by_next_sync(world: World) -> list[int]:
    """Returns the numbers of the instances that the next sync updates, in place or by
    replacement.
    """
    actions = world.decisions()
    return [
        id for id, text in actions.items() if text.split("/")[0] in ("UpdateInPlace", "Recreate")
    ]


def rolling_group(replicas: int, budget: Any) -> World:
    """Returns a TApp whose rolling template has just changed, so that all instances need an update.

    `budget` is `updateStrategy.maxUnavailable`; None leaves the field out.
    """
    strategy = {} if budget is None else {"maxUnavailable": budget}
    return settled(replicas=replicas, updateStrategy=strategy).change(template=NEW)


def force_group(replicas: int, budget: Any) -> World:
    """Returns a TApp in which `replicas` instances of the force group need an update.

    These run the default template, which has just changed. One more instance runs the rolling
    template `stable`, so that the others are in the force group. `budget` is
    `updateStrategy.forceUpdate.maxUnavailable`; None leaves the field out.
    """
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
        pytest.param(4, None, 1, id="one by default"),
        pytest.param(4, 1, 1, id="one"),
        pytest.param(4, 3, 3, id="a number"),
        pytest.param(4, 9, 4, id="more than replicas"),
        pytest.param(4, "25%", 1, id="an exact percentage"),
        pytest.param(4, "26%", 2, id="a percentage is rounded up"),
        pytest.param(3, "1%", 1, id="one percent of three is rounded up to one"),
        pytest.param(10, "30%", 3, id="30 percent of 10 has no rounding error"),
        pytest.param(7, "100%", 7, id="all"),
    ],
)
def test_rolling_group_updates_as_many_instances_as_max_unavailable_allows(
    replicas: int, budget: Any, expected: int
) -> None:
    assert updated_by_next_sync(rolling_group(replicas, budget)) == list(range(expected))


@pytest.mark.parametrize(
    ("replicas", "budget", "expected"),
    [
        pytest.param(4, None, 4, id="all by default"),
        pytest.param(4, 2, 2, id="a number"),
        pytest.param(5, "50%", 3, id="a percentage is rounded up"),
        pytest.param(12, 3, 3, id="lowest numbers first, sorted as numbers"),
    ],
)
def test_force_group_updates_as_many_instances_as_its_max_unavailable_allows(
    replicas: int, budget: Any, expected: int
) -> None:
    assert updated_by_next_sync(force_group(replicas, budget)) == list(range(expected))


@pytest.mark.parametrize("budget", [0, -1, "0%", "101%", "abc", "", "1", "50", "1.5%", "%", "-5%"])
@pytest.mark.parametrize("group", [rolling_group, force_group], ids=["rolling", "force"])
def test_invalid_budget_blocks_updates_and_sets_a_condition(group: Any, budget: Any) -> None:
    world = group(3, budget)
    assert updated_by_next_sync(world) == []
    found = condition(world.sync(), "InvalidBudget")
    assert found is not None
    assert repr(budget) in found["message"]
    assert condition(world.parent["status"], "Degraded")["status"] == "True"  # type: ignore[index]


def test_invalid_budget_blocks_updates_of_broken_instances() -> None:
    world = rolling_group(2, 0).modify(0, crashing)
    assert updated_by_next_sync(world) == []


def test_invalid_budget_blocks_neither_creations_nor_deletions() -> None:
    world = rolling_group(3, "abc").change(replicas=4, statuses={"0": "Killed"})
    assert world.decisions()[0] == "Delete/Killed"
    assert world.decisions()[3] == "Create/NoPod"


def test_force_group_is_updated_first_and_uses_up_the_common_budget() -> None:
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


def test_rolling_group_waits_if_the_force_group_uses_the_whole_budget() -> None:
    pool = {"a": template()}
    world = settled(replicas=3, templatePool=pool, templates={"1": "a", "2": "a"})
    world.change(template=NEW, templatePool={"a": NEW})
    assert updated_by_next_sync(world) == [1, 2]


def test_group_of_an_instance_depends_on_its_new_template() -> None:
    """Moves instances to the rolling template: only one is updated, by the budget of the rolling
    group.
    """
    pool = {"v1": template(), "v2": NEW}
    strategy = {"template": "v2", "forceUpdate": {"maxUnavailable": 3}}
    world = settled(
        replicas=3, templatePool=pool, defaultTemplateName="v1", updateStrategy=strategy
    )
    world.change(templates={"0": "v2", "1": "v2", "2": "v2"})
    assert updated_by_next_sync(world) == [0]


def test_rolling_template_is_the_current_default_template() -> None:
    pool = {"v1": template(), "v2": NEW}
    world = settled(replicas=3, templatePool=pool, defaultTemplateName="v1")
    assert updated_by_next_sync(world.change(defaultTemplateName="v2")) == [0]


def test_unavailable_instances_are_updated_without_using_the_budget() -> None:
    world = settled(replicas=4).modify(2, crashing).modify(3, lambda pod: running(pod, ready=False))
    assert updated_by_next_sync(world.change(template=NEW)) == [2, 3]


def test_next_template_repairs_a_broken_rollout() -> None:
    world = settled(replicas=3).change(template=template("typo:1")).settle_up_to_broken()
    assert updated_by_next_sync(world.change(template=template("nginx:3"))) == [0]
    world.settle()
    assert [world.container(id)["image"] for id in range(3)] == ["nginx:3"] * 3


def test_terminating_pod_counts_as_unavailable() -> None:
    world = settled(replicas=3).modify(2, terminating).change(template=NEW)
    assert world.decisions() == {
        0: "Keep/WaitingForBudget",
        1: "Keep/WaitingForBudget",
        2: "Keep/Terminating",
    }


def test_instance_without_a_pod_uses_the_budget() -> None:
    world = settled(replicas=3)
    del world.pods["web-2"]
    world.change(template=NEW)
    assert updated_by_next_sync(world) == []
    assert world.decisions()[2] == "Create/NoPod"


def test_killed_instances_count_neither_as_replicas_nor_as_unavailable() -> None:
    world = settled(replicas=4, statuses={"0": "Killed", "1": "Killed"})
    world.change(template=NEW, updateStrategy={"maxUnavailable": "50%"})
    assert updated_by_next_sync(world) == [2]


def test_creations_need_no_budget() -> None:
    world = settled(replicas=1).change(replicas=50)
    assert list(world.decisions().values())[1:] == ["Create/NoPod"] * 49


def test_instances_are_updated_one_by_one_until_all_are_up_to_date() -> None:
    world = settled(replicas=4).change(template=template("nginx:2"))
    order = []
    for _ in range(4):
        order += updated_by_next_sync(world)
        world.sync()
        assert updated_by_next_sync(world) == []  # the first one restarts
        world.kubelet()
    assert order == [0, 1, 2, 3]
    assert not updated_by_next_sync(world)


def test_message_of_a_waiting_instance_names_the_budget() -> None:
    world = rolling_group(3, 1)
    plan = world.hook.answer("/plan", world.request())
    waiting = plan["instances"][1]
    assert waiting["reason"] == "WaitingForBudget"
    assert "maxUnavailable" in waiting["message"]


# --- minReadySeconds ------------------------------------------------------------------------------


def ready_for(seconds: float, **spec: Any) -> tuple[World, Hook]:
    """Returns a TApp with minReadySeconds 30 and three pods that have been Ready for `seconds`, and
    its service.
    """
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
def test_instances_are_available_after_min_ready_seconds(
    seconds: float, available: int, again: float | None
) -> None:
    world, _ = ready_for(seconds)
    answer = world.sync()
    assert answer["status"]["availableReplicas"] == available
    assert answer["status"]["readyReplicas"] == 3
    assert answer.get("resyncAfterSeconds") == again


def test_next_update_waits_until_the_last_one_was_ready_for_min_ready_seconds() -> None:
    world, hook = ready_for(3000)
    world.change(template=template("nginx:2"))
    assert updated_by_next_sync(world) == [0]
    world.sync()
    later = "2026-01-05T11:00:00Z"
    world.modify(0, lambda pod: running(pod, since=later))
    hook.now = NOW + 10
    answer = world.sync()
    assert updated_by_next_sync(world) == []
    assert answer["resyncAfterSeconds"] == 20
    hook.now = NOW + 31
    assert updated_by_next_sync(world) == [1]


def test_response_does_not_depend_on_the_clock_without_min_ready_seconds() -> None:
    world = settled(replicas=2)
    answers = [world.hook.post("/sync", world.request()).data]
    for world.hook.now in (0.0, 4e9):
        answers.append(world.hook.post("/sync", world.request()).data)
    assert len(set(answers)) == 1


def test_pod_with_an_invalid_ready_time_is_not_available() -> None:
    world = settled(minReadySeconds=5).modify(0, lambda pod: running(pod, since="yesterday"))
    assert world.sync()["status"]["availableReplicas"] == 0


def test_pod_counts_as_unavailable_until_the_cache_shows_its_replacement() -> None:
    """A broken pod was deleted to be replaced, and a stale cache shows that the old pod recovered.

    The budget must not count the old pod as available (promise P2 in docs/guarantees.md).
    """
    world = settled(replicas=3).change(template=template("nginx:2"))
    world.modify(2, crashing)
    world.change(template=NEW)
    answer = world.hook.sync(world.request())
    assert answer["status"]["replacing"] == {"2": world.pod(2)["metadata"]["uid"]}
    world.parent["status"] = answer["status"]
    world.modify(2, running)
    assert updated_by_next_sync(world) == [2]
    world.modify(2, lambda pod: {**pod, "metadata": {**pod["metadata"], "uid": "another"}})
    assert updated_by_next_sync(world) == [0]
