"""Back-off of replacements: how long a failed pod stays before a new pod replaces it.

If a kubelet refuses a pod (no cpu left, a forbidden sysctl), it would refuse the new pod, too. So
the wait doubles with each failed pod in a row (docs/finished.md):

    due = end of the pod + min(LONGEST, FIRST * 2 ** (failures - 1))

An annotation on the pod has the number of failures. While the instance has no pod, only
`status.failures` has the number. So from the second failure on, a pod is deleted only after
Metacontroller has sent a status that contains the number.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from tapp.pod.pod import Pod
from tapp.words.digits import whole
from tapp.words.times import UNKNOWN, past_time

# Seconds before the second pod, and the longest wait.
FIRST, LONGEST = 1.0, 300.0
# Seconds. The failure of a pod that lived longer starts a new count, as in the kubelet's back-off.
SOON = 600.0
# Most characters of the annotation with the number of failures; a longer text is invalid.
_DIGITS = 4
# The highest number of failures that is counted. The wait has reached its maximum long before.
_MAX_FAILURES = 1_000


@dataclass(frozen=True)
class Pace:
    """The time at which a completed pod may be replaced, and the number of failures behind it."""

    # Number of pods in a row that failed soon after their creation, including this one.
    failures: int
    due: float  # When the next pod may be created, in seconds since the epoch.
    # True if the time `due` has come and the pod may be deleted, because `status.failures` already
    # has the number of failures.
    is_due: bool


def pace(pod: Pod, id: int, noted: Mapping[str, int], now: float) -> Pace | None:
    """Returns when a completed pod may be replaced; None if it may be replaced at once.

    Args:
        pod: the pod; the caller has checked that it has completed.
        id: the number of its instance.
        noted: `status.failures` as Metacontroller sent it: instance number -> failures.
        now: the time of this sync, in seconds since the epoch.
    """
    began, ended = _lifetime(pod, now)
    if not pod.refused_by_kubelet and ended - began > SOON:
        return None
    failures = min((whole(pod.failures_text, _DIGITS) or 0) + 1, _MAX_FAILURES)
    due = ended + min(LONGEST, FIRST * 2.0 ** min(failures - 1, 10))
    survives = failures == 1 or noted.get(str(id), 0) >= failures
    return Pace(failures, due, due <= now and survives)


def _lifetime(pod: Pod, now: float) -> tuple[float, float]:
    """Returns when a completed pod began and ended, in seconds since the epoch.

    If the pod has no usable times, its end is `now`.
    """
    began = pod.created_at(now)
    ends = [status.now.terminated for status in pod.containers]
    times = [past_time(end.finished_at, now) for end in ends if end is not None]
    times += [
        past_time(condition.last_transition_time, now)
        for name, condition in pod.conditions.items()
        if name in ("Ready", "PodScheduled", "DisruptionTarget")
    ]
    ended = max(began, *times, UNKNOWN)
    return began, now if ended == UNKNOWN else ended
