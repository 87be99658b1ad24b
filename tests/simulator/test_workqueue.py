"""The queue's back-off, far beyond what a story reaches."""

from itertools import pairwise

import pytest

from simulator.metacontroller.loop import FIRST_RETRY, LONGEST_RETRY, WorkQueue
from simulator.objects.clock import Clock
from simulator.objects.objects import Key

KEY: Key = ("n", "t")


def retries(failures: int) -> list[float]:
    """Seconds between one try and the next, for a parent that fails every time."""
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


def test_a_failure_of_weeks_is_tried_again_at_the_longest_pause() -> None:
    """2 to the power of 1,024 is no float any more: the queue must not end there."""
    pauses = retries(1100)
    assert pauses[:3] == pytest.approx([FIRST_RETRY, 2 * FIRST_RETRY, 4 * FIRST_RETRY])
    assert pauses[-1] == pytest.approx(LONGEST_RETRY)
    assert all(later >= earlier - 1e-6 for earlier, later in pairwise(pauses))
