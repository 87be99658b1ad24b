"""Spends the budget: which updates happen now, and what the others wait for.

docs/design.md, "The budget". Only here instances are weighed against each other.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from math import ceil

from tapp.decide.instances import Instance
from tapp.decide.judge import DISRUPTIVE, Verdict, wait
from tapp.decide.serving import Serving
from tapp.declared.model import TAppSpec
from tapp.declared.policies import UpdateStrategy
from tapp.declared.templates import Template
from tapp.words.digits import percent
from tapp.words.quoted import quoted, short
from tapp.words.reasons import Reason
from tapp.words.vocabulary import UPDATE_PRIORITY

FULL = 100

BUDGET_REASONS = (Reason.WAITING_FOR_BUDGET, Reason.SPEC_JUST_CHANGED)
"""Reasons of updates that are held back and will go ahead by themselves."""
DELAYED = (*BUDGET_REASONS, Reason.DRAINING)  # Updates that are due, and will happen


def portion(value: int | str, of: int, least: int) -> int:
    """Resolves a number of instances, or a percentage of `of`, which is rounded up.

    Raises ValueError: it is neither, or lower than `least`, which holds for a percentage as well.
    """
    if isinstance(value, int):
        if value >= least:
            return value
    elif (share := percent(value)) is not None and least <= share <= FULL:
        return ceil(of * share / FULL)
    what = f"a number from {least} nor a percentage from {least}% to 100%"
    raise ValueError(f"{quoted(value)} is neither {what}")


@dataclass
class Budget:
    """One group's budget."""

    name: str  # where it is written, for messages
    value: int | str  # as it is written, no longer than a sentence takes
    should_run: int
    least: int | None = field(init=False)  # must stay available; None where the value is nonsense
    problem: str = field(init=False, default="")  # why it makes no sense, or ""

    def __post_init__(self) -> None:
        """Resolves the value against the number of instances that should run."""
        value, self.value = (
            self.value,
            short(self.value) if isinstance(self.value, str) else self.value,
        )
        try:
            self.least = self.should_run - portion(value, self.should_run, 1)
        except ValueError as error:
            self.least, self.problem = None, f"{self.name}: {error}"


@dataclass
class Budgets:
    """The budgets of the instances on the rolling template and of all others.

    Where nobody runs the rolling template, all are "others": what was meant for a few would hold
    for everybody. A name that leads nowhere must not widen a budget: the stricter one holds. A
    template that is there counts as meant; but then the others' budget has to be written, and its
    default of 100% does not hold.
    """

    strategy: UpdateStrategy
    should_run: int
    rolling_found: bool = True  # whether the rolling template is there
    rolling_used: bool = True  # whether an instance that should run is to run it
    rolling: Budget = field(init=False)
    force: Budget = field(init=False)

    def __post_init__(self) -> None:
        """Resolves both."""
        path = "spec.updateStrategy"
        self.rolling = Budget(
            f"{path}.maxUnavailable", self.strategy.max_unavailable, self.should_run
        )
        force = self.strategy.force_update
        self.force = Budget(
            f"{path}.forceUpdate.maxUnavailable", force.max_unavailable, self.should_run
        )
        if self.rolling_used:
            return
        if not force.is_written:
            self.force = self.rolling
        elif not self.rolling_found and self.force.least is not None:
            # One that makes no sense is no limit to compare with, and stops the updates.
            rolling = self.rolling
            if rolling.least is None or rolling.least > self.force.least:
                self.force = rolling

    def limit_of(self, instance: Instance, rolling_name: str) -> Budget:
        """The budget that an instance's update is spent from."""
        return self.rolling if instance.template.name == rolling_name else self.force


def budgets_of(spec: TAppSpec, instances: Sequence[Instance]) -> Budgets:
    """Resolves both budgets for the instances that should run."""
    name, should_run = spec.rolling_name, sum([instance.should_run for instance in instances])
    used = any(item.should_run and item.template.name == name for item in instances)
    found = used or spec.find_template(name) is not None
    # Without a name of its own the rolling template is the default one: nothing can be mistyped.
    used = used or not should_run or not spec.update_strategy.template
    return Budgets(spec.update_strategy, should_run, found, used)


def update_order(
    instance: Instance, strategy: UpdateStrategy, rolling_name: str
) -> tuple[bool, int, int]:
    """A key by which instances are sorted: whose update comes first.

    The force group goes before the rolling group. Within each, a higher priority goes first: that
    of the annotation on the pod or else in the template, or 0; then the lower number, or with
    `order: Descending` the higher one.
    """
    found = [int(text) for text in priorities(instance) if PRIORITY.fullmatch(text)]
    number = -instance.id if strategy.order == "Descending" else instance.id
    return instance.template.name == rolling_name, -found[0] if found else 0, number


PRIORITY = re.compile(r"[+-]?[0-9]{1,9}")  # Any other priority is ignored, and a condition says so


def priorities(instance: Instance) -> list[str]:
    """The priorities that an instance is given, whether they are any: its pod's, its template's."""
    pod, template = instance.pod, instance.template
    own = "" if pod is None else pod.spec.update_priority
    if type(template) is Template and UPDATE_PRIORITY in template.annotations:
        return [text for text in (own, template.annotations[UPDATE_PRIORITY]) if text]
    return [own] if own else []


def spend(
    pending: Iterable[tuple[Instance, Verdict]],
    serving: Serving,
    budgets: Budgets,
    rolling_name: str,
) -> dict[int, Verdict]:
    """Spends the budgets: instance -> `Keep` with the reason, for updates held back.

    One instance after the other, by `update_order`. One that is not available may always be
    updated, so the next template can always repair a broken roll-out; one that serves or may serve
    only while enough others are available, and it leaves the set when chosen.
    """
    strategy, available, result = budgets.strategy, serving.available - serving.resized, {}
    for instance, _ in sorted(
        pending, key=lambda pair: update_order(pair[0], strategy, rolling_name)
    ):
        limit = budgets.limit_of(instance, rolling_name)
        held = (
            wait(Reason.PAUSED, "spec.updateStrategy.paused is set")
            if strategy.paused
            else _held(instance.id, available, serving, limit)
        )
        if held is None:
            available.discard(instance.id)
        else:
            result[instance.id] = held
    return result


def _held(instance: int, available: set[int], serving: Serving, limit: Budget) -> Verdict | None:
    if limit.least is None:
        return wait(Reason.INVALID_BUDGET, limit.problem)
    if instance in serving.silent:
        # Its kubelet could not act, and would when it is back, whatever has been taken by then.
        return wait(Reason.NODE_SILENT, "its node is not heard of: it may serve, and is left alone")
    if instance not in available and instance not in serving.in_doubt:
        return None
    if serving.unsettled:
        return wait(Reason.SPEC_JUST_CHANGED, "updates of the previous spec may still be under way")
    others = len(available) - (instance in available)
    if others >= limit.least:
        return None
    of = limit.should_run
    return wait(
        Reason.WAITING_FOR_BUDGET,
        f"{limit.name}: {limit.value} allows {of - limit.least} of {of} to be unavailable, "
        f"{of - len(available)} are",
    )


def is_update(verdict: Verdict) -> bool:
    """True if a verdict has to go through `spend`."""
    return verdict.action in DISRUPTIVE
