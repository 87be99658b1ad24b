"""Tests the back-off of the work queue after many failures."""

from itertools import pairwise

import pytest

from simulator.metacontroller.loop import FIRST_RETRY, LONGEST_RETRY, WorkQueue
from simulator.objects.clock import Clock
from simulator.objects.objects import Key

KEY: Key = ("n", "t")


def retries(failures: int) -> list[float]:
    """Returns the pauses in seconds between the retries of a parent that always fails.

    `failures` is the number of pauses.
    """
    clock = Clock()
    tries: list[float] = []

    def fail(key: Key) -> None:
        tries.append(clock.now)
        queue.done(key, failed=True)

    queue = WorkQueue(clock, fail, 0.0)
    queue.add(KEY)
    while len(tries) <= failures:
        assert clock.step()
    return [later - earlier for earlier, later in pairwise(tries)]


def test_permanent_failure_is_retried_with_the_longest_pause() -> None:
    """The pause doubles with each failure up to the longest one.

    After 1,024 failures a doubled pause would exceed a float, and the queue must go on.
    """
    pauses = retries(1100)
    assert pauses[:3] == pytest.approx([FIRST_RETRY, 2 * FIRST_RETRY, 4 * FIRST_RETRY])
    assert pauses[-1] == pytest.approx(LONGEST_RETRY)
    assert all(later >= earlier - 1e-6 for earlier, later in pairwise(pauses))
