"""The standing of each instance (done, progressing, waiting, on hold or blocked), with the reason
in the words that all commands and the page share.

`view_of` is the entry point. It combines the service's decision about an instance with the
status of its pod and with obstacles that the service cannot see.
"""

from dataclasses import dataclass

from kubectl_tapp.base.hints import shell_command
from kubectl_tapp.base.observed import Document
from kubectl_tapp.base.reading import unready_reasons
from tapp.decide.cases import Case
from tapp.decide.instances import Instance
from tapp.decide.standing import DONE, NOT_CREATED, PASSIVE_ACTIONS, InstanceStanding, state_since
from tapp.decide.verdicts import Action
from tapp.plan import Plan
from tapp.pod.waiting import NO_TROUBLE
from tapp.words.reasons import Reason, Standing


@dataclass(frozen=True)
class InstanceView:
    """The standing of one instance, such as done or waiting, and its reason in a few words and in
    full.
    """

    id: int  # the instance's number
    standing: Standing  # done, progressing, waiting for other instances or for a person, or blocked
    # a few words for a progress line: the action on the instance, or the reason why the instance
    # waits
    brief: str = ""
    # a sentence that says why the instance is not as the spec asks, or why it is stopped; empty if
    # the instance is up to date and runs
    text: str = ""
    on_hold: bool = False  # True if the hold of the pod delays an action on the instance
    # when the state of the instance began or its pod was first missing, in seconds since the epoch;
    # None if unknown
    since: float | None = None


def view_of(
    plan: Plan, case: Case, *, pod: Document | None = None, obstacle: str = ""
) -> InstanceView:
    """Returns the standing of an instance, with the reason.

    Args:
        plan: the decisions of the service about the TApp.
        case: the instance with the decision about it.
        pod: the pod of the instance; None if it has none.
        obstacle: a sentence about an obstacle that the service cannot see, such as a refused write;
            empty if there is none.
    """
    instance = case.instance
    if plan.world.tapp.metadata.deletion_timestamp is not None:
        return _standing_during_deletion(plan, instance, pod)
    found = plan.standings.get(instance.id, DONE)
    brief = found.brief
    if found.standing is Standing.ON_HOLD:
        # Each hold can have another reason, so the progress line names the command that shows the
        # reasons.
        brief = f"on hold; {_why_command(plan)} shows the reasons"
    elif brief == NOT_CREATED and obstacle:
        brief = f"not created: {obstacle}"
    text = _reason_sentence(plan, case, found, pod, obstacle)
    on_hold = found.standing is Standing.ON_HOLD
    since = state_since(instance, plan.findings.missing)
    return InstanceView(instance.id, found.standing, brief, text, on_hold, since)


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
    since = state_since(instance, plan.findings.missing)
    return InstanceView(instance.id, standing, "ending", text, since=since)


def _why_command(plan: Plan) -> str:
    metadata = plan.world.tapp.metadata
    return shell_command("why", metadata.name, namespace=metadata.namespace)


def _reason_sentence(
    plan: Plan, case: Case, found: InstanceStanding, pod: Document | None, obstacle: str
) -> str:
    """Returns a sentence that says why an instance is not as the spec asks, or why it is stopped.

    Returns "" if the instance is up to date and runs.

    `found` is the standing of the instance. `view_of` describes the other parameters.
    """
    instance, decision = case.instance, case.decision
    reason, action = decision.reason, decision.action
    trouble = plan.troubles.get(instance.id, NO_TROUBLE)
    detail = "; ".join(text for text in (trouble.text, obstacle) if text)
    if action is Action.CREATE and obstacle:
        return f"not created: {detail}"
    if found.brief == NOT_CREATED:
        return NOT_CREATED
    fine = not instance.should_run or instance.id in plan.available
    if reason != Reason.UP_TO_DATE and (fine or reason != Reason.KEPT):
        word = reason if action in PASSIVE_ACTIONS else f"{action}, {reason}"
        return f"{word}: {decision.message}" + (f"; {detail}" if detail else "")
    if fine:
        return obstacle
    # The pod's status names the probe or readiness gate that is missing, already before the service
    # counts the wait as too long.
    unready = [] if trouble.text or instance.update.unfinished else unready_reasons(pod or {})
    if unready and instance.pod and instance.pod.phase == "Running" and not instance.pod.silent:
        sentence = f"its pod is running but not Ready: {'; '.join(unready)}"
    else:
        sentence = found.sentence
    return f"not available: {'; '.join(text for text in (sentence, obstacle) if text)}"
