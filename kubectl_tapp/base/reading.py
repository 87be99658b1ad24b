"""Reads fields of Kubernetes objects: conditions, containers, times, and why a pod is not Ready."""

from typing import Any

from kubectl_tapp.base.observed import Document
from tapp.words.reasons import Reason
from tapp.words.times import UNKNOWN, seconds, written


def conditions_by_type(item: Document) -> dict[str, Document]:
    """Returns condition type -> condition, from the status of an object."""
    found = (item.get("status") or {}).get("conditions") or []
    return {str(each.get("type")): each for each in found}


def observed_generation(tapp: Document) -> int:
    """Returns status.observedGeneration of a TApp.

    Returns 0 if the service has not written a status yet, or if the field is no number.
    """
    found = (tapp.get("status") or {}).get("observedGeneration")
    return max(0, found) if isinstance(found, int) else 0


def unobserved(tapp: Document) -> str:
    """Returns a clause such as "no controller has acted on its generation 3 since ...".

    The word "its" in the clause means the TApp, which the caller's sentence names before. The
    clause contains the time of the last write of the spec if that time is known. Returns "" if
    status.observedGeneration is the generation of the TApp, so that the service has acted on its
    spec.
    """
    metadata, seen = tapp["metadata"], observed_generation(tapp)
    generation = metadata.get("generation")
    if seen == generation:
        return ""
    since = unobserved_since(tapp)
    time = "" if since == UNKNOWN else f" since {written(since)}"
    if not seen:
        return f"no controller has acted on it{time}"
    return f"no controller has acted on its generation {generation}{time}"


def unobserved_since(tapp: Document) -> float:
    """Returns the time of the last write of a TApp's spec, in seconds since the epoch.

    Returns UNKNOWN if the time is not known. If managedFields are missing, the time is known only
    for a spec that has not changed since the creation of the TApp.
    """
    metadata = tapp["metadata"]
    times = [
        seconds(item.get("time"))
        for item in metadata.get("managedFields") or []
        if isinstance(item, dict) and "f:spec" in (item.get("fieldsV1") or {})
    ]
    if not times and metadata.get("generation") == 1:
        return seconds(metadata.get("creationTimestamp"))
    return max(times, default=UNKNOWN)


def containers(spec: Document) -> list[Document]:
    """Returns the containers of a pod spec, init containers first."""
    return [*(spec.get("initContainers") or []), *(spec.get("containers") or [])]


def state_of(tapp: Document) -> str:
    """Returns the state of a TApp in one word, for a table.

    The word is `Terminating` if the TApp is being deleted, and `NotSeenYet` if its status describes
    an older generation. Otherwise, if all instances are as the spec asks, the word is
    status.appStatus. If they are not, it is the reason of the condition Ready. It is `-` if the
    status has neither field.
    """
    if tapp["metadata"].get("deletionTimestamp"):
        return "Terminating"
    status = tapp.get("status") or {}
    if observed_generation(tapp) != tapp["metadata"].get("generation"):
        return "NotSeenYet"
    ready = conditions_by_type(tapp).get("Ready")
    if ready is None:
        return str(status.get("appStatus", "-"))
    simply_runs = ready.get("status") == "True" and ready.get("reason") == Reason.AS_SPECIFIED
    return str(status.get("appStatus") if simply_runs else ready.get("reason"))


def deletion_message(tapp: Document) -> str:
    """Returns a sentence about a TApp that is being deleted: it names the objects or the
    controllers that the deletion waits for.

    Returns "" if the TApp is not being deleted. As soon as the TApp service has seen the deletion,
    the message of the condition Ready has this explanation and is returned. Until then the sentence
    names the finalizers of the TApp, whose controllers have to act.
    """
    since = tapp["metadata"].get("deletionTimestamp")
    if not since:
        return ""
    message = str((conditions_by_type(tapp).get("Ready") or {}).get("message") or "")
    if message.startswith(_DELETED):
        return message
    names = ", ".join(tapp["metadata"].get("finalizers") or ["none"])
    return (
        f"{_DELETED} (since {since}), and its status does not say so yet: the controllers of its "
        f"finalizers ({names}) have to act. If nothing changes, check that Metacontroller and the "
        "TApp service run"
    )


_DELETED = "the TApp is being deleted"  # The beginning of the service's message about a deletion


def container_statuses(pod: Document) -> list[Document]:
    """Returns the container statuses of a pod, init containers first."""
    status: dict[str, Any] = pod.get("status") or {}
    return [
        *(status.get("initContainerStatuses") or []), *(status.get("containerStatuses") or [])
    ]  # fmt: skip


def last_seen(event: Document) -> float:
    """Returns when an Event was last seen, in seconds since the epoch; 0 if the Event has no
    time.
    """
    series = event.get("series") or {}
    texts = (series.get("lastObservedTime"), event.get("lastTimestamp"), event.get("eventTime"))
    return next((seconds(text) for text in texts if text), 0.0)


def event_count(event: Document) -> int:
    """Returns the number of times that an Event was seen, at least 1."""
    return int((event.get("series") or {}).get("count") or event.get("count") or 1)


def last_write(metadata: Document) -> float:
    """Returns the time of the last write of an object, in seconds since the epoch.

    `metadata` is the metadata of the object. Writes of the status do not count. Returns UNKNOWN if
    managedFields are missing.
    """
    times = [
        seconds(item.get("time"))
        for item in metadata.get("managedFields") or []
        if isinstance(item, dict) and not item.get("subresource")
    ]
    return max(times, default=UNKNOWN)


def unready_reasons(pod: Document) -> list[str]:
    """Returns phrases that say why a pod with running containers is not Ready.

    There is one phrase for each startup or readiness probe that has not succeeded, and one for each
    readiness gate whose condition is not True.
    """
    known = conditions_by_type(pod)
    result = [
        f"container {name}: its {probe} probe has not passed"
        for name, probe in pending_probes(pod).items()
    ]
    for gate in (pod.get("spec") or {}).get("readinessGates") or []:
        type_ = gate.get("conditionType")
        if (condition := known.get(type_) or {}).get("status") != "True":
            result.append(f"its readiness gate {type_} {_unmet_phrase(condition)}")
    return result


def pending_probes(pod: Document) -> dict[str, str]:
    """Returns container name -> the kind of the probe that has not succeeded: `startup` or
    `readiness`.

    Only running containers that are not ready and have such a probe are included. The status of a
    container does not say which probe has not succeeded. The function derives that from the field
    `started`, which the kubelet sets to true as soon as the startup probe has succeeded.
    """
    bodies = {each["name"]: each for each in containers(pod.get("spec") or {})}
    found = {}
    for each in container_statuses(pod):
        if each.get("ready") or not (each.get("state") or {}).get("running"):
            continue
        probe = "readiness" if each.get("started") else "startup"
        if bodies.get(each.get("name"), {}).get(f"{probe}Probe"):
            found[str(each.get("name"))] = probe
    return found


def _unmet_phrase(condition: Document) -> str:
    if not condition:
        return "is unmet: no controller has set its condition yet"
    text = ": ".join(each for key in ("reason", "message") if (each := condition.get(key)))
    return f"is unmet: {text or 'its condition is ' + str(condition.get('status'))}"
