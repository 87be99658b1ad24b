"""Lines that `status` and `why` repeat as long as nobody acts.

They are about stopped updates, templates that are left over, and a label that the next pods will
lack. Such a state was chosen by a person, so it is no problem that a condition would report. It is
easily forgotten, because all instances run well.
"""

from kubectl_tapp.decide.inspection import Inspection
from kubectl_tapp.decide.phrases import continuation_block
from kubectl_tapp.edit.adoption import lost_label
from kubectl_tapp.edit.canaries import left_over


def reminders_block(view: Inspection) -> list[str]:
    """Returns all reminders with their commands, preceded by an empty line; empty if there are
    none.
    """
    found = [*continuation_block(view)[1:], *reminders(view)]
    return ["", *found] if found else []


def reminders(view: Inspection) -> list[str]:
    """Returns the reminders about left-over templates, and about a label that the next pods will
    lack.

    Reminders about stopped updates are not included, because `continuation_block` has them.
    """
    tapp = view.observed.tapp
    lost = lost_label(tapp, view.observed.pods)
    return [*left_over(tapp), *([lost] if lost else [])]
