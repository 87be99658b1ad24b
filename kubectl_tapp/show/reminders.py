"""Lines that `status` and `why` repeat as long as nobody acts: stopped updates, leftover templates.

Such a state was chosen by a person, so it is no problem that a condition would report. It is easily
forgotten, because all instances run well.
"""

from kubectl_tapp.decide.inspection import Inspection
from kubectl_tapp.decide.phrases import going_on_block
from kubectl_tapp.edit.canaries import left_over


def reminders_block(view: Inspection) -> list[str]:
    """Returns the reminders with their commands, preceded by an empty line."""
    going_on, left = going_on_block(view), left_over(view.observed.tapp)
    return going_on + ([*([] if going_on else [""]), *left] if left else [])
