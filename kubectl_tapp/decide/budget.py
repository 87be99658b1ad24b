"""The arithmetic of the budgets: in numbers, and in the one sentence that every command tells."""

from collections import Counter
from dataclasses import dataclass

from tapp.decide.rollout import Budget
from tapp.plan import Plan


@dataclass(frozen=True)
class Limit:
    """One budget and the instances that it is for."""

    name: str  # where it is written
    value: int | str  # as it is written
    allowed: int | None  # how many may be unavailable; None where the value makes no sense
    should_run: int  # how many instances should run, of both budgets together
    instances: int  # how many of these it is for
    problem: str = ""  # why the value makes no sense, or ""

    @property
    def must_stay(self) -> int:
        """The number that must stay available: all where the value makes no sense."""
        return self.should_run if self.allowed is None else max(0, self.should_run - self.allowed)

    def may_go(self, serving: int) -> int:
        """The number that may still become unavailable where so many serve."""
        return max(0, serving - self.must_stay)

    @property
    def sentence(self) -> str:
        """`maxUnavailable 25% (1) of 4: 3 must stay available`."""
        if self.allowed is None:
            return self.problem
        name = self.name.removeprefix("spec.updateStrategy.")
        value = f"{self.value}" if self.value == self.allowed else f"{self.value} ({self.allowed})"
        return f"{name} {value} of {self.should_run}: {self.must_stay} must stay available"

    def sentence_now(self, serving: int) -> str:
        """The same, with what follows where so many serve: `..., 3 are, so 0 more may go`."""
        if self.allowed is None:
            return self.problem
        more = "more " if serving < self.should_run else ""
        return f"{self.sentence}, {serving} {are(serving)}, so {self.may_go(serving)} {more}may go"


def are(number: int) -> str:
    """`is` for 1, `are` for any other number."""
    return "is" if number == 1 else "are"


def allowed(budget: Budget) -> int | None:
    """The number that a budget allows to be unavailable; None where it makes no sense."""
    return None if budget.least is None else budget.should_run - budget.least


def limits(plan: Plan) -> tuple[Limit, Limit]:
    """The budget of the rolling template, and that of all others."""
    budgets, rolling = plan.budgets, plan.world.tapp.spec.rolling_name
    users = Counter(each.template.name == rolling for each in plan.instances if each.should_run)
    first, second = (
        Limit(
            *(each.name, each.value, allowed(each), each.should_run, users[is_rolling]),
            problem=each.problem,
        )
        for each, is_rolling in ((budgets.rolling, True), (budgets.force, False))
    )
    return first, second
