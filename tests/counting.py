"""Counts the calls and lines that a function runs, for tests of costs on any machine."""

import sys
from collections.abc import Callable
from typing import Any


def calls(run: Callable[[], object]) -> int:
    """Returns the number of calls of Python and C functions."""
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
    """Returns the number of executed lines; every iteration of a loop or comprehension counts."""
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
