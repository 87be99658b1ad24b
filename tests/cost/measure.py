"""Measures the steps and memory of one call in a process that does nothing else."""

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
    """The cost of a call.

    Attributes:
        kb: the size of the request in KB.
        pods: the number of pods that the request asks for.
        steps: millions of steps (`tests/cost/steps.py`).
        peak: the maximum memory of the process in MB, beyond the request.
        held: MB that are still allocated afterwards and that the memo does not count; 0 if not
            traced.
        code: the status code; 0 if the call was aborted.
        answer: the size of the response in KB.
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
    """Starts the process that counts, once for all tests, and returns its standard input and
    output.
    """
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.cost.counted"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        cwd=_ROOT,
        env={**os.environ, "PYTHONHASHSEED": "0"},  # makes the order of sets the same in each run
    )
    assert process.stdin is not None
    assert process.stdout is not None
    atexit.register(process.communicate)  # closes its standard input, which ends the process
    return process.stdin, process.stdout


def counted(path: str, body: bytes, *, trace: bool = False, **settings: Any) -> Counted:
    """Counts one call of a service with these settings. No earlier call has used that service."""
    asking, telling = _counting()
    pickle.dump((path, body, trace, settings), asking)
    asking.flush()
    found = pickle.load(telling)
    if found is None:
        raise RuntimeError("the process that was measured has died")
    return Counted(*found)


def cost_of(making: Making, *, trace: bool = False) -> Cost:
    """Returns the cost of one call.

    Args:
        making: creates the request; its own work is not counted.
        trace: measure the memory that stays allocated as well, which itself needs memory.
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
