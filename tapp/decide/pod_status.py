"""Writes on the status of one pod: its gates, and that its node is lost.

docs/design.md, "Pod status". A pure function of the pod and the time. The composite has decided,
and says so in annotations; here they are checked against what the pod itself tells, so that a
wrong one changes nothing.
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
from tapp.pod.lost import told_silence
from tapp.pod.pod import Pod
from tapp.words.times import UNKNOWN, is_written, past, written
from tapp.words.vocabulary import GROUP, INSTANCE, KIND


@dataclass(frozen=True)
class StatusWish:
    """Changes of a pod's status; empty where it says all of it already."""

    gates: Mapping[str, bool] = field(default_factory=dict)  # condition type -> open, if it changes
    # gates that stay closed, and are to note that from now on only time can prove the update
    start_clock: tuple[str, ...] = ()
    failed: str = ""  # why the pod is to be made Failed, or ""
    wait: float | None = None  # seconds after which to look again; None where an event will do


NOTHING = StatusWish()


class Owner(Enum):
    """Whose a pod is."""

    TAPP = "a TApp"
    NOBODY = "nobody: its TApp went and left it"
    OTHER = "somebody else, or it never was an instance"


def owner_of(labels: Any, references: Any) -> Owner:
    """Whose a pod is, by its labels and ownerReferences, whatever shape these have."""
    owner = controller_of(references)
    if owner is None:
        return Owner.NOBODY if INSTANCE in map_of(labels) else Owner.OTHER
    ours = owner.get("kind") == KIND and str(owner.get("apiVersion")).partition("/")[0] == GROUP
    return Owner.TAPP if ours else Owner.OTHER


def pod_status(pod: Pod, owner: Owner, now: float) -> StatusWish:
    """Decides on one pod.

    An open gate is not closed where only time is missing to prove the update: the kubelet's report
    of that very gate would begin the time anew, and the gate would open and close for ever. A gate
    is first written after the kubelet's first report: before, the pod is not Ready in any case, and
    scheduler and kubelet would make most of these writes conflicts.
    """
    if owner is Owner.OTHER:
        return NOTHING
    if owner is Owner.NOBODY:  # nobody updates it any more, so nothing keeps it out
        spec = msgspec.structs.replace(pod.spec, drain="", lost="")
        pod = msgspec.structs.replace(pod, spec=spec, last_update=None)
    if pod.unreadable or pod.terminating or pod.completed:
        return NOTHING
    if _is_lost(pod, now):
        since = pod.spec.lost
        return StatusWish(
            failed=f"its node is not heard of since {since}; its instance starts elsewhere"
        )
    known, update = pod.conditions, update_of(pod, now)
    gates, start_clock, waits = dict[str, bool](), [], []
    opens = opens_in(pod, update, now)
    reported = "ContainersReady" in known
    for gate in (each for each in pod.spec.served_gates if reported or each in known):
        condition = known.get(gate)
        if condition is not None and condition.status == "True":
            if pod.spec.drains or is_begun(pod, update):
                gates[gate] = False
        elif condition is None or condition.status != "False":
            gates[gate] = not pod.spec.drains and not update.unfinished
        elif opens == 0 or pod.told(condition.last_transition_time, now) == UNKNOWN:
            # One that stays closed is written again with a time: the grace period counts from it.
            gates[gate] = opens == 0
        elif opens != NEVER:
            waits.append(opens)
            if update.start_clock and unproved_since(pod, condition, now) == UNKNOWN:
                start_clock.append(gate)
    return StatusWish(gates, tuple(start_clock), wait=min(waits, default=None))


def _is_lost(pod: Pod, now: float) -> bool:
    """True if the annotation tells the truth: the node is silent, and since then.

    If the pod does not tell since when, the annotation has the time that the service has noted.
    """
    since, asked = told_silence(pod, now), pod.spec.lost
    if since is None or since > now:
        return False
    if since == UNKNOWN:
        return is_written(asked) and past(asked, now) != UNKNOWN
    return asked == written(since)
