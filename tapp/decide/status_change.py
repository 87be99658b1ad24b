"""Changes of one pod's status: its readiness gates, and the phase of a pod on a lost node.

Entry point: `pod_status`. The changes depend only on the pod and the time
(docs/leaving-services.md). The hook `/sync` has written its decisions into annotations of the pod.
These annotations are checked against the pod's own status, so that a wrong annotation changes
nothing.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

import msgspec

from tapp.kube.owners import controller_of
from tapp.kube.parts import map_of
from tapp.pod.availability import NEVER
from tapp.pod.gate import is_begun, opens_in, unproved_since, update_of
from tapp.pod.lost import observed_silence
from tapp.pod.pod import Pod
from tapp.words.times import UNKNOWN, is_written, past_time, written
from tapp.words.vocabulary import GROUP, INSTANCE, KIND


@dataclass(frozen=True)
class StatusChange:
    """The changes that one pod's status needs; with the default values it needs none."""

    # Condition type of a readiness gate -> True to open the gate, False to close it
    gates: Mapping[str, bool] = field(default_factory=dict)
    # Condition types of gates that stay closed and get a time in their condition: since when only
    # elapsed time can prove that the last update is finished
    start_clock: tuple[str, ...] = ()
    failed: str = ""  # why the pod gets the phase Failed; "" if the pod does not get it
    # Seconds until the next call; None if an event of the pod will start the next call
    wait: float | None = None


NOTHING = StatusChange()


class Owner(Enum):
    """The kind of object that owns a pod; the value describes it for people."""

    TAPP = "a TApp"
    NOBODY = "no object: its TApp was deleted without it"
    OTHER = "another owner, or the pod was never an instance"


def owner_of(labels: Any, references: Any) -> Owner:
    """Returns the kind of object that owns a pod.

    Args:
        labels: the labels of the pod, of any shape.
        references: the ownerReferences of the pod, of any shape.
    """
    owner = controller_of(references)
    if owner is None:
        return Owner.NOBODY if INSTANCE in map_of(labels) else Owner.OTHER
    ours = owner.get("kind") == KIND and str(owner.get("apiVersion")).partition("/")[0] == GROUP
    return Owner.TAPP if ours else Owner.OTHER


def pod_status(pod: Pod, owner: Owner, now: float) -> StatusChange:
    """Returns the changes of a pod's status: readiness gates, and the phase Failed on a lost node.

    A pod that never was an instance of a TApp is left as it is. `now` is the time of the call, in
    seconds since the epoch.
    """
    if owner is Owner.OTHER:
        return NOTHING
    # No TApp updates the pod any more, so nothing keeps it out of its Services.
    if owner is Owner.NOBODY:
        spec = msgspec.structs.replace(pod.spec, drain="", lost="")
        pod = msgspec.structs.replace(pod, spec=spec, last_update=None)
    if pod.unreadable or pod.terminating or pod.completed:
        return NOTHING
    if _is_lost(pod, now):
        since = pod.spec.lost
        return StatusChange(
            failed=f"its node has not reported since {since}; its instance starts on another node"
        )
    known, update = pod.conditions, update_of(pod, now)
    gates, start_clock, waits = dict[str, bool](), [], []
    opens = opens_in(pod, update, now)
    # Before the kubelet's first report the pod is not Ready anyway, and the writes of scheduler and
    # kubelet would make most writes of a gate conflicts.
    reported = "ContainersReady" in known
    for gate in (each for each in pod.spec.served_gates if reported or each in known):
        condition = known.get(gate)
        if condition is not None and condition.status == "True":
            # An open gate stays open if only time is missing to prove the update. The kubelet's
            # report of the closed gate would start that time again, and the gate would open and
            # close for ever.
            if pod.spec.drains or is_begun(pod, update):
                gates[gate] = False
        elif condition is None or condition.status != "False":
            gates[gate] = not pod.spec.drains and not update.unfinished
        elif opens == 0 or pod.plausible_time(condition.last_transition_time, now) == UNKNOWN:
            # A gate that stays closed without a time is written again with one, because the grace
            # period counts from there.
            gates[gate] = opens == 0
        elif opens != NEVER:
            waits.append(opens)
            if update.start_clock and unproved_since(pod, condition, now) == UNKNOWN:
                start_clock.append(gate)
    return StatusChange(gates, tuple(start_clock), wait=min(waits, default=None))


def _is_lost(pod: Pod, now: float) -> bool:
    """Returns True if the pod's annotation about a lost node agrees with the pod's status.

    The annotation has the time since when the node is silent. It agrees if the status shows the
    same time, or shows that the node is silent and no time.
    """
    since, noted = observed_silence(pod, now), pod.spec.lost
    if since is None or since > now:
        return False
    if since == UNKNOWN:
        return is_written(noted) and past_time(noted, now) != UNKNOWN
    return noted == written(since)
