"""Texts for instance numbers, as ranges such as `0-3,7`, and for lists in messages."""

import re
from collections.abc import Collection, Iterable, Iterator, Sequence

from tapp.words.quoted import short

# Most ranges, names or sentences that a message lists. Of the others it has only the number.
SHOWN = 8


def _runs(ids: Iterable[int]) -> list[tuple[int, int]]:
    """Returns (first, last) of each run of consecutive numbers, in ascending order."""
    runs: list[tuple[int, int]] = []
    for id in sorted(ids):
        if runs and runs[-1][1] == id - 1:
            runs[-1] = runs[-1][0], id
        else:
            runs.append((id, id))
    return runs


def _text(run: tuple[int, int], between: str) -> str:
    """Returns a run of numbers as text, such as `3-7`.

    Args:
        run: the first and the last number of the run.
        between: the text between the numbers of a run of two, which is not written as a range.
    """
    first, last = run
    if last - first < _FEW:
        return between.join(str(id) for id in range(first, last + 1))
    return f"{first}-{last}"


# A run of this many numbers is written as two numbers, and not as a range.
_FEW = 2


def ranges(ids: Iterable[int]) -> str:
    """Returns instance numbers as ranges for a field of the status, such as `0-3,7`.

    The text contains all numbers, however many there are.
    """
    return ",".join(_text(run, ",") for run in _runs(ids))


def id_list(ids: Iterable[int]) -> str:
    """Returns instance numbers as ranges for a sentence, such as `0-3, 7`.

    At most `SHOWN` ranges are listed, followed by the number of further instances.
    """
    runs = _runs(ids)
    shown = ", ".join(_text(run, ", ") for run in runs[:SHOWN])
    more = sum(last - first + 1 for first, last in runs[SHOWN:])
    return f"{shown} and {more} more" if more else shown


def instance_list(ids: Collection[int]) -> str:
    """Returns instance numbers for a sentence, such as `instance 3` or `instances 0-3, 7`."""
    return f"instance{'s'[: len(ids) != 1]} {id_list(ids)}"


def each_instance(ids: Collection[int]) -> str:
    """Returns instance numbers as the beginning of a sentence about each instance.

    Examples are `instance 3` and `each of instances 3, 4`.
    """
    return f"{'each of ' if len(ids) != 1 else ''}{instance_list(ids)}"


def about(ids: Iterable[int], text: str) -> str:
    """Returns a sentence about instances, such as `instance 3: text` or `instances 0-3: text`.

    If `text` speaks of one instance ("its pod ..."), the sentence about several instances begins
    with `each of instances 0-3`.
    """
    listed = list(ids)
    whom = each_instance(listed) if _SINGULAR.search(text) else instance_list(listed)
    return f"{whom}: {text}"


_SINGULAR = re.compile(r"\bits?\b")


def name_list(names: Sequence[str]) -> str:
    """Returns names for a sentence: at most `SHOWN` names, then the number of further names."""
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return ", ".join([short(name) for name in names[:SHOWN]]) + more


def joined(parts: Sequence[str], what: str = "") -> str:
    """Returns sentences as one text: at most `SHOWN` sentences, followed by the number of further
    ones.

    `what` is appended to this number, so that the text ends with `; and 3 more` and `what`.
    """
    more = f"; and {len(parts) - SHOWN} more{what}" if len(parts) > SHOWN else ""
    return "; ".join(parts[:SHOWN]) + more


def numbers(text: str) -> Iterator[int]:
    """Yields the instance numbers in a text that `ranges` wrote.

    Parts of the text that are not ranges are skipped. At most `MOST` numbers are yielded, because a
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
# Most numbers that are read from a text. It is more than a TApp has instances, and larger than any
# instance number.
MOST = 100_000
