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
    """One instance in one sync, with the verdict on it and the changes that stages have made.

    The verdict says what the instance needs. A stage of the sync, such as the spending of the
    budget, may delay the verdict. A stage may also put a step before it: a label or annotation that
    is written to the pod first. `decision` is the result.
    """

    instance: Instance
    verdict: Verdict  # what the instance needs, judged alone
    delay: Verdict | None = None  # why the verdict has to wait in this sync; None if it need not
    step: Verdict | None = None  # a write to the pod before the verdict, or None

    @property
    def decision(self) -> Verdict:
        """Returns the decision on the instance in this sync.

        - If there is a step, the decision is the step: a write to the pod that comes first.
        - If there is only a delay, the decision is the delay.
        - If there is neither, the decision is the verdict.
        """
        return self.step or self.delay or self.verdict

    @property
    def is_notable(self) -> bool:
        """Returns False if the pod simply runs the template of the instance and nothing is written.

        Most instances are in this state, and most rules can skip them.
        """
        if self.delay is not None or self.step is not None:
            return True
        return self.verdict.reason is not UP_TO_DATE.reason or self.verdict.change is not None

    @property
    def is_pending(self) -> bool:
        """Returns True if the verdict is an update, which needs a place in the budget.

        Returns False for an update of a pod on hold, because it does not run in this sync.
        """
        if self.verdict.action not in DISRUPTIVE:
            return False
        # A hold may last for hours, and meanwhile the budget is for other updates.
        return self.delay is None or self.delay.reason is not Reason.HELD


def delayed(cases: list[Case], delays: Mapping[int, Verdict]) -> list[Case]:
    """Adds delays to the cases that no earlier stage has delayed, and returns all cases.

    `delays` maps an instance number to the delay: a verdict that leaves the pod as it is and says
    why.
    """
    if not delays:
        return cases
    return [
        Case(case.instance, case.verdict, delay, case.step)
        if case.delay is None and (delay := delays.get(case.instance.id)) is not None
        else case
        for case in cases
    ]


def with_steps(cases: list[Case], steps: Mapping[int, Verdict]) -> list[Case]:
    """Gives the cases these steps, drops the steps of earlier stages, and returns all cases.

    `steps` maps an instance number to the step: a write that comes before the instance's verdict,
    such as a label on its pod. If `steps` is empty, the cases stay as they are.
    """
    if not steps:
        return cases
    return [
        Case(case.instance, case.verdict, case.delay, steps.get(case.instance.id)) for case in cases
    ]


def ids_of(cases: Iterable[Case]) -> list[int]:
    return [case.instance.id for case in cases]
