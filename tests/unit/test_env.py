"""A variable that stands twice: made one with its meaning kept, or refused with a sentence."""

from typing import Any

import pytest

from tests.builders import Document, tapp, template
from tests.unit.world import World, condition

FROM: Document = {"valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}


def env(*entries: tuple[str, Any]) -> list[Document]:
    return [
        {"name": name, **({"value": value} if isinstance(value, str) else value)}
        for name, value in entries
    ]


def created(entries: list[Document]) -> World:
    """A TApp with one such container, after its first sync."""
    world = World(tapp(template=template(container={"env": entries})))
    world.sync()
    return world


KEPT = {
    "the last one wins": ([("A", "1"), ("A", "2")], [("A", "2")]),
    "a value that refers to the first one": (
        [("OPTS", "-a"), ("OPTS", "$(OPTS) -b")],
        [("OPTS", "-a -b")],
    ),
    "three of them": (
        [("OPTS", "-a"), ("OPTS", "$(OPTS) -b"), ("OPTS", "$(OPTS) -c")],
        [("OPTS", "-a -b -c")],
    ),
    "another one between them": (
        [("A", "1"), ("B", "$(A)"), ("A", "2")],
        [("B", "1"), ("A", "2")],
    ),
    "a reference that is none": ([("A", "1"), ("A", "$$(A)")], [("A", "$$(A)")]),
    "what an envFrom may define": ([("A", "$(A)x"), ("A", "$(A)y")], [("A", "$(A)xy")]),
    "a reference to one that stays": (
        [("Z", "1"), ("A", "$(Z)"), ("A", "$(A)x")],
        [("Z", "1"), ("A", "$(Z)x")],
    ),
    "an empty value": ([("A", {}), ("A", "$(A)x")], [("A", "x")]),
    "a valueFrom that nobody needs": ([("A", FROM), ("A", "2")], [("A", "2")]),
}


@pytest.mark.parametrize(("given", "expected"), KEPT.values(), ids=KEPT)
def test_a_variable_that_stands_twice_keeps_its_meaning(given: Any, expected: Any) -> None:
    assert created(env(*given)).container(0)["env"] == env(*expected)


REFUSED = {
    "a valueFrom that a value needs": [("A", FROM), ("A", "$(A)x")],
    "a value that knew less": [("A", "$(Z)"), ("Z", "9"), ("A", "$(A)x")],
}


@pytest.mark.parametrize("given", REFUSED.values(), ids=REFUSED)
def test_what_cannot_be_made_one_is_refused_and_said(given: Any) -> None:
    world = created(env(*given))
    assert world.pods == {}
    assert world.decisions() == {0: "Absent/Blocked"}
    found = condition(world.sync(), "CreationBlocked")
    assert found is not None
    assert "container 'app': env 'A' stands twice" in found["message"]


def test_a_pod_that_is_there_is_left_alone_when_its_new_template_is_refused() -> None:
    world = World(tapp()).settle()
    entries = env(*REFUSED["a valueFrom that a value needs"])
    world.change(template=template(container={"env": entries}))
    assert world.decisions() == {0: "Keep/Blocked"}
    assert condition(world.sync(), "CreationBlocked") is not None
