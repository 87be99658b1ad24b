"""Computes a pod's phase and conditions from the statuses of its containers.

Sources: Kubernetes v1.37.2, pkg/kubelet/kubelet_pods.go (getPhase), pkg/kubelet/status/generate.go.
"""

from collections.abc import Iterable, Mapping

from simulator.objects.objects import Object
from tapp.kube.restarts import COMPLETED, RESTART_ALL, RESTARTING_ALL, restarts_in

Truth = tuple[bool, str, str]  # status, reason and message of a condition
_REMOVED = {
    "reason": RESTARTING_ALL,
    "message": "The container is removed because RestartAllContainers in place",
}
REMOVED: Object = {
    "state": {"waiting": _REMOVED},
    "lastState": {
        "terminated": {**_REMOVED, "exitCode": 137, "startedAt": None, "finishedAt": None}
    },
}
"""The status of a container that was removed before all containers start again."""


def statuses_of(pod: Object) -> dict[str, Object]:
    """Returns the container statuses of a pod by name, init containers included."""
    status = pod.get("status") or {}
    lists = (status.get("initContainerStatuses"), status.get("containerStatuses"))
    return {one["name"]: one for some in lists for one in some or [] if one.get("name")}


def phase_of(pod: Object, shown: Mapping[str, Object], *, initialized: bool, final: bool) -> str:
    """Returns the phase; `final` if no container of the pod will be started again."""
    spec = pod["spec"]
    waits = failed = False
    for one in spec.get("initContainers") or []:
        state, code = shown[one["name"]]["state"], exit_code(shown[one["name"]])
        if one.get("restartPolicy") == "Always":
            begun = "running" in state and shown[one["name"]]["started"]
            waits = waits or not (initialized or begun or code is not None)
        elif code is None:
            waits = True
        elif code and not _again(spec, one, shown[one["name"]]):
            failed = True
    if failed:
        return "Failed"
    codes = [exit_code(shown[one["name"]]) for one in spec["containers"]]
    running = any("running" in one["state"] for one in shown.values() if _counts(spec, one))
    if waits or any(
        "waiting" in shown[one["name"]]["state"] and code is None
        for one, code in zip(spec["containers"], codes, strict=True)
    ):
        return "Pending"
    if running:
        return "Running"
    if not final and any(_again(spec, one, shown[one["name"]]) for one in spec["containers"]):
        return "Running"
    return "Failed" if any(codes) else "Succeeded"


def _again(spec: Object, container: Object, status: Object) -> bool:
    """Returns True if an ended container will be started again.

    Its restart policy or a restart of all containers starts it.
    """
    ended = _ended(status)
    if ended is None:
        return False
    again = restarts_in(spec, container).follow(ended["exitCode"])
    return ended.get("reason") == RESTARTING_ALL or again


def _counts(spec: Object, status: Object) -> bool:
    plain = (
        one["name"]
        for one in spec.get("initContainers") or []
        if one.get("restartPolicy") != "Always"
    )
    return status["name"] not in plain


def exit_code(status: Object) -> int | None:
    """Returns the exit code of a container; None if it runs or has never run."""
    ended = _ended(status)
    return None if ended is None else int(ended["exitCode"])


def _ended(status: Object) -> Object | None:
    ended: Object | None = status["state"].get("terminated")
    if ended is None and "waiting" in status["state"]:
        ended = status["lastState"].get("terminated")
    return ended


def unready(spec: Object, shown: Mapping[str, Object]) -> list[str]:
    """Returns the names of the containers that keep a running pod from being Ready."""
    sidecars = [
        one for one in spec.get("initContainers") or [] if one.get("restartPolicy") == "Always"
    ]
    names = [one["name"] for one in [*sidecars, *spec["containers"]]]
    return [name for name in names if not shown[name]["ready"]]


def truths_of(
    pod: Object, phase: str, unready_names: list[str], *, initialized: bool
) -> dict[str, Truth]:
    """Returns the kubelet's own conditions: Initialized, ContainersReady, Ready."""
    closed = [_closed(gate, status) for gate, status in gates_of(pod).items() if status != "True"]
    reason = "ContainersNotReady"
    message = f"containers with unready status: [{' '.join(unready_names)}]"
    if phase in COMPLETED:
        reason, message = ("PodCompleted" if phase == "Succeeded" else "PodFailed"), ""
    containers = _truth(not unready_names and phase not in COMPLETED, reason, message)
    gated = _truth(not closed, "ReadinessGatesNotReady", ", ".join(closed))
    return {
        "Initialized": _truth(initialized or phase == "Succeeded", "ContainersNotInitialized"),
        "ContainersReady": containers,
        "Ready": gated if containers[0] else containers,
    }


def anew_of(pod: Object, phase: str, *, anew: bool) -> dict[str, Truth]:
    """Returns the condition AllContainersRestarting if the pod has a RestartAllContainers rule."""
    spec = pod["spec"]
    both = [*(spec.get("initContainers") or []), *spec["containers"]]
    rules = [rule for one in both for rule in restarts_in(spec, one).rules]
    if all(rule.action != RESTART_ALL for rule in rules):
        return {}
    begun = "RestartAllContainersStarted", "container exited with restart policy rule"
    ended = {"Succeeded": "PodCompleted", "Failed": "PodFailed"}.get(phase, "")
    going = anew and not ended
    return {"AllContainersRestarting": (going, *(begun if going else (ended, "")))}


def gates_of(pod: Object) -> dict[str, str | None]:
    """Returns the condition status of each readiness gate; None if the condition is missing."""
    known = {c["type"]: c["status"] for c in (pod.get("status") or {}).get("conditions") or []}
    gates = [gate["conditionType"] for gate in pod["spec"].get("readinessGates") or []]
    return {gate: known.get(gate) for gate in gates}


def _closed(gate: str, status: str | None) -> str:
    if status is None:
        return f'corresponding condition of pod readiness gate "{gate}" does not exist.'
    return f'the status of pod readiness gate "{gate}" is not "True", but {status}'


def _truth(truth: bool, reason: str, message: str = "") -> Truth:
    return (True, "", "") if truth else (False, reason, message)


def conditions(
    before: Iterable[Object], truths: Mapping[str, Truth], now: str, generation: int | None
) -> list[Object]:
    """Returns the conditions with the given ones set; the others stay.

    The transition time of a condition changes only together with its status.
    """
    known = {condition["type"]: condition for condition in before}
    result = [condition for kind, condition in known.items() if kind not in truths]
    for kind, (truth, reason, message) in truths.items():
        status, previous = "True" if truth else "False", known.get(kind)
        deep_equal = previous is not None and previous["status"] == status
        since = previous["lastTransitionTime"] if previous is not None and deep_equal else now
        condition: Object = {
            "type": kind,
            "status": status,
            "lastProbeTime": None,
            "lastTransitionTime": since,
        }
        if generation is not None:
            condition["observedGeneration"] = generation
        condition |= {k: v for k, v in (("reason", reason), ("message", message)) if v}
        result.append(condition)
    return sorted(result, key=lambda condition: str(condition["type"]))
