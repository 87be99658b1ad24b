"""Nothing that a tenant writes costs more than docs/promises.md says, whatever the field.

`make test` measures some cases, `make full` each shape of a field in one world, `make cost` all.
"""

import re
from pathlib import Path

import pytest

from tapp.declared.model import TAppSpec
from tapp.declared.observed import ObservedStatus
from tests.cost import cases, promise
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
"""What one tenant once silenced all others with, each with 60 KB to 900 KB."""
SOME = some_cases() if FULL else some_cases()[::400]
LARGEST = cases.SIZES[size(-2, -1)]


@pytest.mark.parametrize("known", KNOWN.values(), ids=KNOWN)
def test_what_once_cost_too_much_costs_little(known: Case) -> None:
    """36 s of CPU, 1.2 GB, 10 ms an instance, 1 GB, and 1.5 GB, before."""
    assert not list(findings(known, LARGEST))


@pytest.mark.parametrize("some", SOME, ids=str)
def test_no_field_costs_more_than_is_promised(some: Case) -> None:
    """CPU and memory grow with the request and the pods that are asked for, and stop."""
    assert not list(findings(some, LARGEST))


@pytest.mark.parametrize("known", KNOWN.values(), ids=KNOWN)
def test_the_memo_counts_what_is_held(known: Case) -> None:
    """Whatever the field: a worker takes no more than `TAPP_MEMO_BYTES` says."""
    assert not not_counted(known, cases.SIZES[size(0, 1)])


def test_every_field_of_the_models_is_measured() -> None:
    """A field that is new is measured, or this fails."""
    tops = {field.path[0] for field in BY_NAME.values() if field.where == "spec"}
    assert tops == {field.alias for field in TAppSpec.model_fields.values()}
    noted = {field.path[0] for field in BY_NAME.values() if field.where == "status"}
    assert noted == {field.alias for field in ObservedStatus.model_fields.values()}
    assert len(BY_NAME) > 240


CURVES = {
    "as the request and the pods": ([20, 40, 80, 160], []),
    "little, however steep": ([1, 4, 16, 64], []),
    "as their product": ([10, 40, 160, 640], ["grows too fast"]),
    "much, however even": ([3_000, 3_000, 3_000, 3_000], ["at most"]),
    "up to where it stops": ([200, 700, 800, 800], []),
}


@pytest.mark.parametrize(("curve", "said"), CURVES.values(), ids=CURVES)
def test_curves_are_judged(
    curve: list[float], said: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of CPU and of memory alike."""

    def cost(_case: Case, times: int, **_: object) -> Cost:
        ms = curve[cases.SIZES.index(times)]
        return Cost(kb=10 * times, pods=50 * times, ms=ms, peak=ms / 6, code=200)

    monkeypatch.setattr(Case, "cost", cost)
    found = list(findings(KNOWN["many small placeholders"]))
    assert len(found) >= len(said)
    assert all(said[0] in text for text in found) if said else not found


def test_the_promise_is_what_is_tested() -> None:
    """The figures of docs/promises.md are those of the test."""
    rows = re.findall(r"\| (?:CPU|memory) \|(.*)\|", PROMISES.read_text())
    figures = [float(found) for row in rows for found in re.findall(r"[\d.]+", row)]
    assert figures == [
        *(promise.MS_PER_KB, promise.MS_PER_POD, promise.MS_AT_MOST),
        *(promise.MB_PER_KB * 1000, promise.MB_PER_POD * 1000, promise.MB_AT_MOST),
    ]
