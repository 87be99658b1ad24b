"""Measures the steps and memory of one call of the service in a separate process that does nothing
else.

`cost_of` is the entry point.
"""

import atexit
import os
import pickle
import subprocess
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import IO, Any, Final, NamedTuple

from tests.cost.counting_process import Counted
from tests.cost.promise import NEW_PODS
from tests.cost.worlds import Asked

Making = Callable[[], Asked]
_ROOT: Final = Path(__file__).parents[2]


class Cost(NamedTuple):
    """The cost of a call of the service.

    Attributes:
        kb: the size of the request in KB.
        pods: the number of pods that the TApp of the request needs.
        steps: millions of steps (`tests/cost/steps.py`).
        peak: the maximum memory of the process in MB, beyond its memory before the call.
        held: MB that are still allocated after the call and that the memo does not count; 0 if this
            was not measured.
        code: the status code of the response; 0 if the call was aborted.
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
    """Starts the process that counts, once for all tests.

    Returns its standard input, which takes calls, and its standard output, which returns their
    costs.
    """
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.cost.counting_process"],
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
    """Runs one call of a service in the counting process, and returns the call's cost.

    Args:
        path: the endpoint, for example `/sync`.
        body: the request.
        trace: measure the memory that stays allocated as well, which itself needs memory.
        settings: the service's settings. No earlier call has changed this service.

    Raises:
        RuntimeError: the process of the call has died.
    """
    asking, telling = _counting()
    pickle.dump((path, body, trace, settings), asking)
    asking.flush()
    found = pickle.load(telling)
    if found is None:
        raise RuntimeError("the process that was measured has died")
    return Counted(*found)


def cost_of(making: Making, *, trace: bool = False) -> Cost:
    """Returns the cost of one call of the service.

    Args:
        making: builds the request; its own work is not counted.
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
