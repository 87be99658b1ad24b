"""Measures whether a sync stays within the limits of docs/promises.md for every field.

`make test` measures some cases, `make full` each shape of a field in one world, `make cost` all.
"""

import re
from pathlib import Path

import pytest

from tapp.declared.model import TAppSpec
from tapp.declared.observed import ObservedStatus
from tests.cost import cases, promise, worlds
from tests.cost.cases import Case, findings, not_counted, some_cases
from tests.cost.fields import every_field
from tests.cost.measure import Cost
from tests.sizes import FULL, size

BY_NAME = {str(field): field for field in every_field()}
PROMISES = Path(__file__).parents[2] / "docs" / "promises.md"


def case(name: str, shape: str, world: str) -> Case:
    return Case(BY_NAME[name], shape, world)


IMAGE, LIMITS = "spec.template.spec.containers.image", "spec.template.spec.containers.resources"
NOTES = "spec.template.metadata.annotations"
KNOWN = {
    "a quantity that ends wrongly": case(LIMITS, "digits and a placeholder", "created"),
    "values of all in the record of each template": case("spec.neverMigrate", "long", "pooled"),
    "many small placeholders": case(NOTES, "placeholders", "created"),
    "a long key whose value is missing": case(NOTES, "a missing value under a long key", "created"),
    "a long image on many nodes": case(IMAGE, "long", "updated"),
}
"""Requests of 60 KB to 900 KB with which a single tenant once blocked all others."""
SOME = some_cases() if FULL else some_cases()[::400]
LARGEST = cases.SIZES[size(1, -1)]


@pytest.mark.parametrize("known", KNOWN.values(), ids=KNOWN)
def test_what_once_cost_too_much_costs_little(known: Case) -> None:
    """Before the fixes these cost 36 s of CPU, 1.2 GB, 10 ms an instance, 1 GB and 1.5 GB."""
    assert not list(findings(known, LARGEST))


@pytest.mark.parametrize("some", SOME, ids=str)
def test_no_field_costs_more_than_is_promised(some: Case) -> None:
    """CPU and memory grow with the request and its pods, up to a fixed limit."""
    assert not list(findings(some, LARGEST))


GROWING = {
    "pods to create": ("created", "PODS", 100),
    "pods to update": ("updated", "PODS", 100),
    "pods of a TApp that ends": ("ended", "PODS", 100),
    "instances that are kept": ("recorded", "PODS", 100),
    "templates": ("pooled", "TEMPLATES", 60),
    "revisions": ("recorded", "REVISIONS", 20),
    "annotations of pods to create": ("created", "BYTES", 10_000),
    "annotations of pods to update": ("updated", "BYTES", 10_000),
    "annotations of recorded templates": ("recorded", "BYTES", 10_000),
}
"""For each number that grows alone: the world, the constant in `tests/cost/worlds.py`, and its
smallest value.
"""
BENT = 1.004
"""Tolerance for the added steps at twice the number. A quadratic part would double them again."""


@pytest.mark.parametrize("what", GROWING.values(), ids=GROWING)
def test_twice_as_many_add_twice_as_many_steps(
    what: tuple[str, str, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Counted steps are exact, so a quadratic part shows long before it dominates the cost."""
    world, number, least = what
    steps = []
    for times in (1, 2, 4):
        monkeypatch.setattr(worlds, number, least * times)
        steps.append(case(NOTES, "many", world).cost(1).steps)
    assert steps[2] - steps[1] <= BENT * 2 * (steps[1] - steps[0]) + 0.001, steps


@pytest.mark.parametrize("known", KNOWN.values(), ids=KNOWN)
def test_the_memo_counts_what_is_held(known: Case) -> None:
    """A worker's memory stays below `TAPP_MEMO_BYTES` only if the memo counts all that it keeps."""
    assert not not_counted(known, cases.SIZES[size(0, 1)])


def test_every_field_of_the_models_is_measured() -> None:
    """A new field that nobody measures could cost any amount."""
    tops = {field.path[0] for field in BY_NAME.values() if field.where == "spec"}
    assert tops == {field.alias for field in TAppSpec.model_fields.values()}
    noted = {field.path[0] for field in BY_NAME.values() if field.where == "status"}
    assert noted == {field.alias for field in ObservedStatus.model_fields.values()}
    assert len(BY_NAME) > 240


CURVES = {
    "as the request and the pods": ([2, 4, 8, 16], []),
    "little, however steep": ([0.005, 0.02, 0.1, 0.4], []),
    "as their product": ([0.1, 0.4, 2, 8], ["too fast"]),
    "much, however even": ([150, 150, 150, 150], ["at most"]),
    "up to where it stops": ([2, 7, 8, 8], []),
}


@pytest.mark.parametrize(("curve", "said"), CURVES.values(), ids=CURVES)
def test_curves_are_judged(
    curve: list[float], said: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Curves of CPU and of memory are judged by the same rule."""

    def cost(_case: Case, times: int, **_: object) -> Cost:
        steps = curve[cases.SIZES.index(times)]
        return Cost(kb=10 * times, pods=50 * times, steps=steps, peak=steps * 2, code=200)

    monkeypatch.setattr(Case, "cost", cost)
    found = list(findings(KNOWN["many small placeholders"]))
    assert len(found) >= len(said)
    assert all(said[0] in text for text in found) if said else not found


def test_the_promise_is_what_is_tested() -> None:
    """The limits in docs/promises.md are the limits of these tests."""
    rows = re.findall(r"\| (?:CPU|memory) \|(.*)\|", PROMISES.read_text())
    figures = [float(found) for row in rows for found in re.findall(r"[\d.]+", row)]
    assert figures == [
        *(promise.MS_PER_KB, promise.MS_PER_POD, promise.MS_AT_MOST),
        *(promise.MB_PER_KB * 1000, promise.MB_PER_POD * 1000, promise.MB_AT_MOST),
    ]
