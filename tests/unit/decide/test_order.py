"""Whose update comes first: the group, the priority, the number."""

from typing import Any

import pytest

from tests.builders import Document, crashing, tapp, template
from tests.unit.world import World, condition, settled

PRIORITY = "apps.tkestack.io/update-priority"


def with_priority(text: Any, image: str = "nginx:2") -> Document:
    """A template that says what the priority of its instances is."""
    body = template(image)
    return {**body, "metadata": {**body.get("metadata", {}), "annotations": {PRIORITY: text}}}


def annotated(text: str) -> Any:
    """A person annotates a pod."""

    def change(pod: Document) -> Document:
        meta = pod["metadata"]
        return {**pod, "metadata": {**meta, "annotations": {**meta["annotations"], PRIORITY: text}}}

    return change


def rolled(world: World) -> list[int]:
    """The instances in the order in which a roll updates them, one at a time."""
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


def roll(replicas: int = 4, pods: dict[int, str] | None = None, **spec: Any) -> World:
    """A roll of all instances that is about to begin."""
    world = settled(replicas=replicas)
    for id, text in (pods or {}).items():
        world.modify(id, annotated(text))
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
)
def test_the_order_of_a_roll(order: str | None, pods: dict[int, str], expected: list[int]) -> None:
    assert rolled(roll(pods=pods, updateStrategy={"order": order})) == expected


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
def test_what_is_no_integer_is_ignored_and_said(text: str) -> None:
    world = roll(pods={3: text})
    found = condition(world.sync(), "InvalidUpdatePriority")
    assert (found is None) == (text == "")
    if found is not None:
        assert "instances 3: " in found["message"]
        assert len(found["message"]) < 250
    assert rolled(roll(pods={3: text})) == [0, 1, 2, 3]


def test_priorities_that_are_none_are_said_while_nothing_rolls_and_harm_nothing() -> None:
    world = settled(replicas=40)
    for id in range(40):
        world.modify(id, annotated(f"high{id}"))
    status = world.sync()["status"]
    message = condition(status, "InvalidUpdatePriority")["message"]  # type: ignore[index]
    assert "and 32 more values" in message
    assert condition(status, "Ready")["status"] == "True"  # type: ignore[index]


def test_a_priority_moves_no_instance_into_the_other_group() -> None:
    """Force group first, whatever the priorities and the order."""
    pool = {"blue": template("blue:1")}
    world = settled(replicas=4, templatePool=pool, templates={"1": "blue", "2": "blue"})
    world.modify(3, annotated("9")).modify(2, annotated("1"))
    strategy = {"order": "Descending", "forceUpdate": {"maxUnavailable": 1}}
    world.change(
        template=template("nginx:2"),
        templatePool={"blue": template("blue:2")},
        updateStrategy=strategy,
    )
    assert rolled(world) == [2, 1, 3, 0]


def test_templates_of_the_force_group_have_priorities() -> None:
    pool = {name: template(f"{name}:1") for name in ("blue", "green")}
    names = {"0": "blue", "1": "green", "2": "blue", "3": "green"}
    world = settled(replicas=4, templatePool=pool, templates=names)
    world.change(
        templatePool={"blue": template("blue:2"), "green": with_priority("3", "green:2")},
        updateStrategy={"forceUpdate": {"maxUnavailable": 1}},
    )
    assert rolled(world) == [1, 3, 0, 2]


def test_a_placeholder_gives_each_instance_its_own() -> None:
    body = with_priority("$(tapp.values.turn)")
    world = settled(replicas=3).change(
        template=body, values={"1": {"turn": "1"}, "2": {"turn": "2"}}, defaultValues={"turn": "0"}
    )
    assert rolled(world) == [2, 1, 0]


def test_the_newest_template_counts_and_not_the_copy_that_pods_have_of_the_last_one() -> None:
    body = with_priority("$(tapp.values.turn)")
    values = {"0": {"turn": "0"}, "1": {"turn": "1"}, "2": {"turn": "2"}}
    world = settled(replicas=3, template=body, values=values)
    values = {"0": {"turn": "0"}, "1": {"turn": "9"}, "2": {"turn": "2"}}
    world.change(template=with_priority("$(tapp.values.turn)", "nginx:3"), values=values)
    assert rolled(world) == [1, 2, 0]
    world.change(template=template("nginx:4"), values=None)
    assert rolled(world) == [0, 1, 2]


def test_a_pod_s_own_counts_before_its_template_s() -> None:
    world = roll(pods={2: "9"}, template=with_priority("5"))
    assert rolled(world) == [2, 0, 1, 3]


def test_it_stays_on_the_pod_through_an_update_in_place() -> None:
    world = roll(pods={2: "9"})
    assert rolled(world) == [2, 0, 1, 3]
    assert world.pod(2)["metadata"]["annotations"][PRIORITY] == "9"
    assert world.settle().writes == []


def test_an_annotation_alone_writes_nothing() -> None:
    world = settled(replicas=2).modify(1, annotated("9"))
    world.sync()
    assert world.writes == []


def test_an_instance_that_is_not_available_waits_for_no_turn() -> None:
    world = settled(replicas=3).modify(0, crashing)
    world.change(template=template("nginx:2"), updateStrategy={"order": "Descending"})
    assert world.decisions() == {
        0: "UpdateInPlace/TemplateChanged",
        1: "Keep/WaitingForBudget",
        2: "Keep/WaitingForBudget",
    }


def test_another_order_is_refused_with_its_path() -> None:
    world = World(tapp(updateStrategy={"order": "descending"}))
    response = world.hook.post("/sync", world.request())
    assert response.status_code == 400
    assert response.json["path"] == "parent.spec.updateStrategy.order"
