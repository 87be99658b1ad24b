"""Conditions on a forecast for `plan --fail-if`, for scripts.

recreate            some instance gets a new pod
delete>1            more than one instance is deleted
unavailable>20%     more than 20% of the instances that should run are unavailable at one time
duration>10m        the edit takes longer than 10 minutes
stuck               an instance never reaches its goal, and updates are not paused
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from operator import eq, ge, gt, le, lt

from kubectl_tapp.base.errors import CommandError, UsageError
from kubectl_tapp.forecast.forecast import Forecast, Outcome

_CONDITION = re.compile(
    r"\s*+([a-z-]++)(?:\s*+(>=|<=|==|=|>|<)\s*+(\d++(?:\.\d++)?)(?:\s*+(%|s|m|h))?)?\s*", re.ASCII
)
_UNITS = {"s": 1.0, "m": 60.0, "h": 3600.0}
_COMPARE: dict[str, Callable[[float, float], bool]] = {
    ">": gt, ">=": ge, "<": lt, "<=": le, "=": eq, "==": eq,
}  # fmt: skip
_MEASURES: dict[str, Callable[[Forecast], float]] = {
    "recreate": lambda forecast: len(forecast.of(Outcome.RECREATED)),
    "in-place": lambda forecast: len(forecast.of(Outcome.IN_PLACE)),
    "create": lambda forecast: len(forecast.of(Outcome.CREATED)),
    "delete": lambda forecast: len(forecast.of(Outcome.DELETED)),
    "delete-claim": lambda forecast: list(forecast.claims.values()).count("deleted"),
    "stuck": lambda forecast: len(forecast.stuck),
    "paused": lambda forecast: len(forecast.paused),
    "condition": lambda forecast: len(forecast.refusals),
    "change": lambda forecast: len(forecast.writes),
    "unavailable": lambda forecast: forecast.unavailable_worst,
    "duration": lambda forecast: forecast.duration,
}


@dataclass(frozen=True)
class Condition:
    """One condition of `--fail-if`, such as `unavailable>20%`.

    Attributes:
        text: the condition as written on the command line.
        word: the measured property of the forecast, such as `unavailable`.
        compare: the comparison, such as `>`.
        limit: the number with which the property is compared.
        unit: the unit of the number: `%`, `s`, `m` or `h`, or empty.
    """

    text: str
    word: str
    compare: str
    limit: float
    unit: str

    def holds(self, forecast: Forecast) -> bool:
        """Returns True if the forecast meets the condition, so that the command has to fail."""
        return self.is_met(_MEASURES[self.word](forecast), forecast.should_run)

    def is_met(self, measured: float, should_run: int) -> bool:
        """Returns True if a measured number meets the condition.

        `should_run` is the number of instances that should run, which percentages refer to.
        """
        if self.unit == "%":
            limit = self.limit * should_run / 100
        else:
            limit = self.limit * _UNITS.get(self.unit, 1.0)
        return _COMPARE[self.compare](measured, limit)


def read_condition(text: str) -> Condition:
    """Parses a condition of the command line; raises UsageError with the valid forms."""
    match = _CONDITION.fullmatch(text)
    if match is None:
        raise _invalid_condition(
            text, "write WORD or WORD>NUMBER, such as recreate or unavailable>2"
        )
    word, compare, number, unit = match.groups()
    if word not in _MEASURES:
        raise _invalid_condition(text, f"{word!r} is no measure; use one of {', '.join(_MEASURES)}")
    if compare is None:
        if word in _EXAMPLES:
            raise _invalid_condition(text, f"{word} needs a limit, such as {_EXAMPLES[word]}")
        compare, number = ">", "0"
    if unit in _UNITS and word != "duration":
        raise _invalid_condition(text, f"{word} counts instances and takes no unit of time")
    if unit == "%" and word != "unavailable":
        raise _invalid_condition(text, f"only unavailable can be a percentage, not {word}")
    if word == "duration" and not unit:
        raise _invalid_condition(text, "a duration needs a unit, such as 90s, 10m or 2h")
    return Condition(text.strip(), word, compare, float(number), unit or "")


_EXAMPLES = {"unavailable": "unavailable>2", "duration": "duration>10m"}


def _invalid_condition(text: str, why: str) -> CommandError:
    return UsageError(f"--fail-if {text!r}: {why}")
