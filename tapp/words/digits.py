"""Numbers in texts that people write: the only place where one is read.

A digit is one of `0123456789`, as for Kubernetes and the CRD's patterns. To Python (`str.isdigit`,
`int`, expressions without `re.ASCII`) a digit of any script is one: `"٣%"` would be 3%.
"""

import re

_PERCENT = re.compile(r"0*(\d{1,3})%", re.ASCII)


def whole(text: str, digits: int = 9) -> int | None:
    """The number that a text is, without a sign (`007` is 7); None where it is none, or longer.

    No number of instances or seconds has more than nine digits.
    """
    return int(text) if is_whole(text) and len(text) <= digits else None


def is_whole(text: str) -> bool:
    """True if a text is made of digits alone, however many."""
    return text.isascii() and text.isdigit()


def percent(text: str) -> int | None:
    """The whole number before the `%`; None where the text is no percentage of three digits."""
    found = _PERCENT.fullmatch(text)
    return int(found[1]) if found else None
