"""Conditions on a rehearsal for `rehearse --fail-if`, for scripts.

unavailable>2   more than two instances did not serve at one time of some run
duration>10m    some run took longer than 10 minutes, or never came to an end
stuck           some run got stuck
"""

from collections.abc import Callable
from dataclasses import dataclass

from kubectl_tapp.base.errors import UsageError
from kubectl_tapp.forecast.fail_if import Condition, read_condition
from kubectl_tapp.forecast.rehearsal import Rehearsal

_MEASURES: dict[str, Callable[[Rehearsal], float]] = {
    "unavailable": lambda found: max((run.worst.count for run in found.everything), default=0),
    "stuck": lambda found: sum(bool(run.stuck) for run in found.everything),
    "duration": lambda found: max(
        (float("inf") if run.duration is None else run.duration for run in found.everything),
        default=0.0,
    ),
}


@dataclass(frozen=True)
class RehearsalCondition:
    """One condition of `rehearse --fail-if`, such as `unavailable>2`."""

    condition: Condition

    @property
    def text(self) -> str:
        """The condition as written on the command line."""
        return self.condition.text

    def holds(self, found: Rehearsal) -> bool:
        """Returns True if a run of the rehearsal `found` meets the condition, so that the command
        has to fail.
        """
        should_run = max((run.should_run for run in found.everything), default=0)
        return self.condition.is_met(_MEASURES[self.condition.word](found), should_run)


def read_condition_of_rehearsal(text: str) -> RehearsalCondition:
    """Parses a condition of the command line.

    Raises UsageError, with the valid forms, if the text is no condition on a rehearsal.
    """
    found = read_condition(text)
    if found.word not in _MEASURES:
        known = ", ".join(_MEASURES)
        raise UsageError(f"--fail-if {text!r}: a rehearsal measures only {known}")
    return RehearsalCondition(found)
