"""Counts the calls and lines that a function executes.

Tests of costs use these counts instead of times, because counts are equal on every machine.
"""

import sys
from collections.abc import Callable
from typing import Any


def calls(run: Callable[[], object]) -> int:
    """Runs a function and returns the number of calls of Python functions and C functions during
    the run.
    """
    count = 0

    def profile(_frame: Any, event: str, _arg: Any) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    sys.setprofile(profile)
    try:
        run()
    finally:
        sys.setprofile(None)
    return count


def lines(run: Callable[[], object]) -> int:
    """Runs a function and returns the number of Python lines that are executed during the run.

    A line counts each time that it is executed, for example in every iteration of a loop or
    comprehension.
    """
    count = 0

    def trace(_frame: Any, event: str, _arg: Any) -> Any:
        nonlocal count
        count += event == "line"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        run()
    finally:
        sys.settrace(before)
    return count
