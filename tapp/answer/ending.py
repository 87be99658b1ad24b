"""The status of a TApp that is being deleted: which objects are left, and what the deletion waits
for.

The counts and `status.statuses` describe the pods that still exist. Ready is False as long as the
TApp exists, and its message names the pods, claims and finalizers that the deletion waits for.
Degraded is True if the deletion does not end without the help of a person.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from tapp.answer.kstatus import for_kstatus
from tapp.answer.refusals import not_deleted
from tapp.decide.teardown import Left, Teardown
from tapp.kube.parts import map_in, maps_of
from tapp.words.conditions import Finding, Type
from tapp.words.ranges import name_list
from tapp.words.reasons import Reason
from tapp.words.vocabulary import HOLD, InstanceStatus

_STAYING = ("currentRevision", "updateRevision", "scaleLabelSelector", "appStatus")
"""Fields of the status that a TApp keeps unchanged while it is being deleted."""
_UNCOUNTED = Finding(
    Type.AVAILABLE,
    "Unknown",
    Reason.DELETING,
    "the TApp is being deleted, so none of its instances should run",
)
_NOTHING = "no problem is known: no instance is broken, and no part of the spec is refused"


def status_of(
    teardown: Teardown, before: Mapping[str, Any], instances: Mapping[str, str]
) -> Mapping[str, Any]:
    """Returns the status of a TApp for the response of the finalize hook.

    A TApp that is not being deleted keeps its status, because another controller takes it over
    (`teardown.left` is None).

    Args:
        teardown: the decisions of the finalize call.
        before: the observed status, which may have any shape.
        instances: name of a pod -> number of its instance, for the pods that belong to instances.
    """
    left = teardown.left
    if left is None:
        return before
    known: dict[str, Any] = {
        item["type"]: item
        for item in maps_of(before.get("conditions"))
        if isinstance(item.get("type"), str)
    }
    since = max([left.since, *teardown.silent, *(time for time, _ in teardown.held.values())])
    progressing, ready, degraded, *others = _findings(teardown, left)
    findings = [
        *(_UNCOUNTED, progressing, ready, degraded, *others),
        *for_kstatus(progressing, degraded, 0.0),
    ]
    return {
        **_counts(left, before, instances),
        "conditions": [_written(finding, known, since) for finding in findings],
    }


def _counts(left: Left, before: Mapping[str, Any], instances: Mapping[str, str]) -> dict[str, Any]:
    """Returns the fields of the status that count or list the remaining pods.

    Args:
        left: the objects of the TApp that still exist.
        before: the observed status, from which fields are copied that the deletion does not change.
        instances: name of a pod -> number of its instance.
    """
    pods = [pod for pod in left.pods if not pod.completed]
    ready = sum(pod.ready is True and pod.running for pod in pods)
    wanted = str(before.get("ready") or "").rpartition("/")[2] or str(len(instances))
    words = map_in(before, "statuses")
    return {
        **{key: before[key] for key in _STAYING if before.get(key)},
        "ready": f"{ready}/{wanted}",
        "replicas": len(pods),
        "readyReplicas": ready,
        "availableReplicas": ready,
        "statuses": {
            instances[pod.name]: InstanceStatus.KILLING
            if pod.terminating
            else words.get(instances[pod.name], InstanceStatus.RUNNING)
            for pod in left.pods
            if pod.name in instances
        },
    }


def _findings(teardown: Teardown, left: Left) -> list[Finding]:
    """Returns Progressing, Ready and Degraded, and one condition for each kind of overdue deletion.

    `left` are the objects of the TApp that still exist.
    """
    silent = [name for names in teardown.silent.values() for name in names]
    others = [one for one in left.overdue.pods if one.name not in silent]
    overdue = not_deleted(replace(left.overdue, pods=others), left.namespace)
    waits = []
    if silent:
        waits.append(
            f"pod{'s'[: len(silent) != 1]} {name_list(silent)} on nodes that have stopped "
            "reporting. A pod ends when its node reports again, when the node counts as lost "
            "(spec.forceDeletePod), or when the Node object is deleted"
        )
    if teardown.held:
        waits.append(_held(teardown))
    waits += _waits(left, {*silent, *teardown.held, *(one.name for one in others)})
    troubles = [finding.message for finding in overdue]
    when = f" (since {left.since})" if left.since else ""
    message = f"the TApp is being deleted{when}"
    message += f"; the deletion waits for {'; for '.join(waits)}" if waits else ""
    message += "; ".join(["", *troubles])
    message += "" if waits or troubles else "; nothing delays the deletion"
    if silent or overdue:
        reason = Reason.NODES_SILENT if silent else overdue[0].type
        degraded = Finding(Type.DEGRADED, "True", reason, message)
        ready = Finding(Type.READY, "False", reason, message)
        progressing = Finding(Type.PROGRESSING, "True", Reason.DELETING, message)
        return [progressing, ready, degraded, *overdue]
    reason = Reason.HELD if teardown.held else Reason.DELETING
    return [
        Finding(Type.PROGRESSING, "True", reason, message),
        Finding(Type.READY, "False", reason, message),
        Finding(Type.DEGRADED, "False", Reason.AS_EXPECTED, _NOTHING),
    ]


def _waits(left: Left, described: set[str]) -> list[str]:
    """Returns one text for each kind of object that the deletion waits for: pods, claims,
    finalizers.

    Args:
        left: the objects of the TApp that still exist.
        described: the names of pods that another sentence of the message describes; they are left
            out.
    """
    parts = []
    if ending := [pod.name for pod in left.pods if pod.name not in described]:
        parts.append(f"pod{'s'[: len(ending) != 1]} {name_list(ending)} to end")
    stuck = {one.name for one in left.overdue.claims}
    if claims := [name for name in left.claims if name not in stuck]:
        parts.append(f"claim{'s'[: len(claims) != 1]} {name_list(claims)}")
    if others := left.finalizers:
        text = f"finalizer{'s'[: len(others) != 1]} {name_list(others)} of the TApp"
        if "foregroundDeletion" in others:
            text += " (the garbage collector first deletes the objects that the TApp owns)"
        elif "orphan" in others:
            text += " (the garbage collector first removes the TApp as owner of its objects)"
        parts.append(text)
    return parts


def _held(teardown: Teardown) -> str:
    """Returns a text about the pods on hold that delay the deletion, and about how to end the
    holds.
    """
    name, (since, text) = next(iter(teardown.held.items()))
    pending = f"{text}; the deletion is pending since {since}" if since else text
    held = list(teardown.held)
    pods = "pod" if len(held) == 1 else "pods"
    return (
        f"{pods} {name_list(held)} on hold ({name}: {pending}). A pod is deleted when its "
        f"annotation {HOLD} is removed. To end all holds of this TApp, set "
        "spec.deletionHoldTimeoutSeconds to 0, or to a number of seconds"
    )


def _written(finding: Finding, known: Mapping[str, Any], since: str) -> dict[str, Any]:
    """Returns a condition as JSON, with the time of its last change.

    Args:
        finding: the condition without its time.
        known: type -> condition of the observed status. If the condition has the same status there,
            its time stays.
        since: the time for a condition that is new or has another status, RFC 3339.
    """
    old = known.get(finding.type, {})
    time = old.get("lastTransitionTime") if old.get("status") == finding.status else since
    return finding.document(time)
