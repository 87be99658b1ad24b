"""Measures whether a sync stays within the limits of docs/guarantees.md for every field of a TApp.

A case is a field with a shape of its value, in a world, which is the rest of the request. `make
test` measures some cases, `make full` each shape of a field in one world, `make cost` all.
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
PROMISES = Path(__file__).parents[2] / "docs" / "guarantees.md"


def case(name: str, shape: str, world: str) -> Case:
    return Case(BY_NAME[name], shape, world)


IMAGE, LIMITS = "spec.template.spec.containers.image", "spec.template.spec.containers.resources"
NOTES = "spec.template.metadata.annotations"
KNOWN = {
    "a quantity with an invalid suffix": case(LIMITS, "digits and a placeholder", "created"),
    "all values in the revision of each template": case("spec.neverMigrate", "long", "pooled"),
    "many small placeholders": case(NOTES, "placeholders", "created"),
    "a long key whose value is missing": case(NOTES, "a missing value under a long key", "created"),
    "a long image on many nodes": case(IMAGE, "long", "updated"),
}
"""Requests of 60 KB to 900 KB with which a single tenant once blocked all others."""
SOME = some_cases() if FULL else some_cases()[::400]
LARGEST = cases.SIZES[size(1, -1)]


@pytest.mark.parametrize("known", KNOWN.values(), ids=KNOWN)
def test_request_that_once_cost_too_much_stays_within_the_limits(known: Case) -> None:
    """Measures again the requests that were too expensive before fixes of the service.

    Before the fixes they took 36 s of CPU, 1.2 GB, 10 ms for each instance, 1 GB and 1.5 GB.
    """
    assert not list(findings(known, LARGEST))


@pytest.mark.parametrize("some", SOME, ids=str)
def test_sync_costs_no_more_than_promised_for_any_field(some: Case) -> None:
    """CPU and memory grow at most linearly with the request and its pods, up to a fixed limit."""
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
TOLERANCE = 1.004
"""Tolerance for the added steps at twice the number. A quadratic part would double them again."""


@pytest.mark.parametrize("growth", GROWING.values(), ids=GROWING)
def test_added_steps_double_if_the_number_of_objects_doubles(
    growth: tuple[str, str, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Measures a sync with one, two and four times as many pods, templates, revisions or bytes.

    Counted steps are exact, so a quadratic part is found long before it dominates the cost.
    """
    world, number, least = growth
    steps = []
    for times in (1, 2, 4):
        monkeypatch.setattr(worlds, number, least * times)
        steps.append(case(NOTES, "many", world).cost(1).steps)
    assert steps[2] - steps[1] <= TOLERANCE * 2 * (steps[1] - steps[0]) + 0.001, steps


@pytest.mark.parametrize("known", KNOWN.values(), ids=KNOWN)
def test_memo_counts_all_memory_that_stays_allocated(known: Case) -> None:
    """Compares the memory that a call leaves allocated with the memory that the memo counts.

    A worker's memory stays below `TAPP_MEMO_BYTES` only if the memo counts all that it keeps.
    """
    assert not not_counted(known, cases.SIZES[size(0, 1)])


def test_cases_include_every_field_of_the_models() -> None:
    """Compares the fields of the models with the measured fields, because a new field could cost
    any amount.
    """
    tops = {field.path[0] for field in BY_NAME.values() if field.where == "spec"}
    assert tops == {field.alias for field in TAppSpec.model_fields.values()}
    noted = {field.path[0] for field in BY_NAME.values() if field.where == "status"}
    assert noted == {field.alias for field in ObservedStatus.model_fields.values()}
    assert len(BY_NAME) > 240


CURVES = {
    "linear growth": ([2, 4, 8, 16], []),
    "steep growth below the floor": ([0.005, 0.02, 0.1, 0.4], []),
    "quadratic growth": ([0.1, 0.4, 2, 8], ["too fast"]),
    "constant cost above the limit": ([150, 150, 150, 150], ["at most"]),
    "growth up to a bound": ([2, 7, 8, 8], []),
}


@pytest.mark.parametrize(("curve", "expected"), CURVES.values(), ids=CURVES)
def test_findings_name_a_curve_that_is_too_steep_or_too_high(
    curve: list[float], expected: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Replaces the measured costs by given curves, which hold for steps and, doubled, for
    memory.
    """

    def cost(_case: Case, times: int, **_: object) -> Cost:
        steps = curve[cases.SIZES.index(times)]
        return Cost(kb=10 * times, pods=50 * times, steps=steps, peak=steps * 2, code=200)

    monkeypatch.setattr(Case, "cost", cost)
    found = list(findings(KNOWN["many small placeholders"]))
    assert len(found) >= len(expected)
    assert all(expected[0] in text for text in found) if expected else not found


def test_promised_limits_are_the_tested_limits() -> None:
    """Compares the figures in the tables of docs/guarantees.md with the limits in `promise.py`."""
    rows = re.findall(r"\| (?:CPU|memory) \|(.*)\|", PROMISES.read_text())
    figures = [float(found) for row in rows for found in re.findall(r"[\d.]+", row)]
    assert figures == [
        *(promise.MS_PER_KB, promise.MS_PER_POD, promise.MS_AT_MOST),
        *(promise.MB_PER_KB * 1000, promise.MB_PER_POD * 1000, promise.MB_AT_MOST),
    ]
