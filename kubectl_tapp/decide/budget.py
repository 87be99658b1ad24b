"""The budgets of a TApp (`maxUnavailable`), as numbers, and as sentences that all commands
print.
"""

from collections import Counter
from dataclasses import dataclass

from kubectl_tapp.base.words import plural
from tapp.decide.evictions import max_evictions
from tapp.decide.rollout import Budget
from tapp.plan import Plan
from tapp.words.kinds import DISRUPTION_BUDGET


@dataclass(frozen=True)
class Limit:
    """One budget of a TApp: how many of its instances may be unavailable at the same time."""

    name: str  # path of the field that holds the budget
    value: int | str  # value of the field: a number or a percentage
    allowed: int | None  # number of instances that may be unavailable; None if the value is invalid
    # number of all instances of the TApp that should run, also of those under other budgets
    should_run: int
    instances: int  # number of the instances to which this budget applies
    problem: str = ""  # why the value is invalid, or an empty string

    @property
    def must_stay_available(self) -> int:
        """The number of instances that must stay available; all instances if the budget is
        invalid.
        """
        return self.should_run if self.allowed is None else max(0, self.should_run - self.allowed)

    def may_become_unavailable(self, serving: int) -> int:
        """Returns how many more instances may become unavailable now.

        `serving` is the number of instances that are available now.
        """
        return max(0, serving - self.must_stay_available)

    @property
    def sentence(self) -> str:
        """A sentence such as `maxUnavailable 25% (1) of 4 instances: 3 must stay available`.

        For an invalid budget, the reason why the value is invalid.
        """
        if self.allowed is None:
            return self.problem
        name = self.name.removeprefix("spec.updateStrategy.")
        value = f"{self.value}" if self.value == self.allowed else f"{self.value} ({self.allowed})"
        must = self.must_stay_available
        keeps = f"{must} must stay available" if must else "none has to stay available"
        return f"{name} {value} of {self.should_run} {plural(self.should_run, 'instance')}: {keeps}"

    def sentence_now(self, serving: int) -> str:
        """Returns the property `sentence`, extended by the present numbers: `...; 3 are available,
        so no other may become unavailable`.

        `serving` is the number of instances that are available now. For an invalid budget, the
        result is the reason why the value is invalid.
        """
        if self.allowed is None:
            return self.problem
        text = f"{serving} {are(serving)} available, so {self.allowance(serving)}"
        return f"{self.sentence}; {text}"

    def allowance(self, serving: int) -> str:
        """Returns a clause that says how many more instances may become unavailable.

        `serving` is the number of instances that are available now.
        """
        count, others = self.may_become_unavailable(serving), serving < self.should_run
        if not count:
            return f"no{' other' if others else ''} instance may become unavailable"
        return f"{count}{' more' if others else ''} may become unavailable"


def are(number: int) -> str:
    """Returns `is` for 1, and `are` for any other number."""
    return "is" if number == 1 else "are"


def max_unavailable_of(budget: Budget) -> int | None:
    """Returns how many instances a budget allows to be unavailable, or None if its value is
    invalid.
    """
    return None if budget.least is None else budget.should_run - budget.least


def eviction_limit(plan: Plan) -> Limit | None:
    """Returns the budget of evictions (`disruptionBudget`).

    Returns None if the spec has no such budget. Also returns None if the operator has not installed
    the component disruption-budgets. Nothing limits evictions then, and a condition of the TApp
    reports that.
    """
    budget, should_run = plan.world.tapp.spec.disruption_budget, plan.budgets.should_run
    if budget is None or DISRUPTION_BUDGET not in plan.world.declared.plain:
        return None
    name, value = "disruptionBudget.maxUnavailable", budget.max_unavailable
    try:
        allowed = max_evictions(budget, should_run)
    except ValueError as error:
        return Limit(name, value, None, should_run, should_run, problem=str(error))
    return Limit(name, value, allowed, should_run, should_run)


def domain_phrase(key: str) -> str:
    """Returns a phrase about updates by failure domain; "" if `key` is empty.

    `key` is `spec.updateStrategy.domain`, the key of the label with the domain.
    """
    return (
        f"one failure domain at a time, by the label {key} (updateStrategy.domain)" if key else ""
    )


def limits(plan: Plan) -> tuple[Limit, Limit]:
    """Returns two budgets: first the budget of the rolling template, then the budget of all other
    templates.

    The rolling template is the one that `updateStrategy.template` names, or else the default
    template. The field of its budget is `updateStrategy.maxUnavailable`. For the other templates it
    is `updateStrategy.forceUpdate.maxUnavailable`.
    """
    budgets, rolling = plan.budgets, plan.world.tapp.spec.rolling_name
    users = Counter(each.template_name == rolling for each in plan.instances if each.should_run)
    first, second = (
        Limit(
            *(each.name, each.value, max_unavailable_of(each), each.should_run, users[is_rolling]),
            problem=each.problem,
        )
        for each, is_rolling in ((budgets.rolling, True), (budgets.force, False))
    )
    return first, second
