"""Reads numbers in texts that users write.

A digit is one of `0123456789`, as in Kubernetes and in the CRD's patterns. Python's `str.isdigit`,
`int` and regular expressions without `re.ASCII` accept digits of any script, and would read `"٣%"`
as 3%.
"""

import re

_PERCENT = re.compile(r"0*(\d{1,3})%", re.ASCII)


def whole(text: str, digits: int = 9) -> int | None:
    """Returns the number that a text of at most `digits` digits stands for; `007` is 7.

    Returns None for any other text. By default, at most nine digits are read, because no number of
    instances or seconds has more.
    """
    return int(text) if is_whole(text) and len(text) <= digits else None


def is_whole(text: str) -> bool:
    """Returns True if a text has at least one character, and all of its characters are digits."""
    return text.isascii() and text.isdigit()


def percent(text: str) -> int | None:
    """Returns the number before `%`, or None if the text is no percentage.

    The number has at most three digits, not counting leading zeros.
    """
    found = _PERCENT.fullmatch(text)
    return int(found[1]) if found else None
