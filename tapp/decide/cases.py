"""A case: one instance on its way through a sync, from its verdict to the decision.

`judge` gives the verdict. The stages (`stages.py`) may delay the verdict, or put a step before it.
The decision is the step, or else the delay, or else the verdict.
"""

from collections.abc import Iterable, Mapping

import msgspec

from tapp.decide.instances import Instance
from tapp.decide.verdicts import DISRUPTIVE, UP_TO_DATE, Verdict
from tapp.words.reasons import Reason


class Case(msgspec.Struct, frozen=True, gc=False):
    """An instance, its verdict, and the delay or step that stages have added."""

    instance: Instance
    verdict: Verdict  # what the instance needs, judged alone
    delay: Verdict | None = None  # why the verdict has to wait in this sync; None if it need not
    step: Verdict | None = None  # a write to the pod before the verdict, or None

    @property
    def decision(self) -> Verdict:
        return self.step or self.delay or self.verdict

    @property
    def is_notable(self) -> bool:
        """Returns False for the many instances that just run their template."""
        if self.delay is not None or self.step is not None:
            return True
        return self.verdict.reason is not UP_TO_DATE.reason or self.verdict.change is not None

    @property
    def is_pending(self) -> bool:
        """Returns True for an update that needs a part of the budget.

        An update that a hold delays needs none.
        """
        # A hold may last for hours, and meanwhile the budget is for other updates.
        held = self.delay is not None and self.delay.reason is Reason.HELD
        return self.verdict.action in DISRUPTIVE and not held


def delayed(cases: list[Case], delays: Mapping[int, Verdict]) -> list[Case]:
    """Delays these instances, except those that an earlier stage has delayed already."""
    if not delays:
        return cases
    return [
        Case(case.instance, case.verdict, delay, case.step)
        if case.delay is None and (delay := delays.get(case.instance.id)) is not None
        else case
        for case in cases
    ]


def with_steps(cases: list[Case], steps: Mapping[int, Verdict]) -> list[Case]:
    """Puts a step before the verdicts of these instances."""
    if not steps:
        return cases
    return [
        Case(case.instance, case.verdict, case.delay, steps.get(case.instance.id)) for case in cases
    ]


def ids_of(cases: Iterable[Case]) -> list[int]:
    return [case.instance.id for case in cases]
