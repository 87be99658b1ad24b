"""The size of a test: as small as it can still find its mistakes, or full with `FULL=1`.

`make test` runs the small sizes, `make full` the full ones.
"""

import os
from collections.abc import Iterable
from typing import TypeVar

Case = TypeVar("Case")

FULL = os.environ.get("FULL") == "1"


def size(small: int, full: int) -> int:
    """Returns the number for this run."""
    return full if FULL else small


def cases(every: Iterable[Case], only_whole: Iterable[Case]) -> list[Case]:
    """Returns all cases; without FULL those in `only_whole` are left out."""
    left = [] if FULL else list(only_whole)
    return [each for each in every if each not in left]
