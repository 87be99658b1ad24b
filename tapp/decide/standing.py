"""The standing of an instance: done, progressing, waiting for others or for a person, or blocked.

`standing_of` is the entry point. The first rule that applies gives the standing. A blocked instance
comes first, because waiting does not help it, whatever the decision of this sync is.
"""

from typing import NamedTuple

from tapp.decide.cases import Case
from tapp.decide.changes import Mark
from tapp.decide.verdicts import Action
from tapp.pod.waiting import Trouble
from tapp.words.reasons import Reason, Standing
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


class InstanceStanding(NamedTuple):
    """The standing of an instance: done, progressing, waiting, on hold or blocked.

    `phrase` says what the instance does or waits for.
    """

    standing: Standing
    phrase: str = ""  # the progress, the reason of a wait, or the obstacle; "" if it is done


def standing_of(
    case: Case, *, available: bool, trouble: Trouble | None, not_created: str = ""
) -> InstanceStanding:
    """Returns how an instance stands: done, progressing, waiting, on hold or blocked.

    Args:
        case: the instance with the decision on it.
        available: True if the instance is available.
        trouble: the trouble of its pod, or None.
        not_created: why its pod, which was requested long ago, does not exist; else "".
    """
    instance, decision = case.instance, case.decision
    reason, action = decision.reason, decision.action
    if obstacle := not_created or _obstacle(case, trouble):
        return InstanceStanding(Standing.BLOCKED, obstacle)
    is_over = reason.standing is Standing.DONE and not instance.should_run
    if is_over and action in PASSIVE_ACTIONS:
        return InstanceStanding(Standing.DONE)
    # Before the action, because the service may still write markers to the pod on hold.
    if reason is Reason.HELD:
        return InstanceStanding(Standing.ON_HOLD, decision.message)
    if isinstance(decision.change, Mark) and not decision.change.drain:
        return InstanceStanding(Standing.PROGRESSING, "getting a new label or annotation")
    if action in _PHRASES_OF_ACTIONS:
        return InstanceStanding(Standing.PROGRESSING, _PHRASES_OF_ACTIONS[action])
    if reason.standing is Standing.WAITING:
        return InstanceStanding(Standing.WAITING, decision.message)
    if reason in _PHRASES_OF_REASONS:
        return InstanceStanding(Standing.PROGRESSING, _PHRASES_OF_REASONS[reason])
    if available and reason in {Reason.UP_TO_DATE, Reason.KEPT}:
        return InstanceStanding(Standing.DONE)
    if available:
        # For example an image that a person has set on the pod.
        return InstanceStanding(Standing.WAITING, decision.message)
    return InstanceStanding(
        Standing.PROGRESSING, _PHRASES_OF_STATUSES.get(instance.status, "not yet available")
    )


def _obstacle(case: Case, trouble: Trouble | None) -> str:
    """Returns why an instance is blocked, or an empty string if it is not.

    `trouble` is the trouble of its pod, or None.
    """
    instance, decision = case.instance, case.decision
    if decision.reason.standing is Standing.BLOCKED:
        return decision.message
    if instance.status is InstanceStatus.FAILED and instance.wanted and not instance.killed:
        return "its pod has failed"
    # An update may repair the pod, so trouble counts only if the pod stays or does not end.
    ending = instance.pod is not None and instance.pod.terminating
    if trouble is None or not (ending or decision.action is Action.KEEP):
        return ""
    return trouble.text


def awaited(case: Case, *, available: bool, trouble: Trouble | None) -> str:
    """Returns the reason why a rollout still waits for an instance, with its time if known.

    Args:
        case: the instance with the decision on it.
        available: True if the instance is available.
        trouble: the trouble of its pod, or None.
    """
    instance, decision, pod = case.instance, case.decision, case.instance.pod
    if available or decision.reason.standing.waits:
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
