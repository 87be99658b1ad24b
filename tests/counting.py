"""Counts what a function runs, for tests of what it costs: the same on every machine."""

import sys
from collections.abc import Callable
from typing import Any


def calls(run: Callable[[], object]) -> int:
    """Functions called, written in Python and in C."""
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
    """Lines run; every round of a loop counts, in comprehensions too."""
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
