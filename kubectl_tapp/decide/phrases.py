"""Phrases about a look: for how long, where, and the arithmetic of a budget."""

from collections.abc import Iterable

from kubectl_tapp.base.words import age, plural
from kubectl_tapp.decide.look import Look, Row
from tapp.decide.rollout import Budget
from tapp.words.ranges import some


def span(rows: Iterable[Row], now: float) -> str:
    """For how long these rows have been as they are: an age, or the shortest and the longest."""
    ages = sorted(now - row.since for row in rows if row.since is not None)
    if not ages:
        return ""
    first, last = age(ages[0]), age(ages[-1])
    return first if first == last else f"{first}..{last}"


def places(rows: Iterable[Row]) -> str:
    """The node of these rows, or how many there are."""
    nodes = {row.node for row in rows if row.node}
    return next(iter(nodes), "") if len(nodes) <= 1 else f"{len(nodes)} nodes"


def budget(look: Look) -> list[str]:
    """The arithmetic of the budgets, a line each: who should run, who does, how many may go."""
    plan = look.plan
    should = plan.budgets.should_run
    unavailable = [i.id for i in plan.instances if i.should_run and i.id not in plan.available]
    text = f"{should} should run, {len(plan.available)} {_are(len(plan.available))} available"
    text += f" (not {some(unavailable)})" if unavailable else ""
    text += f", updated now: {some(look.taken)}" if look.taken else ""
    if plan.budgets.strategy.paused:
        text += "; updates are paused"
    spec = plan.world.tapp.spec
    names = {i.template.name for i in plan.instances if i.should_run}
    left = len(plan.available - set(look.taken))
    lines = [text]
    if spec.rolling_name in names or not names:
        lines.append(f"template {spec.rolling_name}: {_arithmetic(plan.budgets.rolling, left)}")
    others = sorted(names - {spec.rolling_name})
    if others:
        shown = ", ".join(others[:_SHOWN]) + (", ..." if len(others) > _SHOWN else "")
        word = plural(len(others), "template")
        lines.append(f"{word} {shown}: {_arithmetic(plan.budgets.force, left)}")
    return lines


def budget_block(look: Look) -> list[str]:
    """The same below whatever else is shown, after a blank line."""
    first, *rest = budget(look)
    return ["", f"budget: {first}", *(f"  {line}" for line in rest)]


def refused_block(look: Look) -> list[str]:
    """All that is refused or ignored and was not said yet, after a blank line."""
    found = [f"{each.type}: {each.message}" for each in look.refused_beyond]
    return ["", *found] if found else []


_SHOWN = 4


def _arithmetic(budget: Budget, left: int) -> str:
    name = budget.name.removeprefix("spec.updateStrategy.")
    if budget.least is None:
        return budget.problem
    most = budget.should_run - budget.least
    value = f"{budget.value}" + (f" ({most})" if str(most) != str(budget.value) else "")
    must, more = max(0, budget.least), max(0, left - max(0, budget.least))
    return (
        f"{name} {value} of {budget.should_run}: {must} must stay available, {left} "
        f"{_are(left)}, so {more} {'more ' if left < budget.should_run else ''}may go"
    )


def _are(number: int) -> str:
    return "is" if number == 1 else "are"
