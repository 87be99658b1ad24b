"""Builds reminders: lines that `status` and `why` print on each call until a person acts.

`reminders_block` is the entry point. There is a reminder about each of these states:

- Updates are paused, instances are stopped, or holds delay nothing now.
- The pool has a copy of a template that was made for a canary, and no instance runs the copy.
- Pods have a label that their templates lack, so their replacements will lack it, too.

A person has chosen these states, so no condition reports them as a problem. They are easily
forgotten, because all instances run well.
"""

from kubectl_tapp.base.hints import tapp_command
from kubectl_tapp.base.words import instances_phrase
from kubectl_tapp.decide.inspection import Inspection
from kubectl_tapp.decide.phrases import continuation_block
from kubectl_tapp.edit.adoption import lost_label
from kubectl_tapp.edit.canaries import left_over
from tapp.words.ranges import ranges
from tapp.words.reasons import Reason


def reminders_block(view: Inspection, *, holds: bool) -> list[str]:
    """Returns all reminders with their commands, after an empty line, or an empty list if there are
    no reminders.

    If `holds` is True, there is also a reminder about holds that delay nothing now. `why` passes
    False, because it shows each hold with its instance.
    """
    held = _idle_holds(view) if holds else []
    found = [*continuation_block(view)[1:], *_stopped(view), *held, *reminders(view)]
    return ["", *found] if found else []


def _stopped(view: Inspection) -> list[str]:
    """Returns the reminders about a pause without waiting updates, and about stopped instances."""
    tapp, found = view.observed.tapp, list[str]()
    reasons = {id: case.decision.reason for id, case in view.cases.items()}
    paused = view.plan.world.tapp.spec.update_strategy.paused
    if paused and Reason.PAUSED not in reasons.values():
        resume = tapp_command(tapp, "resume")
        found.append(f"paused: no update waits now; {resume} lets the next one begin")
    if stopped := [id for id, reason in reasons.items() if reason is Reason.KILLED]:
        start = tapp_command(tapp, "start", ranges(stopped))
        are, them = ("is", "it") if len(stopped) == 1 else ("are", "them")
        found.append(f"stopped: {instances_phrase(stopped)} {are} stopped; {start} starts {them}")
    return found


def _idle_holds(view: Inspection) -> list[str]:
    """Returns the reminder about holds that delay nothing now; empty if there are none."""
    held = [
        id
        for id, case in view.cases.items()
        if (pod := case.instance.pod) is not None
        and pod.spec.hold is not None
        and pod.spec.hold.reason
        and case.decision.reason is not Reason.HELD
    ]
    if not held:
        return []
    release = tapp_command(view.observed.tapp, "release", ranges(held))
    return [f"hold: {instances_phrase(held)} on hold, which delays nothing now; {release} ends it"]


def reminders(view: Inspection) -> list[str]:
    """Returns the reminders about unused copies of templates, and about a label that is lost.

    - A copy of a template was made for a canary, and no instance runs the copy any more.
    - Pods have a label that their templates lack, so their replacements will lack it, too.

    Reminders about stopped updates are not included, because `continuation_block` has them.
    """
    tapp = view.observed.tapp
    lost = lost_label(tapp, view.observed.pods)
    return [*left_over(tapp), *([lost] if lost else [])]
