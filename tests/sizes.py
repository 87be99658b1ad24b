"""The size of a test: as small as still notices what it is for, or whole with `FULL=1`.

`make test` runs the small ones; `make full` runs all tests whole.
"""

import os
from collections.abc import Iterable
from typing import TypeVar

Case = TypeVar("Case")

FULL = os.environ.get("FULL") == "1"


def size(small: int, full: int) -> int:
    """The number that there are, in this run."""
    return full if FULL else small


def cases(every: Iterable[Case], only_whole: Iterable[Case]) -> list[Case]:
    """All of them, in this run without those that a whole run has besides."""
    left = [] if FULL else list(only_whole)
    return [each for each in every if each not in left]
