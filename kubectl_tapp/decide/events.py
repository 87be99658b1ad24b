"""Selects the Events of type Warning that report current problems of a TApp, its pods and its
claims.
"""

import re
from collections.abc import Iterable
from typing import Any

from kubectl_tapp.base.observed import Document
from kubectl_tapp.base.reading import conditions_by_type, container_statuses, event_count, last_seen
from kubectl_tapp.base.words import short_duration
from kubectl_tapp.decide.inspection import Inspection
from kubectl_tapp.decide.refused import REASON
from tapp.words.times import UNKNOWN, seconds

_MAX_OF_INSTANCE, _MAX_OF_TAPP = (
    5,
    2,
)  # The most Events that are printed, of an instance and of the TApp
_FAILED_SCHEDULING = "FailedScheduling"
# The container's name in a field path such as `spec.containers{web}`
_CONTAINER_IN_PATH = re.compile(r"\{([^{}]*)\}$")


def failing_syncs(view: Inspection) -> list[str]:
    """Returns sentences about errors that Metacontroller reports when it syncs the TApp, newest
    first.

    At most two errors are included: errors that concern the whole TApp and still occur.
    """
    now, found = view.plan.now, view.obstacles.of_tapp[:_MAX_OF_TAPP]
    return [f"{REASON}{_count_and_age(each.at, each.count, now)}: {each.text}" for each in found]


def of_instance(view: Inspection, id: int) -> list[Document]:
    """Returns at most five Events of type Warning about an instance's pod and claims, newest first.

    Events about an earlier pod with the same name are left out, if the instance has a pod or should
    have none. Events about solved problems are left out, too: the pod has a node now, the container
    has started, or the claim has its volume.
    """
    name, instance = f"{view.name}-{id}", view.cases[id].instance
    pod = view.pod(id)
    found = []
    for event in view.observed.events:
        about = _involved_object(event)
        kind, other = about.get("kind"), about.get("name", "")
        if kind == "Pod" and other == name:
            is_true = instance.should_run if pod is None else _is_about_current_problem(event, pod)
        else:
            is_claim = kind == "PersistentVolumeClaim" and other.endswith(f"-{name}")
            is_true = is_claim and not _has_requested_volume(view.observed.claims, other)
        if is_true:
            found.append(event)
    return newest(found)[:_MAX_OF_INSTANCE]


def _is_about_current_problem(event: Document, pod: Document) -> bool:
    """Returns True if an Event is about this pod, and no later success has made the Event obsolete.

    Successes are: the pod has become Ready, or the container of the Event has started (any
    container if the Event names none). After a FailedScheduling, a node for the pod is a success,
    too.
    """
    about = _involved_object(event)
    if about.get("uid") != pod["metadata"]["uid"]:
        return False
    named = _CONTAINER_IN_PATH.search(str(about.get("fieldPath") or ""))
    worked = [_true_since(pod, "PodScheduled")] if event.get("reason") == _FAILED_SCHEDULING else []
    for status in container_statuses(pod):
        running = (status.get("state") or {}).get("running")
        if running and (named is None or status.get("name") == named[1]):
            worked.append(seconds(running.get("startedAt")))
    worked.append(_true_since(pod, "Ready"))
    return last_seen(event) >= max(worked)


def _true_since(pod: Document, type_: str) -> float:
    """Returns when a condition of a pod became True, in seconds since the epoch.

    Returns `UNKNOWN` if the condition is not True. `type_` is the type of the condition.
    """
    found = conditions_by_type(pod).get(type_) or {}
    return seconds(found.get("lastTransitionTime")) if found.get("status") == "True" else UNKNOWN


def _has_requested_volume(claims: Iterable[Document], name: str) -> bool:
    """Returns True if the claim with this name is bound, and its volume has the requested size."""
    for claim in claims:
        if claim["metadata"]["name"] == name:
            spec, status = claim.get("spec") or {}, claim.get("status") or {}
            asked = ((spec.get("resources") or {}).get("requests") or {}).get("storage")
            has = (status.get("capacity") or {}).get("storage")
            return status.get("phase") == "Bound" and asked == has
    return False


def _involved_object(event: Document) -> Document:
    return event.get("involvedObject") or {}


def newest(events: Iterable[Document]) -> list[Document]:
    """Returns the Events, newest first, without repetitions.

    Of several Events with the same reason and the same message, only the newest is returned.
    """
    latest: dict[tuple[Any, Any], Document] = {}
    for event in sorted(events, key=last_seen):
        latest[event.get("reason"), event.get("message")] = event
    return sorted(latest.values(), key=last_seen, reverse=True)


def describe(event: Document, now: float) -> str:
    """Returns a sentence about an Event: its reason, its message, its count, and its age.

    `now` is the present time, in seconds since the epoch.
    """
    message = " ".join(str(event.get("message") or "").split())
    when = _count_and_age(last_seen(event), event_count(event), now)
    return f"{event.get('reason')}{when}: {message}"


def _count_and_age(at: float, count: int, now: float) -> str:
    often = f" {count} times, last" if count > 1 else ""
    return f"{often} {short_duration(now - at)} ago"
