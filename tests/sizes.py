"""Chooses the size of a test: small in `make test`, and full in `make full`, which sets `FULL=1`.

The small size is the smallest that still finds the mistakes for which the test exists.
"""

import os
from collections.abc import Iterable
from typing import TypeVar

Case = TypeVar("Case")

FULL = os.environ.get("FULL") == "1"


def size(small: int, full: int) -> int:
    """Returns `full` in a full run, otherwise `small`."""
    return full if FULL else small


def cases(every: Iterable[Case], only_whole: Iterable[Case]) -> list[Case]:
    """Returns all cases in a full run; otherwise leaves out the cases in `only_whole`."""
    left = [] if FULL else list(only_whole)
    return [each for each in every if each not in left]
