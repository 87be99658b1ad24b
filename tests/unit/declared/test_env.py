"""Tests environment variables that are repeated: they are merged with the same meaning, or
refused.
"""

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


def tapp_with_env(entries: list[Document]) -> World:
    """Returns a TApp whose container has these environment variables, after its first sync."""
    world = World(tapp(template=template(container={"env": entries})))
    world.sync()
    return world


KEPT = {
    "last value counts": ([("A", "1"), ("A", "2")], [("A", "2")]),
    "reference to the first value": ([("OPTS", "-a"), ("OPTS", "$(OPTS) -b")], [("OPTS", "-a -b")]),
    "three times": (
        [("OPTS", "-a"), ("OPTS", "$(OPTS) -b"), ("OPTS", "$(OPTS) -c")],
        [("OPTS", "-a -b -c")],
    ),
    "another variable in between": (
        [("A", "1"), ("B", "$(A)"), ("A", "2")],
        [("B", "1"), ("A", "2")],
    ),
    "escaped reference": ([("A", "1"), ("A", "$$(A)")], [("A", "$$(A)")]),
    "reference that envFrom may define": ([("A", "$(A)x"), ("A", "$(A)y")], [("A", "$(A)xy")]),
    "reference to another variable": (
        [("Z", "1"), ("A", "$(Z)"), ("A", "$(A)x")],
        [("Z", "1"), ("A", "$(Z)x")],
    ),
    "empty value": ([("A", {}), ("A", "$(A)x")], [("A", "x")]),
    "unused valueFrom": ([("A", FROM), ("A", "2")], [("A", "2")]),
}


@pytest.mark.parametrize(("given", "expected"), KEPT.values(), ids=KEPT)
def test_repeated_variable_is_merged_with_the_same_meaning(given: Any, expected: Any) -> None:
    assert tapp_with_env(env(*given)).container(0)["env"] == env(*expected)


REFUSED = {
    "valueFrom that a value refers to": [("A", FROM), ("A", "$(A)x")],
    "reference to a later variable": [("A", "$(Z)"), ("Z", "9"), ("A", "$(A)x")],
}


@pytest.mark.parametrize("given", REFUSED.values(), ids=REFUSED)
def test_repeated_variable_that_cannot_be_merged_sets_a_condition(given: Any) -> None:
    world = tapp_with_env(env(*given))
    assert world.pods == {}
    assert world.decisions() == {0: "Absent/Blocked"}
    found = condition(world.sync(), "CreationBlocked")
    assert found is not None
    assert "container 'app': environment variable 'A' is listed twice" in found["message"]


def test_existing_pod_stays_if_its_new_template_has_a_variable_that_cannot_be_merged() -> None:
    world = World(tapp()).settle()
    entries = env(*REFUSED["valueFrom that a value refers to"])
    world.change(template=template(container={"env": entries}))
    assert world.decisions() == {0: "Keep/Blocked"}
    assert condition(world.sync(), "CreationBlocked") is not None


LARGE = "x" * 60_000
EXPLODING = {
    "doubled forty times": [("A", "x" * 10), *[("A", "$(A)$(A)")] * 40],
    "large value in many variables": [
        ("A", LARGE),
        *[(f"B{n}", "$(A)") for n in range(1000)],
        ("A", ""),
    ],
    "many references to a large value": [("A", LARGE), ("B", "$(A)" * 10_000), ("A", "")],
}


@pytest.mark.parametrize("given", EXPLODING.values(), ids=EXPLODING)
def test_values_that_would_become_too_long_are_refused(given: Any) -> None:
    """Repeated variables whose merged values would be huge block the creation of the pod.

    The API server accepts such a template, and the memory of a worker once grew above 8 GB.
    """
    world = tapp_with_env(env(*given))
    assert world.decisions() == {0: "Absent/Blocked"}
    found = condition(world.sync(), "CreationBlocked")
    assert found is not None
    assert "replaced by their values is too long" in found["message"]


def test_length_limit_applies_to_all_containers_together() -> None:
    entries = env(("A", LARGE), ("B", "$(A)"), ("A", ""))
    three = [{"name": name, "image": "a", "env": entries} for name in "abc"]
    world = World(tapp(template=template(container={"env": []}, sidecars=three)))
    assert world.decisions() == {0: "Absent/Blocked"}
    world = World(tapp(template=template(container={"env": []}, sidecars=three[:2])))
    assert world.decisions() == {0: "Create/NoPod"}


VARIABLES = size(20_000, 60_000)
LONG = {
    "references that are not closed": env(("A", "1"), ("A", "$(" * 400_000)),
    "references to unknown variables": env(
        ("A", "".join(f"$(N{n})" for n in range(60_000))), ("A", "$(A)")
    ),
    "many variables": env(*[(f"A{n % (VARIABLES // 2)}", "$(A)") for n in range(VARIABLES)]),
}


@pytest.mark.parametrize("entries", LONG.values(), ids=LONG)
def test_merging_variables_takes_linear_steps(entries: list[Document]) -> None:
    body = as_sent(request(tapp(template=template(container={"env": entries}))))
    assert counted("/sync", body).steps / 1e6 < 1 + STEPS_A_MS * len(body) / 1024
