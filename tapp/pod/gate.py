"""The readiness gates of in-place updates: when they are open, and who waits for that.

docs/design.md, "Pod status". A pod with one of `vocabulary.GATES` is Ready only while no update in
place is under way. The composite asks for a closed gate by the annotation `drain`, and the update
itself keeps it closed; `pod_status.py` writes it.
"""

from typing import Any

from tapp.kube.objects import Condition
from tapp.pod.availability import NEVER, proved_at
from tapp.pod.inplace import Progress, progress
from tapp.pod.pod import Pod
from tapp.words.notes import GateNote
from tapp.words.times import UNKNOWN, past, seconds

SECOND = 1.0  # Times in a status are cut to the second: what they tell of may be almost one younger


def _gates(pod: Pod) -> list[Condition | None]:
    """The conditions of the gates that are served; None for one that nobody has written yet."""
    gates = pod.spec.served_gates
    known = pod.conditions if gates else {}
    return [known.get(gate) for gate in gates]


def _closed(pod: Pod) -> list[Condition]:
    return [gate for gate in _gates(pod) if gate is not None and gate.status == "False"]


def has_closed_gate(pod: Pod) -> bool:
    """True if a gate that is served is not open; a Ready pod may have one for a moment."""
    return any(gate is None or gate.status != "True" for gate in _gates(pod))


def only_its_gate_keeps_it_out(pod: Pod) -> bool:
    """True if the pod would serve if its gate were open, and may have done so a moment ago."""
    ready = pod.conditions.get("ContainersReady")
    return bool(_closed(pod)) and ready is not None and ready.status == "True"


def is_begun(pod: Pod, update: Progress) -> bool:
    """True if an update is under way that an open gate has yet to be closed for.

    A container that is to be replaced still is the one that the record names. Where all have been
    replaced the gate was opened after the update: whatever else changes in the pod's spec (a
    toleration, a resize), no kubelet has seen for a moment, and that makes no finished update
    unfinished. The condition's message is for people and decides nothing.
    """
    return not update.only_time_can_tell and any(
        (pod.container(name).container_id or "") == ran.id and ran.image != pod.spec.images[name]
        for name, ran in update.unfinished.items()
    )


def closed_since(pod: Pod, now: float) -> float | None:
    """Since when a closed gate has kept the pod out of its Services, in seconds since the epoch.

    None: it does not. A pod that is Ready still serves, whatever its gate says: its kubelet has not
    looked yet. So the time counts from Ready's change where that came later. Without any usable
    time it is `now`, until the hook for pods has written the gate's condition again, with a time.
    """
    if pod.ready is True:
        return None
    times = [_past(pod, gate.last_transition_time, now) for gate in _closed(pod)]
    if not times:
        return None
    since = max(min(times), _past(pod, pod.ready_since, now))
    return now if since == UNKNOWN else since


def _past(pod: Pod, time: Any, now: float) -> float:
    at = pod.told(time, now)
    return at if at <= now else UNKNOWN


def drained_in(pod: Pod, grace_seconds: int, now: float) -> float | None:
    """Seconds until a pod has been out of its Services for long enough; None: not out of them."""
    since = closed_since(pod, now)
    return None if since is None else max(0.0, since + grace_seconds + SECOND - now)


def unproved_since(pod: Pod, gate: Condition | None, now: float = NEVER) -> float:
    """Since when only time can prove the pod's update, as its closed gate has it noted.

    `status.settling` of the TApp holds the same for the composite, which a decorator does not see.
    A server before Kubernetes 1.34 drops a condition's `observedGeneration`; there the record holds
    the time of the update, and what was noted before it is of another one.
    """
    if gate is None or gate.status != "False":
        return UNKNOWN
    note = GateNote.decode(gate.last_probe_time, gate.observed_generation)
    if note is None:
        return UNKNOWN
    noted, began = past(note.since, now), pod.last_update.at if pod.last_update is not None else ""
    of_this = note.generation == pod.generation
    if not note.generation and began and not pod.tells_generation:
        of_this = noted >= seconds(began)
    return noted if of_this else UNKNOWN


def update_of(pod: Pod, now: float) -> Progress:
    """Progress of the pod's update, from the pod alone."""
    noted = [unproved_since(pod, gate, now) for gate in _gates(pod)]
    return progress(pod, now, max(noted, default=UNKNOWN))


def opens_in(pod: Pod, update: Progress, now: float) -> float:
    """Seconds until a closed gate may open: 0 if it may, `NEVER` if time alone does not help."""
    if pod.spec.drains or update.unfinished:
        return NEVER if update.wait is None or pod.spec.drains else update.wait
    ready = pod.conditions.get("ContainersReady")
    if not pod.running or ready is None or ready.status != "True":
        return NEVER
    return max(0.0, proved_at(pod, now) - now)


def unserved_in(pod: Pod, update: Progress, patience: float, now: float) -> float | None:
    """Seconds until it is plain that nobody opens a gate that could be open, or None."""
    shut = [gate for gate in _gates(pod) if gate is None or gate.status != "True"]
    if not shut or not pod.running or opens_in(pod, update, now) > 0:
        return None
    times = [pod.told(item.last_transition_time, now) for item in shut if item is not None]
    ready = pod.told(pod.conditions["ContainersReady"].last_transition_time, now)
    since = [ready, proved_at(pod, now), pod.made_at(now)]
    return max(0.0, max(since + times) + patience - now)
