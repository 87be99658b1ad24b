"""Combines fields, shapes and worlds into cases, and judges how the cost of each case grows.

A shape is the rule for a field's value (`shapes.py`), and a world is the rest of the request
(`worlds.py`). `findings` measures a case at growing sizes and reports costs that are too high.
"""

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
"""Millions of steps, and MB of memory, below which the growth of a cost is not judged."""
STEEPEST: Final = 3.7
"""Maximum ratio of the cost of the largest size to the cost of half that size.

Quadratic growth gives 4.
"""
HELD_FLOOR: Final = 1.0
"""MB that a call may leave allocated although the service's memo does not count them."""
_SHAPES_OF_NAMES: Final = (
    "long",
    "digits",
    "unicode",
    "a percentage with zeros",
    "a missing value",
)


class Case(NamedTuple):
    """A measurement: a field, the shape of its value, and the world, which is the rest of the
    request.

    Attributes:
        field: the place in the request that gets the value.
        shape: a key of `SHAPES`: the rule for the value.
        world: a key of `WORLDS`: the function that builds the rest of the request.
    """

    field: Field
    shape: str
    world: str

    def __str__(self) -> str:
        return f"{self.field}, {self.shape}, {self.world}"

    def cost(self, size: int, *, trace: bool = False) -> Cost:
        """Measures the case at a size, which is a factor for the value's length and the numbers of
        objects.

        If `trace` is True, the memory that stays allocated after the call is measured as well.
        """
        making = partial(WORLDS[self.world], self.field, SHAPES[self.shape], size)
        return cost_of(making, trace=trace)


def every_case() -> list[Case]:
    """Returns each combination of a field with the shapes and worlds that suit the field; there are
    thousands.
    """
    return [
        Case(field, shape, world)
        for field in every_field()
        for shape in _shapes(field)
        for world in _worlds(field)
    ]


def some_cases() -> list[Case]:
    """Returns one case for each field and shape, and takes the worlds in turn."""
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
        return list(_SHAPES_OF_NAMES)
    return list(SHAPES)


def _worlds(field: Field) -> list[str]:
    if field.where in ("status", "pod", "tapp"):
        return ["updated", "ended"]
    inner = field.path[0] == "template" or field.where == "template"
    return [*(["pooled", "recorded"] if inner else []), "created", "updated"]


def findings(case: Case, top: int = SIZES[-1]) -> Iterator[str]:
    """Yields a sentence with figures for each reason why the cost of a case is too high.

    The case is measured at the size `top` and, if needed, at smaller sizes.
    """
    largest = case.cost(top)
    if largest.code not in _EXPECTED_CODES:
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


_EXPECTED_CODES: Final = (200, 400, 413, 503)


def not_counted(case: Case, size: int = SIZES[1]) -> str:
    """Returns a sentence if a call leaves memory allocated that the service's memo does not count,
    otherwise "".

    The memo caches parsed documents between calls, and its limit holds only for memory that it
    counts. `size` is the size at which the case is measured.
    """
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
