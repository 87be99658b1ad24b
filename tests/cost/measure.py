"""What one call costs: steps and memory of a process that does nothing else."""

import atexit
import os
import pickle
import subprocess
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import IO, Any, Final, NamedTuple

from tests.cost.counted import Counted
from tests.cost.promise import NEW_PODS
from tests.cost.worlds import Asked

Making = Callable[[], Asked]
_ROOT: Final = Path(__file__).parents[2]


class Cost(NamedTuple):
    """What a call cost.

    Attributes:
        kb: KB of the request.
        pods: pods that it asked for.
        steps: millions of steps (`tests/cost/steps.py`).
        peak: MB that the process took at most, beyond the request.
        held: MB that are still held afterwards, beyond what the memo says; 0 if not traced.
        code: status code; 0 if the call was given up.
        answer: KB of the answer.
    """

    kb: float
    pods: int
    steps: float
    peak: float
    held: float = 0.0
    code: int = 0
    answer: float = 0.0


@cache
def _counting() -> tuple[IO[bytes], IO[bytes]]:
    """A process that counts, for all tests of this one: its standard input and output."""
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.cost.counted"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        cwd=_ROOT,
        env={**os.environ, "PYTHONHASHSEED": "0"},  # the order of a set changes nothing
    )
    assert process.stdin is not None
    assert process.stdout is not None
    atexit.register(process.communicate)  # closes its standard input, and so ends it
    return process.stdin, process.stdout


def counted(path: str, body: bytes, *, trace: bool = False, **settings: Any) -> Counted:
    """Counts one call of a service with these settings, which nothing else has called before."""
    asking, telling = _counting()
    pickle.dump((path, body, trace, settings), asking)
    asking.flush()
    found = pickle.load(telling)
    if found is None:
        raise RuntimeError("the process that was measured has died")
    return Counted(*found)


def cost_of(making: Making, *, trace: bool = False) -> Cost:
    """The cost of one call.

    Args:
        making: makes the request, which costs nothing here.
        trace: whether to look at what is held afterwards, which costs memory itself.
    """
    asked = making()
    found = counted(asked.path, asked.body, trace=trace, max_new_pods_bytes=NEW_PODS)
    return Cost(
        len(asked.body) / 1024,
        asked.pods,
        found.steps / 1e6,
        found.peak / 1e3,
        found.held / 1e6,
        found.code,
        found.answer / 1024,
    )
