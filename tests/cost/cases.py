"""Which field is measured in which shape and world, and how a cost is judged."""

from collections.abc import Iterator
from functools import partial
from typing import Final, NamedTuple

from tests.cost.fields import Field, every_field
from tests.cost.measure import Cost, cost_of
from tests.cost.promise import mb_at_most, steps_at_most
from tests.cost.shapes import SHAPES
from tests.cost.worlds import WORLDS

SIZES: Final = (1, 2, 4, 8)
STEPS_FLOOR, MB_FLOOR = 0.5, 8.0
"""Below these no curve is judged."""
STEEPEST: Final = 3.7
"""How many times more the largest size may cost than half of it; four times is a square."""
HELD_FLOOR: Final = 1.0
_OF_NAMES: Final = ("long", "digits", "unicode", "a percentage with zeros", "a missing value")


class Case(NamedTuple):
    """What is measured: a field, in a shape, in a world."""

    field: Field
    shape: str
    world: str

    def __str__(self) -> str:
        return f"{self.field}, {self.shape}, {self.world}"

    def cost(self, size: int, *, trace: bool = False) -> Cost:
        """Its cost at a size."""
        making = partial(WORLDS[self.world], self.field, SHAPES[self.shape], size)
        return cost_of(making, trace=trace)


def every_case() -> list[Case]:
    """All of them: thousands."""
    return [
        Case(field, shape, world)
        for field in every_field()
        for shape in _shapes(field)
        for world in _worlds(field)
    ]


def some_cases() -> list[Case]:
    """Each field in each shape, in one world after the other."""
    found = []
    for field in every_field():
        worlds = _worlds(field)
        for number, shape in enumerate(_shapes(field)):
            found.append(Case(field, shape, worlds[(len(found) + number) % len(worlds)]))
    return found


def _shapes(field: Field) -> list[str]:
    if field.schema.get("type") in ("boolean", "integer", "number") or "enum" in field.schema:
        return ["long"]
    if field.where not in ("spec", "status"):
        return list(_OF_NAMES)
    return list(SHAPES)


def _worlds(field: Field) -> list[str]:
    if field.where in ("status", "pod", "tapp"):
        return ["updated", "ended"]
    inner = field.path[0] == "template" or field.where == "template"
    return [*(["pooled", "recorded"] if inner else []), "created", "updated"]


def findings(case: Case, top: int = SIZES[-1]) -> Iterator[str]:
    """What is wrong with the cost of a case up to a size, each with its figures."""
    largest = case.cost(top)
    if largest.code not in _ANSWERS:
        yield f"{case}: given up, or answered {largest.code}: {largest}"
        return
    suspicious = largest.steps > STEPS_FLOOR or largest.peak > MB_FLOOR
    half = case.cost(top // 2) if suspicious else largest
    most = steps_at_most(largest.kb, largest.pods)
    if largest.steps > most:
        yield f"{case}: {largest.steps:.1f} million steps, {most:.1f} at most: {_curve(case, top)}"
    elif largest.steps > STEPS_FLOOR and largest.steps > STEEPEST * half.steps:
        yield f"{case}: steps grow too fast: {_curve(case, top)}"
    most = mb_at_most(largest.kb, largest.pods)
    if largest.peak > most:
        yield f"{case}: {largest.peak:.0f} MB, {most:.0f} at most: {_curve(case, top)}"
    elif largest.peak > MB_FLOOR and largest.peak > STEEPEST * half.peak:
        yield f"{case}: memory grows too fast: {_curve(case, top)}"


_ANSWERS: Final = (200, 400, 413, 503)


def not_counted(case: Case, size: int = SIZES[1]) -> str:
    """What is held after a call beyond what the memo says, "" where that is next to nothing."""
    cost = case.cost(size, trace=True)
    return (
        f"{case}: {cost.held:.1f} MB are held that do not count" if cost.held > HELD_FLOOR else ""
    )


def _curve(case: Case, top: int) -> str:
    costs = [case.cost(size) for size in SIZES if size <= top]
    return "; ".join(
        f"{cost.kb:.0f} KB, {cost.pods} pods: {cost.steps:.1f} million steps, {cost.peak:.0f} MB, "
        f"{cost.answer:.0f} KB out"
        for cost in costs
    )
