"""Instance numbers as people write them: `0-3,7`."""

import re
from collections.abc import Iterable, Iterator, Sequence

from tapp.words.quoted import short

SHOWN = 8  # Number of ranges that a message lists before it says how many instances more there are


def _runs(ids: Iterable[int]) -> list[tuple[int, int]]:
    runs: list[tuple[int, int]] = []
    for id in sorted(ids):
        if runs and runs[-1][1] == id - 1:
            runs[-1] = runs[-1][0], id
        else:
            runs.append((id, id))
    return runs


def _text(run: tuple[int, int], between: str) -> str:
    first, last = run
    if last - first < _FEW:
        return between.join(str(id) for id in range(first, last + 1))
    return f"{first}-{last}"


_FEW = 2  # Two numbers in a row are written as two


def ranges(ids: Iterable[int]) -> str:
    """All of the numbers, for machines: `0-3,7`."""
    return ",".join(_text(run, ",") for run in _runs(ids))


def id_list(ids: Iterable[int]) -> str:
    """Numbers for a sentence: `0-3, 7`, at most so many ranges, and how many instances more."""
    runs = _runs(ids)
    shown = ", ".join(_text(run, ", ") for run in runs[:SHOWN])
    more = sum(last - first + 1 for first, last in runs[SHOWN:])
    return f"{shown} and {more} more" if more else shown


def name_list(names: Sequence[str]) -> str:
    """Names for a sentence: so many of them, and how many there are more."""
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return ", ".join([short(name) for name in names[:SHOWN]]) + more


def joined(parts: Sequence[str], what: str = "") -> str:
    """Sentences for a message: the first of them, and how many there are more."""
    more = f"; and {len(parts) - SHOWN} more{what}" if len(parts) > SHOWN else ""
    return "; ".join(parts[:SHOWN]) + more


def numbers(text: str) -> Iterator[int]:
    """The numbers of a text that `ranges` wrote; what is none is left out.

    No more than `MOST` of them: somebody's nonsense must cost neither time nor memory.
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
MOST = 100_000  # More than any instance's number, and than there are numbers in one text
