"""The budget: which updates happen now, and why the others wait.

Only this stage compares instances with each other (docs/design.md, "The budget"). At least this
many instances have to stay available:

    least = should_run - maxUnavailable        (a percentage is rounded up)

`should_run` is the number of instances that should run. Updates are chosen one after the other, in
a fixed order (`update_order`). An instance that does not serve may always be updated, so that the
next template can repair a broken rollout. An instance that serves or may serve (`ServingState`) is
updated only if at least `least` other instances are available. After that it counts as unavailable
for the remaining updates.
"""

import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from math import ceil

from tapp.decide.cases import Case
from tapp.decide.instances import Instance
from tapp.decide.serving import Serving, ServingState
from tapp.decide.verdicts import Verdict, wait
from tapp.declared.model import TAppSpec
from tapp.declared.policies import UpdateStrategy
from tapp.words.digits import percent
from tapp.words.quoted import quoted, short
from tapp.words.ranges import instance_list
from tapp.words.reasons import Reason
from tapp.words.vocabulary import UPDATE_PRIORITY

FULL = 100

BUDGET_REASONS = (Reason.WAITING_FOR_BUDGET, Reason.SPEC_JUST_CHANGED)
"""Reasons of updates that wait for the budget and will run later without help from users."""
DELAYED = (
    *BUDGET_REASONS,
    Reason.WAITING_FOR_DOMAIN,
    Reason.DRAINING,
)  # Reasons of all updates that will run later


def portion(value: int | str, of: int, least: int) -> int:
    """Returns a number of instances from a setting: a number, or a percentage rounded up.

    Raises ValueError if the setting is neither a number nor a percentage, or is too low.

    Args:
        value: the setting: a number, or a text such as "30%".
        of: the number of instances that 100% stands for.
        least: the lowest number, and the lowest percentage, that is valid.
    """
    if isinstance(value, int):
        if value >= least:
            return value
    elif (share := percent(value)) is not None and least <= share <= FULL:
        return ceil(of * share / FULL)
    what = f"a whole number of at least {least} nor a percentage from {least}% to 100%"
    raise ValueError(f"{quoted(value)} is neither {what}")


@dataclass
class Budget:
    """The number of instances that may be unavailable at the same time because of updates.

    A budget applies to one of two groups of instances: those with the rolling template
    (`spec.updateStrategy.template`), or all others.
    """

    name: str  # the field of the spec, for messages
    value: int | str  # the value of the field; a long text is cut, for messages
    should_run: int  # number of instances that should run, which percentages refer to
    # Number of instances that must stay available; None if the value is invalid
    least: int | None = field(init=False)
    problem: str = field(init=False, default="")  # why the value is invalid, or ""

    def __post_init__(self) -> None:
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
    """The budgets of the two groups of instances of a TApp.

    `rolling` is the budget of instances with the rolling template (`spec.updateStrategy.template`).
    `force` is the budget of all other instances (`spec.updateStrategy.forceUpdate`).
    """

    strategy: UpdateStrategy  # `spec.updateStrategy`
    should_run: int  # number of instances that should run, which percentages refer to
    rolling_found: bool = True  # whether the rolling template exists
    rolling_used: bool = True  # whether an instance that should run has the rolling template
    rolling: Budget = field(init=False)
    force: Budget = field(init=False)

    def __post_init__(self) -> None:
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
        # No instance has the rolling template, so all instances are "others". The default budget
        # of the others, 100%, was meant for a few and would update all instances at once.
        if not force.is_written:
            self.force = self.rolling
        elif not self.rolling_found and self.force.least is not None:
            # A mistyped name of the rolling template must not widen a budget: the stricter budget
            # holds. An invalid budget is no limit to compare with, and stops the updates.
            rolling = self.rolling
            if rolling.least is None or rolling.least > self.force.least:
                self.force = rolling

    def limit_of(self, instance: Instance, rolling_name: str) -> Budget:
        """Returns the budget that applies to an instance.

        `rolling_name` is the name of the rolling template (`spec.updateStrategy.template`).
        """
        return self.rolling if instance.template_name == rolling_name else self.force

    def is_rolling(self, instance: Instance, rolling_name: str) -> bool:
        """Returns True if the budget of the rolling group applies to an instance.

        `rolling_name` is the name of the rolling template (`spec.updateStrategy.template`).
        """
        return self.limit_of(instance, rolling_name) is self.rolling


def budgets_of(spec: TAppSpec, instances: Sequence[Instance]) -> Budgets:
    """Returns the budgets of a TApp.

    Percentages refer to the instances that should run.
    """
    name, should_run = spec.rolling_name, sum([instance.should_run for instance in instances])
    used = any(item.should_run and item.template_name == name for item in instances)
    found = used or spec.find_template(name) is not None
    # Without updateStrategy.template the rolling template is the default one: no name is mistyped.
    used = used or not should_run or not spec.update_strategy.template
    return Budgets(spec.update_strategy, should_run, found, used)


def update_order(
    instance: Instance, strategy: UpdateStrategy, rolling_name: str
) -> tuple[bool, int, int]:
    """Returns a key that sorts instances in the order of their updates.

    1. Instances that do not run the rolling template come first.
    2. Then instances with a higher priority come first. The priority is in an annotation of the pod
       or else of the template; without both it is 0.
    3. Then lower instance numbers come first, or higher ones with `order: Descending`.

    Args:
        instance: the instance.
        strategy: `spec.updateStrategy`.
        rolling_name: the name of the rolling template (`spec.updateStrategy.template`).
    """
    found = [int(text) for text in priorities(instance) if PRIORITY.fullmatch(text)]
    number = -instance.id if strategy.order == "Descending" else instance.id
    return instance.template_name == rolling_name, -found[0] if found else 0, number


PRIORITY = re.compile(r"[+-]?[0-9]{1,9}")  # Another text is ignored, and a condition says so


def priorities(instance: Instance) -> list[str]:
    """Returns the update priorities of pod and template, as written in their annotations.

    The pod's priority comes first. Invalid texts are included; a missing annotation has no entry.
    """
    pod, template = instance.pod, instance.template
    own = "" if pod is None else pod.spec.update_priority
    if template is not None and UPDATE_PRIORITY in template.annotations:
        return [text for text in (own, template.annotations[UPDATE_PRIORITY]) if text]
    return [own] if own else []


_SILENT = (
    "its node has stopped reporting, and its pod may still serve requests; the update waits until "
    "the node reports again"
)


def spend(
    pending: Iterable[Case],
    serving: Serving,
    budgets: Budgets,
    rolling_name: str,
    should_run: Iterable[int],
) -> dict[int, Verdict]:
    """Chooses the updates that run in this sync.

    Returns instance number -> delay, for the updates that have to wait. A delay is a verdict that
    leaves the pod as it is and says why.

    Args:
        pending: the instances that need an update.
        serving: which instances are available, before any update of this sync.
        budgets: how many instances may be unavailable.
        rolling_name: the name of the rolling template (`spec.updateStrategy.template`).
        should_run: the numbers of the instances that should run. If some of them are not available,
            the messages name these.
    """
    strategy, delays = budgets.strategy, dict[int, Verdict]()
    waiting: dict[str, list[int]] = {}  # the text about a budget -> instances that wait for it
    # An instance whose containers are being resized has its place in the budget already.
    available = {id for id, state in serving.states.items() if state is ServingState.AVAILABLE}
    instances = [case.instance for case in pending]
    for instance in sorted(
        instances, key=lambda instance: update_order(instance, strategy, rolling_name)
    ):
        limit = budgets.limit_of(instance, rolling_name)
        delay = (
            wait(Reason.PAUSED, "the update is paused (spec.updateStrategy.paused is true)")
            if strategy.paused
            else _delay(instance.id, available, serving, limit)
        )
        if delay is None:
            available.discard(instance.id)
            continue
        delays[instance.id] = delay
        if delay.reason is Reason.WAITING_FOR_BUDGET:
            waiting.setdefault(delay.message, []).append(instance.id)
    if waiting:
        waits = _waits_for([id for id in should_run if id not in available])
        for text, ids in waiting.items():
            message = wait(Reason.WAITING_FOR_BUDGET, f"{waits}, because {text}")
            delays |= dict.fromkeys(ids, message)
    return delays


def _waits_for(users: Collection[int]) -> str:
    """Returns the beginning of a message: the update waits for other instances to become available.

    `users` are the instances that use up the budget. They are unavailable, or an update that this
    sync has chosen will make them unavailable.
    """
    return f"the update waits for {instance_list(users)} to become available"


_UNSETTLED = "the update waits, because updates of the previous spec may still be in progress"


def _delay(instance: int, available: set[int], serving: Serving, limit: Budget) -> Verdict | None:
    """Returns the verdict that delays the update of an instance; None if the update may run now.

    Args:
        instance: the number of the instance.
        available: the available instances, without those whose update was chosen already.
        serving: the serving states, before any update of this sync.
        limit: the budget that applies to the instance.
    """
    if limit.least is None:
        return wait(Reason.INVALID_BUDGET, limit.problem)
    state = serving.states.get(instance)
    if state is ServingState.SILENT:
        # The kubelet cannot update the pod now. It would do so when the node is back, and by then
        # the budget may have been spent on other instances.
        return wait(Reason.NODE_SILENT, _SILENT)
    if state is None:
        return None
    if serving.unsettled:
        return wait(Reason.SPEC_JUST_CHANGED, _UNSETTLED)
    others = len(available) - (instance in available)
    if others >= limit.least:
        return None
    of = limit.should_run
    share = f"{limit.value} ({of - limit.least} of {of} instances)"
    share = share if isinstance(limit.value, str) else f"{limit.value} of {of} instances"
    return wait(Reason.WAITING_FOR_BUDGET, f"{limit.name} allows {share} to be unavailable")
