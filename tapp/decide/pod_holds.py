"""Pods on hold: pods that the service leaves unchanged because their program or a user requests it.

A hold delays the verdict on an instance if the verdict changes the pod (update, replace or delete:
the *pending action*; docs/hold.md). The service writes the pending action and its time to the pod.
A time limit counts from that time. The service writes the time by its own clock, so neither a pod
nor a node can extend or shorten the limit.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from math import inf

from tapp.decide.cases import Case
from tapp.decide.changes import HoldMarkers
from tapp.decide.rollout import Budgets
from tapp.decide.verdicts import DISRUPTIVE, Action, Verdict, wait
from tapp.declared.model import TAppSpec
from tapp.pod.hold import NO_HOLD
from tapp.pod.pod import Pod
from tapp.words.quoted import quoted
from tapp.words.reasons import Reason
from tapp.words.times import is_written, noted_since, written
from tapp.words.vocabulary import PendingAction

PENDING_ACTIONS = {
    Action.UPDATE: PendingAction.UPDATE,
    Action.RECREATE: PendingAction.RECREATE,
    Action.DELETE: PendingAction.DELETE,
}
"""Action of a verdict -> the pending action that is written to a pod on hold."""
_NAMES = {
    PendingAction.UPDATE: "update",
    PendingAction.RECREATE: "replacement",
    PendingAction.DELETE: "deletion",
}
"""Pending action -> its name in a message."""


@dataclass(frozen=True)
class HoldRequest:
    """The action that the service would take on a pod without its hold (the *pending action*).

    The service writes the action and its time to the pod, so that the program in the pod can
    prepare for the action.
    """

    action: PendingAction
    since: str  # since when it is pending, RFC 3339; "" if that cannot be written to the pod
    held: bool  # whether a hold keeps the action back now
    expired: bool  # whether there is a hold whose time limit has passed
    ends: float  # when the hold's time limit passes, in seconds since the epoch; `inf` for never


def hold_request_of(
    pod: Pod, action: PendingAction, limit: int | None, now: float
) -> HoldRequest | None:
    """Returns the pending action of a pod: an action that its hold delays, or has delayed before.

    The result is None in these cases:

    - The pod has no hold and no pending action, has ended, or is being deleted.
    - The hold is not meant for this action, and the action is not pending from an earlier sync.

    Args:
        pod: the pod.
        action: the action that the service would take on the pod.
        limit: the time limit of the hold in seconds; None for no limit.
        now: the time of this sync, in seconds since the epoch.
    """
    hold = pod.spec.hold
    # A pod that has ended could not remove its hold any more, so the hold does not count.
    if hold is None or pod.terminating or pod.completed:
        return None
    covered = hold.prevents(action)
    # A pod whose hold was removed keeps its pending action until the action is done. If a program
    # sets the hold again before that, the time limit still counts from the first request.
    if not covered and hold.wanted != action:
        return None
    noted = hold.since if hold.wanted == action and is_written(hold.since) else ""
    since, at = noted_since(noted, now)
    if pod.unreadable and since != noted:
        # The service does not write to an unreadable pod, so no time limit begins. A limit of 0
        # needs no time.
        since = ""
        limit = 0 if limit == 0 else None
    ends = inf if limit is None else at + limit
    return HoldRequest(action, since, covered and now < ends, covered and now >= ends, ends)


@dataclass
class PodHolds:
    """The effects of all holds on pods in one sync: delayed verdicts and the delayed actions."""

    delays: dict[int, Verdict] = field(default_factory=dict)  # instance -> why its verdict waits
    requests: dict[str, HoldRequest] = field(default_factory=dict)  # pod name -> pending action
    waits: list[float] = field(default_factory=list)  # seconds until time limits pass


def apply_pod_holds(
    spec: TAppSpec, cases: Iterable[Case], budgets: Budgets, now: float
) -> PodHolds:
    """Delays the verdicts that a hold prevents, and finds the pending actions of pods with a hold.

    Later the service writes each pending action to its pod. There is no pending action if the spec
    is paused or the budget is invalid, because the update would not run without the hold either. So
    no time limit begins.

    Args:
        spec: the spec of the TApp; it has the time limits of holds.
        cases: all instances with their verdicts.
        budgets: the budgets of updates, which may be invalid.
        now: the time of this sync, in seconds since the epoch.
    """
    result, strategy = PodHolds(), spec.update_strategy
    for case in cases:
        pod, verdict = case.instance.pod, case.verdict
        action = PENDING_ACTIONS.get(verdict.action)
        if action is None or pod is None or pod.spec.hold is None:
            continue
        if verdict.action in DISRUPTIVE and (
            strategy.paused or budgets.limit_of(case.instance, spec.rolling_name).least is None
        ):
            continue
        deleted = action is PendingAction.DELETE
        limit = spec.deletion_hold_timeout_seconds if deleted else strategy.hold_timeout_seconds
        request = hold_request_of(pod, action, limit, now)
        if request is None:
            continue
        result.requests[pod.name] = request
        if request.held:
            waits = f"has been pending since {request.since}" if request.since else "is pending"
            what = f"the {_NAMES[action]} {waits}"
            text = f"{sentence(pod, request)}; {what}. When the hold ends: {verdict.message}"
            result.delays[case.instance.id] = wait(Reason.HELD, text)
            if request.ends < inf:
                result.waits.append(request.ends - now)
    return result


def label_later(cases: list[Case]) -> list[Case]:
    """Delays new labels of pods on hold until the hold ends, and returns all cases.

    Only pods that correspond to a template in another notation are concerned. Such a pod needs
    nothing but new labels, so no pending action is written to the pod.
    """
    if not any(case.verdict.reason is Reason.SAME_MEANING for case in cases):
        return cases
    return [_labelled_later(case) for case in cases]


def _labelled_later(case: Case) -> Case:
    """Returns a case whose verdict writes no new labels to a pod that is on hold.

    If a hold prevents new labels, the verdict keeps the pod as it is. Any other verdict stays.
    """
    pod, verdict = case.instance.pod, case.verdict
    if verdict.reason is not Reason.SAME_MEANING or pod is None or pod.spec.hold is None:
        return case
    if not pod.spec.hold.prevents(PendingAction.UPDATE):
        return case
    message = f"{verdict.message} when the hold ends"
    return Case(case.instance, wait(Reason.UP_TO_DATE, message))


def due_markers(pod: Pod, request: HoldRequest | None) -> HoldMarkers:
    """Returns the label and annotations about its hold that a pod should have.

    `request` is the pending action of the pod; None if the pod has none.
    """
    hold = pod.spec.hold or NO_HOLD
    action, since = ("", "") if request is None else (request.action, request.since)
    return HoldMarkers(hold.desired_label, action, since, hold.desired_autoscalers)


def carried_markers(pod: Pod) -> HoldMarkers:
    """Returns the label and annotations about its hold that a pod has now."""
    hold = pod.spec.hold or NO_HOLD
    return HoldMarkers(hold.label, hold.wanted, hold.since, hold.autoscalers)


def sentence(pod: Pod, request: HoldRequest) -> str:
    """Returns a clause that says why a pod is on hold, and when the time limit of the hold ends.

    `request` is the pending action of the pod.
    """
    until = "" if request.ends == inf else f" until {written(request.ends)} at the latest"
    if not request.since:
        until = (
            ", and the TApp service cannot write the pending action to the pod, because it cannot "
            "read the pod"
        )
    return f"its pod is on hold (reason: {quoted((pod.spec.hold or NO_HOLD).reason)}){until}"
