"""Pace at which pods that failed are replaced: at once, or the later the more often it has failed.

docs/design.md, "Completed and finished instances". A kubelet that refuses a pod (no CPU left, a
forbidden sysctl) would refuse the next one, too. The number of pods in a row that failed soon after
they were made is kept on the pod. While there is none, `status.failures` hands it on: from the
second failure on a pod goes only when the parent that we were sent already holds the number.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from tapp.pod.pod import Pod
from tapp.words.digits import whole
from tapp.words.times import UNKNOWN, past

FIRST, LONGEST = 1.0, 300.0  # Seconds before the second pod, doubling up to the longest wait
SOON = 600.0  # A pod that lived longer has not failed soon: the count begins anew (as a kubelet's)
_DIGITS = 4
_MOST = 1_000  # No count goes higher; the wait has long been the longest


@dataclass(frozen=True)
class Pace:
    """The pace of a completed pod that gives way to a new one."""

    failures: int  # pods in a row that failed soon after they were made, this one included
    due: float  # when the next one may be made, in seconds since the epoch
    # whether that time has come, and the number survives the pod: `status.failures` holds it
    # already
    is_due: bool


def pace(pod: Pod, id: int, noted: Mapping[str, int], now: float) -> Pace | None:
    """The pace of replacing a completed pod, by `status.failures`; None where it need not wait."""
    began, ended = _life(pod, now)
    if not pod.refused_by_kubelet and ended - began > SOON:
        return None
    failures = min((whole(pod.failures_text, _DIGITS) or 0) + 1, _MOST)
    due = ended + min(LONGEST, FIRST * 2.0 ** min(failures - 1, 10))
    survives = failures == 1 or noted.get(str(id), 0) >= failures
    return Pace(failures, due, due <= now and survives)


def _life(pod: Pod, now: float) -> tuple[float, float]:
    """The times when a completed pod began and ended, as far as it tells."""
    began = pod.made_at(now)
    ends = [status.now.terminated for status in pod.containers]
    times = [past(end.finished_at, now) for end in ends if end is not None]
    times += [
        past(condition.last_transition_time, now)
        for name, condition in pod.conditions.items()
        if name in ("Ready", "PodScheduled", "DisruptionTarget")
    ]
    ended = max(began, *times, UNKNOWN)
    return began, now if ended == UNKNOWN else ended
