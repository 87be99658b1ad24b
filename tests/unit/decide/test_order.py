"""Tests the order in which a rollout updates instances: by group, then by priority, then by
number.
"""

from typing import Any

import pytest

from tests.builders import Document, crashing, tapp, template
from tests.unit.decide.pods import annotated
from tests.unit.world import World, condition, settled

PRIORITY = "apps.tkestack.io/update-priority"


def with_priority(text: Any, image: str = "nginx:2") -> Document:
    """Returns a template with this image whose annotation sets the update priority of its
    instances.
    """
    body = template(image)
    return {**body, "metadata": {**body.get("metadata", {}), "annotations": {PRIORITY: text}}}


def update_order(world: World) -> list[int]:
    """Plays a rollout with a budget of one; returns the instances in the order in which they are
    updated.
    """
    done: list[int] = []
    for _ in range(40):
        plan = world.hook.answer("/plan", world.request())["instances"]
        begins = [item["id"] for item in plan if item["action"] in ("UpdateInPlace", "Recreate")]
        assert len(begins) <= 1
        done += begins
        world.sync()
        if not begins and not world.writes:
            break
        world.kubelet()
    return done


def about_to_roll_out(replicas: int = 4, pods: dict[int, str] | None = None, **spec: Any) -> World:
    """Returns a TApp whose rollout of all instances is about to start.

    `pods` maps instance numbers to the update priorities of their pods; None for none.
    """
    world = settled(replicas=replicas)
    for id, text in (pods or {}).items():
        world.modify(id, annotated(PRIORITY, text))
    return world.change(**{"template": template("nginx:2"), **spec})


@pytest.mark.parametrize(
    ("order", "pods", "expected"),
    [
        (None, {}, [0, 1, 2, 3]),
        ("Ascending", {}, [0, 1, 2, 3]),
        ("Descending", {}, [3, 2, 1, 0]),
        (None, {2: "1"}, [2, 0, 1, 3]),
        (None, {0: "-1"}, [1, 2, 3, 0]),
        (None, {1: "5", 3: "+7"}, [3, 1, 0, 2]),
        (None, {1: "1", 3: "1"}, [1, 3, 0, 2]),
        ("Descending", {1: "1", 3: "1"}, [3, 1, 2, 0]),
        (None, {3: "0010", 2: "9"}, [3, 2, 0, 1]),
        (None, {3: "999999999", 2: "-999999999"}, [3, 0, 1, 2]),
    ],
    ids=[
        "default",
        "ascending",
        "descending",
        "one higher priority",
        "one lower priority",
        "two priorities",
        "equal priorities ascending",
        "equal priorities descending",
        "leading zeros",
        "largest and smallest",
    ],
)
def test_instances_are_updated_by_priority_and_then_by_number(
    order: str | None, pods: dict[int, str], expected: list[int]
) -> None:
    assert update_order(about_to_roll_out(pods=pods, updateStrategy={"order": order})) == expected


NO_INTEGERS = [
    "",
    "x",
    "1.5",
    "1e3",
    "0x10",
    " 1",
    "1 ",
    "1\n",
    "--1",
    "1234567890",
    "9" * 5000,
    "\u0661",
]


@pytest.mark.parametrize("text", NO_INTEGERS, ids=lambda text: ascii(text)[:12])
def test_priority_that_is_no_integer_is_ignored_and_sets_a_condition(text: str) -> None:
    world = about_to_roll_out(pods={3: text})
    found = condition(world.sync(), "InvalidUpdatePriority")
    assert (found is None) == (text == "")
    if found is not None:
        assert "instance 3: " in found["message"]
        assert len(found["message"]) < 250
    assert update_order(about_to_roll_out(pods={3: text})) == [0, 1, 2, 3]


def test_invalid_priorities_set_a_condition_without_a_rollout_and_the_tapp_stays_ready() -> None:
    world = settled(replicas=40)
    for id in range(40):
        world.modify(id, annotated(PRIORITY, f"high{id}"))
    status = world.sync()["status"]
    message = condition(status, "InvalidUpdatePriority")["message"]  # type: ignore[index]
    assert "and 32 more values" in message
    assert condition(status, "Ready")["status"] == "True"  # type: ignore[index]


def test_force_group_is_updated_before_higher_priorities_of_the_rolling_group() -> None:
    pool = {"blue": template("blue:1")}
    world = settled(replicas=4, templatePool=pool, templates={"1": "blue", "2": "blue"})
    world.modify(3, annotated(PRIORITY, "9")).modify(2, annotated(PRIORITY, "1"))
    strategy = {"order": "Descending", "forceUpdate": {"maxUnavailable": 1}}
    world.change(
        template=template("nginx:2"),
        templatePool={"blue": template("blue:2")},
        updateStrategy=strategy,
    )
    assert update_order(world) == [2, 1, 3, 0]


def test_priority_of_a_pool_template_orders_the_force_group() -> None:
    pool = {name: template(f"{name}:1") for name in ("blue", "green")}
    names = {"0": "blue", "1": "green", "2": "blue", "3": "green"}
    world = settled(replicas=4, templatePool=pool, templates=names)
    world.change(
        templatePool={"blue": template("blue:2"), "green": with_priority("3", "green:2")},
        updateStrategy={"forceUpdate": {"maxUnavailable": 1}},
    )
    assert update_order(world) == [1, 3, 0, 2]


def test_priority_can_come_from_a_placeholder() -> None:
    body = with_priority("$(tapp.values.turn)")
    world = settled(replicas=3).change(
        template=body, values={"1": {"turn": "1"}, "2": {"turn": "2"}}, defaultValues={"turn": "0"}
    )
    assert update_order(world) == [2, 1, 0]


def test_priority_of_the_new_template_is_used_instead_of_the_old_one() -> None:
    body = with_priority("$(tapp.values.turn)")
    values = {"0": {"turn": "0"}, "1": {"turn": "1"}, "2": {"turn": "2"}}
    world = settled(replicas=3, template=body, values=values)
    values = {"0": {"turn": "0"}, "1": {"turn": "9"}, "2": {"turn": "2"}}
    world.change(template=with_priority("$(tapp.values.turn)", "nginx:3"), values=values)
    assert update_order(world) == [1, 2, 0]
    world.change(template=template("nginx:4"), values=None)
    assert update_order(world) == [0, 1, 2]


def test_priority_of_the_pod_is_used_before_that_of_its_template() -> None:
    world = about_to_roll_out(pods={2: "9"}, template=with_priority("5"))
    assert update_order(world) == [2, 0, 1, 3]


def test_priority_annotation_of_a_pod_stays_after_an_update_in_place() -> None:
    world = about_to_roll_out(pods={2: "9"})
    assert update_order(world) == [2, 0, 1, 3]
    assert world.pod(2)["metadata"]["annotations"][PRIORITY] == "9"
    assert world.settle().writes == []


def test_priority_annotation_without_a_rollout_causes_no_write() -> None:
    world = settled(replicas=2).modify(1, annotated(PRIORITY, "9"))
    world.sync()
    assert world.writes == []


def test_unavailable_instance_is_updated_first_in_any_order() -> None:
    world = settled(replicas=3).modify(0, crashing)
    world.change(template=template("nginx:2"), updateStrategy={"order": "Descending"})
    assert world.decisions() == {
        0: "UpdateInPlace/TemplateChanged",
        1: "Keep/WaitingForBudget",
        2: "Keep/WaitingForBudget",
    }


def test_unknown_order_is_refused_with_its_field_path() -> None:
    world = World(tapp(updateStrategy={"order": "descending"}))
    response = world.hook.post("/sync", world.request())
    assert response.status_code == 400
    assert response.json["path"] == "parent.spec.updateStrategy.order"
