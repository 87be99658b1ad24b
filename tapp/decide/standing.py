"""The standing of an instance (done, progressing, waiting, on hold or blocked), why and since when.

`standings_of` is the entry point. All texts about instances are made of its result: the condition
Progressing and with it Ready, Reconciling and Stalled, the deadline of a rollout, and every view of
`kubectl tapp`. The standing follows from the decision on the instance, whether the
instance is available, and the trouble of its pod. The first rule of `_standing` that applies gives
the standing. An instance counts under exactly one reason of the condition Progressing, which
`_progress` chooses.
"""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from tapp.decide.cases import Case
from tapp.decide.changes import Mark
from tapp.decide.instances import Instance
from tapp.decide.missing import MissingObjects
from tapp.decide.rollout import BUDGET_REASONS
from tapp.decide.serving import Serving, ServingState
from tapp.decide.verdicts import UP_TO_DATE, Action
from tapp.pod.pod import Pod
from tapp.pod.trouble import TROUBLE_AFTER
from tapp.pod.waiting import NO_TROUBLE, Trouble
from tapp.words.ranges import name_list
from tapp.words.reasons import Reason, Standing
from tapp.words.times import UNKNOWN, seconds
from tapp.words.vocabulary import InstanceStatus

PASSIVE_ACTIONS = (Action.KEEP, Action.ABSENT)  # Actions that change nothing
NOT_CREATED = "not created: the Events of the TApp show the reason"
_PHRASES_OF_ACTIONS = {
    Action.CREATE: "being created", Action.ADOPT: "being labeled",
    Action.MARK: "leaving their Services", Action.UPDATE: "being updated in place",
    Action.RECREATE: "being replaced by new pods", Action.DELETE: "being stopped",
}  # fmt: skip
_PHRASES_OF_REASONS = {
    Reason.TERMINATING: "ending",
    Reason.PULLING: "pulling images first",
    Reason.RESIZING: "being resized",
}
_PHRASES_OF_STATUSES = {
    InstanceStatus.UPDATING: "being updated in place",
    InstanceStatus.PENDING: "starting",
}

_CHANGING = (Action.UPDATE, Action.RECREATE, Action.ADOPT)
_OF_UPDATES = (Reason.DRAINING, Reason.MARKS_CHANGED, Reason.TEMPLATE_CHANGED)
"""Reasons of markers that belong to an update; others are about a hold or a lost node."""
_UNDER_WAY = (Reason.RESTART_WAITS, Reason.RESIZING, Reason.RESIZE_DEFERRED)
"""Reasons why an update that has begun writes nothing now."""
_KEPT_BACK = (Reason.PAUSED, Reason.HELD)
"""Reasons of updates that a person keeps back; no rollout waits for them."""


class InstanceStanding(NamedTuple):
    """The standing of an instance, with its reason and since when."""

    standing: Standing
    progress: Reason  # the reason under which the condition Progressing counts the instance
    # a few words that fit after several instances: "being updated in place"; "" if it is done
    brief: str = ""
    # why a rollout still waits for the instance, as a sentence about "its pod"; "" if it is done
    sentence: str = ""
    # since when, in seconds since the epoch; None if unknown, or if `sentence` has its own times
    since: float | None = None
    is_awaited: bool = False  # True if a rollout waits for the instance


DONE = InstanceStanding(Standing.DONE, Reason.COMPLETE)


def standings_of(
    cases: Iterable[Case],
    serving: Serving,
    troubles: Mapping[int, Trouble],
    missing: MissingObjects,
    now: float,
) -> dict[int, InstanceStanding]:
    """Returns instance number -> standing: done, progressing, waiting, on hold or blocked, and why.

    Instances that are available and whose pod simply runs its template have no entry.

    Args:
        cases: the instances with the decisions on them.
        serving: which instances are available, before any update of this sync.
        troubles: instance number -> trouble of its pod.
        missing: the pods that were requested and do not exist.
        now: the time of this sync, in seconds since the epoch.
    """
    found, available = dict[int, InstanceStanding](), serving.available
    for case in cases:
        id = case.instance.id
        trouble = troubles.get(id, NO_TROUBLE)
        # Most instances of a large TApp are like this, so no function is called for them.
        decided = case.step or case.delay or case.verdict
        if decided is UP_TO_DATE and id in available and trouble is NO_TROUBLE:
            continue
        found[id] = _standing_of(case, serving, trouble, missing, now)
    return found


def _standing_of(
    case: Case, serving: Serving, trouble: Trouble, missing: MissingObjects, now: float
) -> InstanceStanding:
    """Returns how one instance stands; most parameters are those of `standings_of`.

    `trouble` is the trouble of the instance's pod; `NO_TROUBLE` if the pod has none.
    """
    instance, available = case.instance, case.instance.id in serving.available
    missing_since = missing.pods_since.get(instance.id)
    overdue = missing_since is not None and now - missing_since >= TROUBLE_AFTER
    standing, brief = _standing(case, trouble, available=available, overdue=overdue)
    sentence, since = case.decision.message, None
    if not available and not case.decision.reason.standing.waits:
        state = serving.states.get(instance.id)
        sentence, since = _state_of(instance, trouble, state, missing_since)
    progress, awaited = _progress(case, available=available), _is_awaited(case, available=available)
    return InstanceStanding(standing, progress, brief, sentence, since, awaited)


def _standing(
    case: Case, trouble: Trouble, *, available: bool, overdue: bool
) -> tuple[Standing, str]:
    """Returns the standing of an instance, and a few words about it for users.

    The words are an empty string if the instance is done.

    Args:
        case: the instance with the decision on it.
        trouble: the trouble of the instance's pod.
        available: True if the instance is available.
        overdue: True if the instance's pod was requested long ago and does not exist.
    """
    instance, decision = case.instance, case.decision
    reason, action = decision.reason, decision.action
    # First, because waiting does not help a blocked instance, whatever the decision is.
    if obstacle := NOT_CREATED if overdue else _obstacle(case, trouble):
        return Standing.BLOCKED, obstacle
    is_over = reason.standing is Standing.DONE and not instance.should_run
    if is_over and action in PASSIVE_ACTIONS:
        return Standing.DONE, ""
    # Before the action, because the service may still write markers to the pod on hold.
    if reason is Reason.HELD:
        return Standing.ON_HOLD, decision.message
    if isinstance(decision.change, Mark) and not decision.change.drain:
        return Standing.PROGRESSING, "getting a new label or annotation"
    if action in _PHRASES_OF_ACTIONS:
        return Standing.PROGRESSING, _PHRASES_OF_ACTIONS[action]
    if reason.standing is Standing.WAITING:
        return Standing.WAITING, decision.message
    if reason in _PHRASES_OF_REASONS:
        return Standing.PROGRESSING, _PHRASES_OF_REASONS[reason]
    if available and reason in {Reason.UP_TO_DATE, Reason.KEPT}:
        return Standing.DONE, ""
    if available:
        # For example an image that a person has set on the pod.
        return Standing.WAITING, decision.message
    return Standing.PROGRESSING, _PHRASES_OF_STATUSES.get(instance.status, "not yet available")


def _obstacle(case: Case, trouble: Trouble) -> str:
    """Returns the sentence why an instance is blocked, or an empty string if it is not blocked.

    `trouble` is the trouble of the instance's pod.
    """
    instance, decision = case.instance, case.decision
    if decision.reason.standing is Standing.BLOCKED:
        return decision.message
    if instance.status is InstanceStatus.FAILED and instance.wanted and not instance.killed:
        return "its pod has failed"
    # An update may repair the pod, so trouble counts only if the pod stays or does not end.
    ending = instance.pod is not None and instance.pod.terminating
    return trouble.text if ending or decision.action is Action.KEEP else ""


def _progress(case: Case, *, available: bool) -> Reason:
    """Returns the reason under which the condition Progressing counts an instance.

    Each instance counts under one reason only. The rules about the decision come first, because
    they say more than that the instance is not available.
    """
    instance, reason, action = case.instance, case.decision.reason, case.decision.action
    pod = instance.pod
    later = reason is Reason.WAITING_FOR_TURN
    if reason is Reason.NO_POD or (later and pod is None):
        return Reason.CREATING
    marked = action is Action.MARK and reason in _OF_UPDATES
    if action in _CHANGING or marked or later or reason in _UNDER_WAY:
        return Reason.UPDATING
    if reason is Reason.PULLING:
        return Reason.PULLING
    if (
        action is Action.DELETE
        or reason is Reason.NODE_LOST
        or (reason is Reason.NODE_SILENT and not instance.should_run)
        or (pod is not None and pod.terminating)
    ):
        return Reason.DELETING
    if reason in BUDGET_REASONS:
        return Reason.WAITING_FOR_BUDGET
    if reason in {Reason.HELD, Reason.WAITING_FOR_DOMAIN}:
        return reason
    # Also if its update is paused or refused: the pod may become available by itself.
    if instance.should_run and not available and action is not Action.ABSENT:
        updating = instance.status is InstanceStatus.UPDATING
        return Reason.UPDATING if updating else Reason.WAITING_FOR_INSTANCES
    if reason in {Reason.WAITING_FOR_ORDER, Reason.PAUSED}:
        return reason
    return Reason.STUCK if reason.standing is Standing.BLOCKED else Reason.COMPLETE


def _is_awaited(case: Case, *, available: bool) -> bool:
    """Returns True if a rollout waits for an instance.

    Returns False in these cases:

    - The instance runs its template and is available, or the instance should not run.
    - The spec (`paused`) or a hold keeps the update of the instance back.
    - The service refuses the update, and the instance is available or has no pod. If the instance
      has a pod that is not available, the pod may still recover, so the rollout waits.
    """
    instance, reason = case.instance, case.decision.reason
    completed = available and case.verdict.reason.standing is Standing.DONE
    if completed or not instance.should_run or reason in _KEPT_BACK:
        return False
    return reason.standing is not Standing.BLOCKED or not (available or instance.pod is None)


def _state_of(
    instance: Instance, trouble: Trouble, state: ServingState | None, missing_since: float | None
) -> tuple[str, float | None]:
    """Returns why an instance is not available, as a sentence, and since when.

    The time is in seconds since the epoch. It is None if it is unknown, or if the sentence contains
    its own times.

    Args:
        instance: the instance; the caller has checked that it is not available.
        trouble: the trouble of the instance's pod.
        state: how the budget counts the instance; None if the instance certainly does not serve.
        missing_since: since when the pod is missing, in seconds since the epoch; None if the pod is
            not missing.
    """
    pod = instance.pod
    if pod is None:
        return "it has no pod", missing_since
    if trouble.text:
        return trouble.text, None
    if pod.terminating:
        return "its pod is ending", _known(pod.ending_since)
    if names := instance.update.unfinished:
        those = f"container{'s'[: len(names) != 1]} {name_list([*names])}"
        return f"its update in place waits for {those} to start again", None
    if trouble.waiting:
        return trouble.waiting, None
    if not pod.node:
        return _wait_for_node(pod), _known(seconds(pod.created))
    if state is ServingState.DELETION_UNCONFIRMED:
        return (
            "its pod may be ending already: the TApp service has just requested its deletion",
            None,
        )
    if pod.phase != "Running":
        return f"its pod is {pod.phase.lower()}", _known(seconds(pod.created))
    if instance.silent_since is not None:
        sentence = f"node {pod.node} has stopped reporting; its pod may still be serving"
        return sentence, _known(instance.silent_since)
    if pod.ready is not True:
        return "its pod is not Ready", _known(seconds(pod.ready_since))
    sentence = (
        "its pod is Ready, but has not been Ready long enough to count as available "
        "(spec.minReadySeconds, or one more run of its probe)"
    )
    return sentence, _known(seconds(pod.ready_since))


def _wait_for_node(pod: Pod) -> str:
    """Returns the sentence about a pod without a node, with the scheduler's message if known."""
    condition = pod.conditions.get("PodScheduled")
    if condition is None or condition.status != "False":
        return "its pod has no node yet"
    detail = ": ".join(text for text in (condition.reason, condition.message) if text)
    return f"its pod waits for a node: {detail}"


def state_since(instance: Instance, missing: MissingObjects) -> float | None:
    """Returns when the state of an instance's pod began, in seconds since the epoch.

    This is the newest time in the pod's status or, without a pod, the time since when the pod is
    missing. Returns None if no time is known.
    """
    pod = instance.pod
    if pod is None:
        return missing.pods_since.get(instance.id)
    if pod.terminating:
        return _known(pod.ending_since)
    times = [seconds(pod.created), seconds(pod.ready_since)]
    for status in pod.containers:
        if status.now.running is not None:
            times.append(seconds(status.now.running.started_at))
        if status.now.terminated is not None:
            times.append(seconds(status.now.terminated.finished_at))
    return _known(max(times))


def _known(at: float) -> float | None:
    return None if at == UNKNOWN else at
