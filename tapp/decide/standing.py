"""The standing of an instance: done, progressing, waiting for others or for a person, or blocked.

`standing_of` is the entry point. The first rule that applies gives the standing. A blocked instance
comes first, because waiting does not help it, whatever the decision of this sync is.
"""

from typing import NamedTuple

from tapp.decide.cases import Case
from tapp.decide.changes import Mark
from tapp.decide.verdicts import Action
from tapp.pod.waiting import Trouble
from tapp.words.reasons import Disposition, Reason
from tapp.words.vocabulary import InstanceStatus

PASSIVE_ACTIONS = (Action.KEEP, Action.ABSENT)  # Actions that change nothing
_PHRASES_OF_ACTIONS = {
    Action.CREATE: "being created", Action.ADOPT: "being labeled",
    Action.MARK: "leaving their Services", Action.UPDATE: "being updated in place",
    Action.RECREATE: "being replaced by new pods", Action.DELETE: "being stopped",
}  # fmt: skip
_PHRASES_OF_REASONS = {Reason.TERMINATING: "ending", Reason.PULLING: "pulling images first"}
_PHRASES_OF_STATUSES = {
    InstanceStatus.UPDATING: "being updated in place",
    InstanceStatus.PENDING: "starting",
}


class Standing(NamedTuple):
    """The standing of an instance."""

    disposition: Disposition
    phrase: str = ""  # the progress, the reason of a wait, or the obstacle; "" if it is done


def standing_of(
    case: Case, *, available: bool, trouble: Trouble | None, not_created: str = ""
) -> Standing:
    """Returns the standing of an instance.

    Args:
        case: the instance with the decision on it.
        available: True if the instance is available.
        trouble: the trouble of its pod, or None.
        not_created: why its pod, which was requested long ago, does not exist; else "".
    """
    instance, decision = case.instance, case.decision
    reason, action = decision.reason, decision.action
    if obstacle := not_created or _obstacle(case, trouble):
        return Standing(Disposition.BLOCKED, obstacle)
    is_over = reason.disposition is Disposition.DONE and not instance.should_run
    if is_over and action in PASSIVE_ACTIONS:
        return Standing(Disposition.DONE)
    # Before the action, because the service may still write markers to the pod on hold.
    if reason is Reason.HELD:
        return Standing(Disposition.HELD, decision.message)
    if isinstance(decision.change, Mark) and not decision.change.drain:
        return Standing(Disposition.MOVING, "getting a new label or annotation")
    if action in _PHRASES_OF_ACTIONS:
        return Standing(Disposition.MOVING, _PHRASES_OF_ACTIONS[action])
    if reason.disposition is Disposition.HELD:
        return Standing(Disposition.HELD, decision.message)
    if reason in _PHRASES_OF_REASONS:
        return Standing(Disposition.MOVING, _PHRASES_OF_REASONS[reason])
    if available and reason in {Reason.UP_TO_DATE, Reason.KEPT}:
        return Standing(Disposition.DONE)
    if available:
        # For example an image that a person has set on the pod.
        return Standing(Disposition.HELD, decision.message)
    return Standing(
        Disposition.MOVING, _PHRASES_OF_STATUSES.get(instance.status, "not yet available")
    )


def _obstacle(case: Case, trouble: Trouble | None) -> str:
    instance, decision = case.instance, case.decision
    if decision.reason.disposition is Disposition.BLOCKED:
        return decision.message
    if instance.status is InstanceStatus.FAILED and instance.wanted and not instance.killed:
        return "its pod has failed"
    # An update may repair the pod, so trouble counts only if the pod stays or does not end.
    ending = instance.pod is not None and instance.pod.terminating
    if trouble is None or not (ending or decision.action is Action.KEEP):
        return ""
    return trouble.text


def awaited(case: Case, *, available: bool, trouble: Trouble | None) -> str:
    """Returns the event at an instance for which a rollout waits, with its time if known."""
    instance, decision, pod = case.instance, case.decision, case.instance.pod
    if available or decision.reason.disposition is Disposition.HELD:
        return decision.message
    if pod is None:
        return "it has no pod"
    if trouble is not None and trouble.text:
        return trouble.text
    if pod.terminating:
        return "its pod is ending"
    if instance.update.unfinished:
        return "its update in place is not finished"
    if trouble is not None and trouble.waiting:
        return trouble.waiting
    since = f" since {pod.ready_since}" if pod.ready_since else ""
    if pod.ready is not True:
        return f"its pod is not Ready{since}"
    return f"its pod is Ready{since}, and not available yet"
