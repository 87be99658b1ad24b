"""The standing of each instance, in the words that all commands and the page share.

`view_of` is the entry point. It combines the service's decision about an instance with the
status of its pod and with obstacles that the service cannot see.
"""

from dataclasses import dataclass
from typing import Any

from kubectl_tapp.base.hints import shell_command
from kubectl_tapp.base.observed import Document
from kubectl_tapp.base.reading import container_statuses, unready_reasons
from tapp.decide.cases import Case
from tapp.decide.instances import Instance
from tapp.decide.serving import ServingState
from tapp.decide.standing import PASSIVE_ACTIONS, standing_of
from tapp.decide.verdicts import Action, Verdict
from tapp.plan import Plan
from tapp.pod.trouble import TROUBLE_AFTER
from tapp.words.reasons import Reason, Standing
from tapp.words.times import UNKNOWN, seconds

_NOT_CREATED = "not created: the Events of the TApp show the reason"


@dataclass(frozen=True)
class InstanceView:
    """The standing of one instance, such as done or waiting, and its reason in a few words and in
    full.
    """

    id: int  # the instance's number
    standing: Standing  # done, progressing, waiting for others or for a person, or blocked
    # a few words for a progress line: the action that affects it, or the reason why it waits
    brief: str = ""
    text: str = ""  # why it is not as the spec asks, or why it is stopped; empty if it simply runs
    on_hold: bool = False  # True if the hold of its pod delays it
    # when its state began or its pod was first missed, in epoch seconds; None if unknown
    since: float | None = None


def view_of(
    plan: Plan, case: Case, *, pod: Document | None = None, obstacle: str = ""
) -> InstanceView:
    """Returns how an instance stands, with the reason.

    Args:
        plan: the decisions of the service about the TApp.
        case: the instance with the decision about it.
        pod: the pod of the instance; None if it has none.
        obstacle: a sentence about an obstacle that the service cannot see, such as a refused write;
            empty if there is none.
    """
    instance, decision = case.instance, case.decision
    if plan.world.tapp.metadata.deletion_timestamp is not None:
        return _standing_during_deletion(plan, instance, pod)
    since = plan.findings.missing.pods_since.get(instance.id)
    overdue = since is not None and plan.now - since >= TROUBLE_AFTER
    standing, brief = _standing(plan, case, obstacle, overdue=overdue)
    text = _reason_sentence(plan, instance, decision, pod, obstacle, overdue=overdue)
    if pod is not None:
        since = _state_since(instance, pod)
    on_hold = standing is Standing.ON_HOLD
    return InstanceView(instance.id, standing, brief, text, on_hold, since)


def _standing_during_deletion(plan: Plan, instance: Instance, pod: Document | None) -> InstanceView:
    """Returns the standing of an instance while its TApp is being deleted.

    If `pod` is None, the pod of the instance is gone and the instance is done.
    """
    if pod is None:
        return InstanceView(
            instance.id, Standing.DONE, text="its pod is gone: the TApp is being deleted"
        )
    text, trouble = (
        "its pod is being deleted, because the TApp is being deleted",
        plan.troubles.get(instance.id),
    )
    stuck = trouble is not None and trouble.text and instance.pod and instance.pod.terminating
    standing = Standing.BLOCKED if stuck else Standing.PROGRESSING
    text += f"; {trouble.text}" if trouble is not None and stuck else ""
    return InstanceView(instance.id, standing, "ending", text, since=_state_since(instance, pod))


def _standing(plan: Plan, case: Case, obstacle: str, *, overdue: bool) -> tuple[Standing, str]:
    """Returns the standing of an instance, and a few words for it.

    `overdue` is True if the pod of the instance should have been created long ago.
    """
    id = case.instance.id
    missing = (f"not created: {obstacle}" if obstacle else _NOT_CREATED) if overdue else ""
    available, trouble = id in plan.available, plan.troubles.get(id)
    found = standing_of(case, available=available, trouble=trouble, not_created=missing)
    if found.standing is Standing.ON_HOLD:
        # The reasons of the holds differ, so the line names the command that shows them.
        return Standing.ON_HOLD, f"on hold; {_why_command(plan)} shows the reasons"
    return found


def _why_command(plan: Plan) -> str:
    metadata = plan.world.tapp.metadata
    return shell_command("why", metadata.name, namespace=metadata.namespace)


def _reason_sentence(  # noqa: PLR0913 - as `standing`
    plan: Plan,
    instance: Instance,
    decision: Verdict,
    pod: Document | None,
    obstacle: str,
    *,
    overdue: bool,
) -> str:
    found, reason, action = plan.troubles.get(instance.id), decision.reason, decision.action
    detail = "; ".join(text for text in (found and found.text, obstacle) if text)
    if action is Action.CREATE and obstacle:
        return f"not created: {detail}"
    if overdue:
        return _NOT_CREATED
    fine = not instance.should_run or instance.id in plan.available
    if reason != Reason.UP_TO_DATE and (fine or reason != Reason.KEPT):
        word = reason if action in PASSIVE_ACTIONS else f"{action}, {reason}"
        return f"{word}: {decision.message}" + (f"; {detail}" if detail else "")
    if fine:
        return obstacle
    waits = found.waiting if found is not None else ""
    # The unready containers below say the same in fewer words.
    if waits and not unready_reasons(pod or {}):
        return f"not available: {'; '.join(text for text in (detail, waits) if text)}"
    return f"not available: {detail or _unavailable_reason(plan, instance, pod)}"


def _unavailable_reason(plan: Plan, instance: Instance, document: Document | None) -> str:
    pod = instance.pod
    if pod is None or not pod.node:
        known = pod.conditions.get("PodScheduled") if pod is not None else None
        if known is None or known.status != "False":
            return "its pod has no node yet"
        detail = ": ".join(text for text in (known.reason, known.message) if text)
        return f"its pod waits for a node: {detail}"
    if plan.serving.states.get(instance.id) is ServingState.DELETION_UNCONFIRMED:
        return "its pod may be terminating: the service has just requested its deletion"
    if instance.update.unfinished:
        return (
            f"its update in place is in progress: container {', '.join(instance.update.unfinished)}"
        )
    if pod.silent:
        return f"node {pod.node} has stopped reporting; its pod may still be serving"
    if pod.phase != "Running":
        return f"its pod is {pod.phase.lower()}"
    if pod.ready is not True:
        why = "; ".join(unready_reasons(document or {}))
        return f"its pod is running but not Ready{why and ': '}{why}"
    return "its pod is Ready, but not yet for minReadySeconds (or for one more run of its probe)"


def _state_since(instance: Instance, document: Document) -> float | None:
    """Returns when the state of an instance began: the newest time in the status of its pod.

    The time is in seconds since the epoch. None if the status has no time.
    """
    pod, metadata = instance.pod, document["metadata"]
    if pod is None:
        return None
    if pod.terminating:
        grace = metadata.get("deletionGracePeriodSeconds") or 0
        at = seconds(metadata.get("deletionTimestamp")) - grace
        return None if at == UNKNOWN else at
    times = [seconds(pod.created), seconds(pod.ready_since)]
    for status in container_statuses(document):
        state: dict[str, Any] = status.get("state") or {}
        times.append(seconds((state.get("running") or {}).get("startedAt")))
        times.append(seconds((state.get("terminated") or {}).get("finishedAt")))
    newest = max(times)
    return None if newest == UNKNOWN else newest
