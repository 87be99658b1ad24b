"""The order in which pods are created and deleted with `podManagementPolicy: OrderedReady`.

docs/order.md, "One after another". A pod is created when all lower numbers that should run are
available, and no update of this sync takes one of them down. Of the pods beyond `spec.replicas` the
highest is deleted first, under the same condition, and the next one when the highest is gone.

Nothing else waits, so nothing that repairs an instance does: no update, no kill, and no pod that
has ended and makes room for the next one.
"""

from collections.abc import Sequence
from typing import NamedTuple

from tapp.decide.cases import Case
from tapp.decide.serving import Serving
from tapp.decide.verdicts import DISRUPTIVE, Action, Verdict, wait
from tapp.words.reasons import Reason

_POLICY = "podManagementPolicy: OrderedReady"


class _Delays(NamedTuple):
    """The delays of instances that wait for the same event."""

    creation: Verdict
    deletion: Verdict


def _until(event: str, reason: Reason = Reason.WAITING_FOR_ORDER) -> _Delays:
    return _Delays(
        Verdict(Action.ABSENT, reason, f"its pod is made when {event} ({_POLICY})"),
        wait(reason, f"its pod goes when {event} ({_POLICY})"),
    )


_UNSETTLED = _until("the last spec's updates are known to be over", Reason.SPEC_JUST_CHANGED)


def one_after_another(cases: Sequence[Case], serving: Serving) -> dict[int, Verdict]:
    """Returns the delays that keep the order: instance -> delay. The cases have seen the budget."""
    delays, lower = dict[int, Verdict](), _UNSETTLED if serving.unsettled else None
    surplus = [case.instance.id for case in cases if not case.instance.wanted]
    higher = _until(f"instance {surplus[-1]} is gone") if surplus else None
    for case in cases:
        instance, decision = case.instance, case.decision
        id, pod = instance.id, instance.pod
        if decision.action is Action.CREATE and lower is not None:
            delays[id] = lower.creation
        elif decision.reason is Reason.SCALED_DOWN and pod is not None and not pod.terminating:
            first = lower if id == surplus[-1] else lower or higher
            if first is not None:
                delays[id] = first.deletion
        serves = id in serving.available and decision.action not in DISRUPTIVE
        if lower is None and instance.should_run and not serves:
            lower = _until(f"instance {id} is available")
    return delays
