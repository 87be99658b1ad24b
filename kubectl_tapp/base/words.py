"""Formats numbers, durations and instances for messages."""

import math
from collections.abc import Iterable

from tapp.words.ranges import id_list

_MINUTE, _HOUR, _DAY = 60, 3600, 86400


def short_duration(seconds: float) -> str:
    """Returns a duration in kubectl's short form, such as `45s`, `3m10s` or `40d`.

    Returns `<unknown>`, as kubectl does, for an infinite duration, which stands for an unknown
    beginning.
    """
    if not math.isfinite(seconds):
        return "<unknown>"
    whole = max(0, int(seconds))
    if whole < 2 * _MINUTE:
        return f"{whole}s"
    for unit, low, letters in ((_DAY, _HOUR, "dh"), (_HOUR, _MINUTE, "hm"), (_MINUTE, 1, "ms")):
        if whole >= 2 * unit or unit == _MINUTE:
            first, rest = divmod(whole, unit)
            second = rest // low
            short = first >= _MANY or not second
            return f"{first}{letters[0]}" + ("" if short else f"{second}{letters[1]}")
    return f"{whole}s"


# From this number of the larger unit on, the smaller unit is left out: `12m`, not `12m5s`
_MANY = 10


def rounded_duration(seconds: float) -> str:
    """Returns a rounded duration for an estimate, such as `45 s`, `4 min` or `2 h 10 min`."""
    if seconds < 90:  # noqa: PLR2004 - a minute and a half
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    if minutes < 120:  # noqa: PLR2004 - two hours
        return f"{minutes} min"
    hours, rest = divmod(minutes, 60)
    return f"{hours} h {rest} min" if rest else f"{hours} h"


def plural(number: int, word: str) -> str:
    """Returns `word` for 1, and `word` with an `s` for any other number."""
    return word if number == 1 else f"{word}s"


def instances_phrase(ids: Iterable[int]) -> str:
    """Returns `instance 3` for one instance, or `instances 0-3, 7` for several."""
    listed = list(ids)
    return f"{plural(len(listed), 'instance')} {id_list(listed)}"
