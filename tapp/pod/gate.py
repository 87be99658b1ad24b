"""The readiness gates of this service: when a gate may open, and when an update may begin.

A pod with one of the gates in `vocabulary.GATES` leaves its Services before an update in place, and
returns after it (docs/leaving-services.md):

    annotation `drain` -> gate False -> out of the Services -> grace period -> update -> gate True

The hook `/sync` writes the annotation and the update; the hook `/pod-status`
(`tapp/decide/status_change.py`) writes the gate. `drained_in` says when the update may begin,
`opens_in` when the gate may open:

    drained_at = max(gate closed, Ready turned False) + grace period + 1
    opens_at   = update finished, ContainersReady True, and the probes have run (`proved_at`)
"""

from typing import Any

from tapp.kube.objects import Condition
from tapp.pod.availability import NEVER, proved_at
from tapp.pod.inplace import Progress, progress
from tapp.pod.pod import Pod
from tapp.words.notes import GateNote
from tapp.words.times import UNKNOWN, past_time, seconds

# Times in a status are cut to the second, so that the true time may be up to a second later.
SECOND = 1.0


def _gates(pod: Pod) -> list[Condition | None]:
    """Returns the conditions of the pod's readiness gates that belong to this service.

    A gate without a condition has the entry None.
    """
    gates = pod.spec.served_gates
    known = pod.conditions if gates else {}
    return [known.get(gate) for gate in gates]


def _closed_gates(pod: Pod) -> list[Condition]:
    """Returns the conditions of the pod's readiness gates of this service that are False."""
    return [gate for gate in _gates(pod) if gate is not None and gate.status == "False"]


def has_closed_gate(pod: Pod) -> bool:
    """Returns True if a readiness gate of this service is not True.

    A pod with such a gate may still be Ready for a moment, until its kubelet has seen the gate.
    """
    return any(gate is None or gate.status != "True" for gate in _gates(pod))


def is_unready_by_gate_only(pod: Pod) -> bool:
    """Returns True if the containers are ready, and only a closed gate keeps the pod unready.

    Returns False if no gate is closed.
    """
    ready = pod.conditions.get("ContainersReady")
    return bool(_closed_gates(pod)) and ready is not None and ready.status == "True"


def is_begun(pod: Pod, update: Progress) -> bool:
    """Returns True if an update in place has begun for which the gate has to be closed.

    That is so while a container of the update's record still exists and has another image than the
    spec. When all recorded containers are replaced, the result is False, even if the update looks
    unfinished. The gate may then have been opened for good. A later change of the pod's spec (a
    toleration, a resize) makes the update look unfinished until the kubelet has seen the change.

    Args:
        pod: the pod.
        update: the progress of its last update in place.
    """
    return not update.only_time_can_tell and any(
        (pod.container(name).container_id or "") == ran.id and ran.image != pod.spec.images[name]
        for name, ran in update.unfinished.items()
    )


def closed_since(pod: Pod, now: float) -> float | None:
    """Returns since when a closed gate keeps the pod out of its Services.

    The result is in seconds since the epoch. It is None if no gate is closed, or if the pod is
    still Ready: the pod then receives requests, because its kubelet has not seen the gate yet. The
    later of two changes counts: the gate became False, and Ready became False. Without any usable
    time the result is `now`, until the hook `/pod-status` has written the gate with a time.
    """
    if pod.ready is True:
        return None
    times = [_past_time(pod, gate.last_transition_time, now) for gate in _closed_gates(pod)]
    if not times:
        return None
    # The first closed gate suffices, but endpoints follow Ready, which the kubelet changes later.
    since = max(min(times), _past_time(pod, pod.ready_since, now))
    return now if since == UNKNOWN else since


def _past_time(pod: Pod, time: Any, now: float) -> float:
    """Returns a time of the pod's status in seconds since the epoch.

    Returns `UNKNOWN` if the time is invalid or in the future.
    """
    at = pod.plausible_time(time, now)
    return at if at <= now else UNKNOWN


def drained_in(pod: Pod, grace_seconds: int, now: float) -> float | None:
    """Returns the seconds until the pod has been out of its Services for the grace period.

    Returns 0 if the grace period is over, and None if the pod is not out of its Services.
    `grace_seconds` is the grace period.
    """
    since = closed_since(pod, now)
    return None if since is None else max(0.0, since + grace_seconds + SECOND - now)


def unproved_since(pod: Pod, gate: Condition | None, now: float = NEVER) -> float:
    """Returns since when only elapsed time can prove that the pod's last update is finished.

    The time is in the condition of a closed gate, in seconds since the epoch. The hook
    `/pod-status` keeps the time there, and not in `status.settling`, because it does not see the
    TApp. Returns `UNKNOWN` if the gate is open or missing, or if its condition has no such time for
    the current update.

    Args:
        pod: the pod.
        gate: the condition of one of its readiness gates; None if it has no condition.
        now: the time of this call, in seconds since the epoch; a later time does not count.
    """
    if gate is None or gate.status != "False":
        return UNKNOWN
    note = GateNote.decode(gate.last_probe_time, gate.observed_generation)
    if note is None:
        return UNKNOWN
    noted, began = (
        past_time(note.since, now),
        pod.last_update.at if pod.last_update is not None else "",
    )
    is_of_this_update = note.generation == pod.generation
    # Before Kubernetes 1.34 the API server drops `observedGeneration` from a condition. The
    # update's record has the time of its write there; an older note belongs to an earlier update.
    if not note.generation and began and not pod.reports_generation:
        is_of_this_update = noted >= seconds(began)
    return noted if is_of_this_update else UNKNOWN


def update_of(pod: Pod, now: float) -> Progress:
    """Returns the progress of the pod's last update in place, according to the pod alone.

    The hook `/pod-status` needs this, because it does not receive the status of the TApp.
    """
    noted = [unproved_since(pod, gate, now) for gate in _gates(pod)]
    return progress(pod, now, max(noted, default=UNKNOWN))


def opens_in(pod: Pod, update: Progress, now: float) -> float:
    """Returns the seconds until a closed gate may open, or 0 if it may open now.

    Returns `NEVER` if time alone does not allow it. `update` is the progress of the pod's last
    update in place.
    """
    if pod.spec.drains or update.unfinished:
        return NEVER if update.wait is None or pod.spec.drains else update.wait
    # Ready itself cannot be asked: it is False as long as the gate is closed.
    ready = pod.conditions.get("ContainersReady")
    if not pod.running or ready is None or ready.status != "True":
        return NEVER
    return max(0.0, proved_at(pod, now) - now)


def unserved_in(pod: Pod, update: Progress, patience: float, now: float) -> float | None:
    """Returns the seconds until the hook `/pod-status` should have opened the pod's readiness gate.

    The hook should open a gate within `patience` seconds after the gate may open. The result is 0
    after that time: the component pod-status is probably not installed. Returns None if all gates
    are open, or if a closed gate may not open yet.

    Args:
        pod: the pod.
        update: the progress of its last update in place.
        patience: the seconds that the hook has for opening the gate.
        now: the time of this sync, in seconds since the epoch.
    """
    not_open = [gate for gate in _gates(pod) if gate is None or gate.status != "True"]
    if not not_open or not pod.running or opens_in(pod, update, now) > 0:
        return None
    times = [
        pod.plausible_time(item.last_transition_time, now) for item in not_open if item is not None
    ]
    ready = pod.plausible_time(pod.conditions["ContainersReady"].last_transition_time, now)
    since = [ready, proved_at(pod, now), pod.created_at(now)]
    return max(0.0, max(since + times) + patience - now)
