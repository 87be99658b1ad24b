"""Verdicts: an action on an instance, its reason, and the change that is written for it."""

from enum import StrEnum

import msgspec

from tapp.decide.changes import Adopt, Create, Mark, Resize, Update
from tapp.words.reasons import Reason


class Action(StrEnum):
    """The kind of action that a verdict takes on the pod of an instance."""

    CREATE = "Create"
    KEEP = "Keep"
    ADOPT = "Adopt"  # Write our labels on a pod that the template already describes
    MARK = "Mark"  # Write markers: labels, annotations or a toleration (`markers.py`)
    UPDATE = "UpdateInPlace"
    RECREATE = "Recreate"
    DELETE = "Delete"
    ABSENT = "Absent"  # There is no pod, because none is wanted or none can be created


DISRUPTIVE = (Action.UPDATE, Action.RECREATE)
"""Actions that may take an instance down, and therefore go through the budget."""


class Verdict(msgspec.Struct, frozen=True, gc=False):
    """An action on the pod of an instance, with its reason and a sentence for users."""

    action: Action
    reason: Reason
    message: str
    # The write to the pod; None if the pod stays as it is or is deleted
    change: Create | Adopt | Mark | Update | Resize | None = None

    @property
    def is_update(self) -> bool:
        """Returns True if the action may take the instance down: an update in place or a
        replacement.
        """
        return self.action in DISRUPTIVE


def wait(reason: Reason, message: str) -> Verdict:
    """Returns the verdict that leaves the pod of an instance as it is.

    `reason` says why, and `message` is the sentence for users.
    """
    return Verdict(Action.KEEP, reason, message)


def no_template(reason: Reason, message: str, *, has_pod: bool) -> Verdict:
    """Returns the verdict on an instance without a template: its pod stays, or none is created.

    Args:
        reason: the reason why it has no template.
        message: the sentence for users.
        has_pod: True if the instance has a pod.
    """
    return Verdict(Action.KEEP if has_pod else Action.ABSENT, reason, message)


UP_TO_DATE = wait(Reason.UP_TO_DATE, "its pod matches its template")
