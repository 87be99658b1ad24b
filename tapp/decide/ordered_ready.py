"""The order of creations and deletions with `podManagementPolicy: OrderedReady`.

A pod is created when all lower instances that should run are available, and no update of this sync
makes one of them unavailable (docs/order.md, "One after another"). Of the pods beyond
`spec.replicas`, the highest is deleted first, under the same condition. The next one is deleted
when the highest is gone.

Nothing that repairs an instance waits for this order: no update, no kill, and no replacement of a
completed pod.
"""

from collections.abc import Sequence
from typing import NamedTuple

from tapp.decide.cases import Case
from tapp.decide.serving import Serving
from tapp.decide.verdicts import DISRUPTIVE, Action, Verdict, wait
from tapp.words.reasons import Reason

_POLICY = "podManagementPolicy: OrderedReady"


class _Delays(NamedTuple):
    """The verdicts that delay a creation or a deletion until the same event."""

    creation: Verdict
    deletion: Verdict


def _until(event: str, reason: Reason = Reason.WAITING_FOR_ORDER) -> _Delays:
    """Returns the verdicts that delay a creation and a deletion until an event.

    `event` is a clause for the messages, such as "instance 2 is gone".
    """
    return _Delays(
        Verdict(Action.ABSENT, reason, f"its pod will be created when {event} ({_POLICY})"),
        wait(reason, f"its pod will be deleted when {event} ({_POLICY})"),
    )


_UNSETTLED = _until("the updates of the previous spec are over", Reason.SPEC_JUST_CHANGED)


def one_after_another(cases: Sequence[Case], serving: Serving) -> dict[int, Verdict]:
    """Delays creations and deletions so that they happen one after another, as in a StatefulSet.

    - A pod is created when all instances with lower numbers that should run are available.
    - A pod beyond `spec.replicas` is deleted under the same condition, and when all pods with
      higher numbers are gone.

    Returns instance number -> delay, for the instances that have to wait. A delay is a verdict that
    changes nothing and says why.

    Args:
        cases: all instances, sorted by number. Their decisions already respect the budget.
        serving: which instances are available, before any update of this sync.
    """
    delays, lower = dict[int, Verdict](), _UNSETTLED if serving.unsettled else None
    surplus = [case.instance.id for case in cases if not case.instance.wanted]
    higher = _until(f"instance {surplus[-1]} is gone") if surplus else None
    for case in cases:
        instance, decision = case.instance, case.decision
        id, pod = instance.id, instance.pod
        if decision.action is Action.CREATE and lower is not None:
            delays[id] = lower.creation
        # A pod that is being deleted already cannot be delayed.
        elif decision.reason is Reason.SCALED_DOWN and pod is not None and not pod.terminating:
            first = lower if id == surplus[-1] else lower or higher
            if first is not None:
                delays[id] = first.deletion
        # An update of this sync makes the instance unavailable.
        serves = id in serving.available and decision.action not in DISRUPTIVE
        if lower is None and instance.should_run and not serves:
            lower = _until(f"instance {id} is available")
    return delays
