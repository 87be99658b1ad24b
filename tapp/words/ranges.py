"""Writes instance numbers as ranges (`0-3,7`), and lists for messages."""

import re
from collections.abc import Collection, Iterable, Iterator, Sequence

from tapp.words.quoted import short

# Ranges, names or sentences that a message lists before it only counts the rest.
SHOWN = 8


def _runs(ids: Iterable[int]) -> list[tuple[int, int]]:
    """Returns the first and the last number of each run of consecutive instance numbers."""
    runs: list[tuple[int, int]] = []
    for id in sorted(ids):
        if runs and runs[-1][1] == id - 1:
            runs[-1] = runs[-1][0], id
        else:
            runs.append((id, id))
    return runs


def _text(run: tuple[int, int], between: str) -> str:
    """Returns a run of numbers as text: `3-7`, or two numbers with `between` between them."""
    first, last = run
    if last - first < _FEW:
        return between.join(str(id) for id in range(first, last + 1))
    return f"{first}-{last}"


# Two consecutive numbers are not written as a range.
_FEW = 2


def ranges(ids: Iterable[int]) -> str:
    """Returns instance numbers as ranges for a field of the status: `0-3,7`.

    All numbers are listed, however many there are.
    """
    return ",".join(_text(run, ",") for run in _runs(ids))


def id_list(ids: Iterable[int]) -> str:
    """Returns instance numbers as ranges for a sentence: `0-3, 7`.

    At most `SHOWN` ranges are listed, followed by the count of the other numbers.
    """
    runs = _runs(ids)
    shown = ", ".join(_text(run, ", ") for run in runs[:SHOWN])
    more = sum(last - first + 1 for first, last in runs[SHOWN:])
    return f"{shown} and {more} more" if more else shown


def instance_list(ids: Collection[int]) -> str:
    """Returns instance numbers for a sentence: `instance 3`, or `instances 0-3, 7`."""
    return f"instance{'s'[: len(ids) != 1]} {id_list(ids)}"


def each_instance(ids: Collection[int]) -> str:
    """Returns instance numbers as the beginning of a text about each of these instances.

    Examples are `instance 3` and `each of instances 3, 4`.
    """
    return f"{'each of ' if len(ids) != 1 else ''}{instance_list(ids)}"


def name_list(names: Sequence[str]) -> str:
    """Returns names for a sentence: at most `SHOWN` names, then the count of the others."""
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return ", ".join([short(name) for name in names[:SHOWN]]) + more


def joined(parts: Sequence[str], what: str = "") -> str:
    """Returns sentences joined for a message: at most `SHOWN`, then the count of the others.

    `what` is appended to the count: `; and 3 more` + `what`.
    """
    more = f"; and {len(parts) - SHOWN} more{what}" if len(parts) > SHOWN else ""
    return "; ".join(parts[:SHOWN]) + more


def numbers(text: str) -> Iterator[int]:
    """Yields the instance numbers in a text that `ranges` wrote.

    Parts of the text that are no range are skipped. At most `MOST` numbers are yielded, because a
    user may have written any range into the status.
    """
    left = MOST
    for part in text.split(","):
        found = _RANGE.fullmatch(part)
        if found is None:
            continue
        first = int(found[1])
        for id in range(first, min(int(found[2] or first), MOST - 1, first + left - 1) + 1):
            left -= 1
            yield id


_RANGE = re.compile(r"(\d{1,6})(?:-(\d{1,6}))?", re.ASCII)
# Larger than any instance number, and than the count of numbers in any valid text.
MOST = 100_000
