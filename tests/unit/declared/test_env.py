"""A variable that stands twice: made one with its meaning kept, or refused with a sentence."""

from typing import Any

import pytest

from tests.builders import Document, as_sent, request, tapp, template
from tests.cost.measure import counted
from tests.cost.promise import STEPS_A_MS
from tests.sizes import size
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
    "another one between them": ([("A", "1"), ("B", "$(A)"), ("A", "2")], [("B", "1"), ("A", "2")]),
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


LARGE = "x" * 60_000
FLOODS = {
    "doubled forty times": [("A", "x" * 10), *[("A", "$(A)$(A)")] * 40],
    "one large value in many others": [
        ("A", LARGE),
        *[(f"B{n}", "$(A)") for n in range(1000)],
        ("A", ""),
    ],
    "many references in one value": [("A", LARGE), ("B", "$(A)" * 10_000), ("A", "")],
}


@pytest.mark.parametrize("given", FLOODS.values(), ids=FLOODS)
def test_a_kilobyte_never_becomes_a_gigabyte(given: Any) -> None:
    """The API server takes it, and a worker grew past 8 GB."""
    world = created(env(*given))
    assert world.decisions() == {0: "Absent/Blocked"}
    found = condition(world.sync(), "CreationBlocked")
    assert found is not None
    assert "replaced by their values is too long" in found["message"]


def test_what_is_folded_counts_for_all_containers_together() -> None:
    entries = env(("A", LARGE), ("B", "$(A)"), ("A", ""))
    three = [{"name": name, "image": "a", "env": entries} for name in "abc"]
    world = World(tapp(template=template(container={"env": []}, sidecars=three)))
    assert world.decisions() == {0: "Absent/Blocked"}
    world = World(tapp(template=template(container={"env": []}, sidecars=three[:2])))
    assert world.decisions() == {0: "Create/NoPod"}


VARIABLES = size(20_000, 60_000)
LONG = {
    "references without an end": env(("A", "1"), ("A", "$(" * 400_000)),
    "references to nothing": env(("A", "".join(f"$(N{n})" for n in range(60_000))), ("A", "$(A)")),
    "many variables": env(*[(f"A{n % (VARIABLES // 2)}", "$(A)") for n in range(VARIABLES)]),
}


@pytest.mark.parametrize("entries", LONG.values(), ids=LONG)
def test_folding_takes_steps_in_proportion_to_what_is_written(entries: list[Document]) -> None:
    body = as_sent(request(tapp(template=template(container={"env": entries}))))
    assert counted("/sync", body).steps / 1e6 < 1 + STEPS_A_MS * len(body) / 1024
