"""What is written into the status of one pod: its gates, and that its node is lost.

docs/design.md, "Pod status". A pure function of the pod and the time. The composite has decided,
and says so in annotations; here they are checked against what the pod itself tells, so that a
wrong one changes nothing.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from tapp.pod.availability import NEVER
from tapp.pod.gate import is_begun, noted_since, opens_in, update_of
from tapp.pod.pod import Pod
from tapp.words.times import UNKNOWN, written


@dataclass(frozen=True)
class Wish:
    """What a pod's status should say; empty where it says so already.

    Attributes:
        gates: condition type -> whether it is to be open, for those that change.
        noted: gates that stay closed, and are to note that from now on only time can prove the
            update.
        failed: why the pod is to be made Failed, or "".
        wait: seconds after which to look again; None where an event will do.
    """

    gates: Mapping[str, bool] = field(default_factory=dict)
    noted: tuple[str, ...] = ()
    failed: str = ""
    wait: float | None = None


NOTHING = Wish()


def pod_status(pod: Pod, now: float) -> Wish:
    """Decides on one pod.

    An open gate is not closed where only time is missing to prove the update: the kubelet's report
    of that very gate would begin the time anew, and the gate would open and close for ever.

    Args:
        pod: a pod of a TApp.
        now: seconds since the epoch.
    """
    if pod.odd or pod.terminating or pod.completed:
        return NOTHING
    if _is_lost(pod, now):
        since = pod.told.lost
        return Wish(failed=f"its node is not heard of since {since}; its instance starts elsewhere")
    known, update = pod.conditions, update_of(pod, now)
    gates, noted, waits = dict[str, bool](), [], []
    opens = opens_in(pod, update, now)
    for gate in pod.told.served_gates:
        condition = known.get(gate)
        if condition is not None and condition.status == "True":
            if pod.told.drains or is_begun(pod, update):
                gates[gate] = False
        elif condition is None or condition.status != "False":
            gates[gate] = not pod.told.drains and not update.open
        elif opens == 0:
            gates[gate] = True
        elif opens != NEVER:
            waits.append(opens)
            if update.noted and noted_since(pod, condition) == UNKNOWN:
                noted.append(gate)
    return Wish(gates, tuple(noted), wait=min(waits, default=None))


def _is_lost(pod: Pod, now: float) -> bool:
    """Whether the annotation tells the truth: the node is silent, and since then."""
    since = pod.silent_since
    if since is None or since == UNKNOWN or since > now:
        return False
    return pod.told.lost == written(since)
