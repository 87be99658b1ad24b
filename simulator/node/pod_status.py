"""Computes a pod's phase and conditions from the statuses of its containers.

Sources: Kubernetes v1.37.2, pkg/kubelet/kubelet_pods.go (getPhase), pkg/kubelet/status/generate.go.
"""

from collections.abc import Iterable, Mapping

from simulator.objects.objects import Object
from tapp.kube.restarts import COMPLETED, RESTART_ALL, RESTARTING_ALL, restarts_in

ConditionValue = tuple[bool, str, str]  # status, reason and message of a condition
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


RESIZING = {"PodResizePending", "PodResizeInProgress"}
"""Conditions of a resize, which a kubelet removes as soon as they are not True."""


def statuses_of(pod: Object) -> dict[str, Object]:
    """Returns container name -> status of the container in the API object, with init containers."""
    status = pod.get("status") or {}
    lists = (status.get("initContainerStatuses"), status.get("containerStatuses"))
    return {each["name"]: each for statuses in lists for each in statuses or [] if each.get("name")}


def phase_of(pod: Object, shown: Mapping[str, Object], *, initialized: bool, final: bool) -> str:
    """Returns the phase of a pod.

    Args:
        pod: the API object.
        shown: container name -> status of the container.
        initialized: True if all init containers have succeeded or have started as sidecars.
        final: True if no container of the pod will be started again.
    """
    spec = pod["spec"]
    is_waiting = failed = False
    for container in spec.get("initContainers") or []:
        state, code = shown[container["name"]]["state"], exit_code(shown[container["name"]])
        if container.get("restartPolicy") == "Always":
            has_started = "running" in state and shown[container["name"]]["started"]
            is_waiting = is_waiting or not (initialized or has_started or code is not None)
        elif code is None:
            is_waiting = True
        elif code and not _is_restarted(spec, container, shown[container["name"]]):
            failed = True
    if failed:
        return "Failed"
    exit_codes = [exit_code(shown[container["name"]]) for container in spec["containers"]]
    running = any(
        "running" in container["state"]
        for container in shown.values()
        if _counts_as_running(spec, container)
    )
    # getPhase: a container that waits for its first start makes the pod Pending, even if other
    # containers run.
    if is_waiting or any(
        "waiting" in shown[container["name"]]["state"] and code is None
        for container, code in zip(spec["containers"], exit_codes, strict=True)
    ):
        return "Pending"
    if running:
        return "Running"
    # A container that will be restarted keeps the pod Running between two processes.
    if not final and any(
        _is_restarted(spec, container, shown[container["name"]]) for container in spec["containers"]
    ):
        return "Running"
    return "Failed" if any(exit_codes) else "Succeeded"


def _is_restarted(spec: Object, container: Object, status: Object) -> bool:
    """Returns True if a container has ended and the kubelet starts it again.

    The cause is its restart policy or its restart rules, or a restart of all containers of the pod.

    Args:
        spec: the spec of the pod.
        container: the container in the spec.
        status: the status of the container.
    """
    ended = _ended(status)
    if ended is None:
        return False
    again = restarts_in(spec, container).restarts_after(ended["exitCode"])
    return ended.get("reason") == RESTARTING_ALL or again


def _counts_as_running(spec: Object, status: Object) -> bool:
    init_names = (
        container["name"]
        for container in spec.get("initContainers") or []
        if container.get("restartPolicy") != "Always"
    )
    return status["name"] not in init_names


def exit_code(status: Object) -> int | None:
    """Returns the exit code in a container status; None if the container has not ended."""
    ended = _ended(status)
    return None if ended is None else int(ended["exitCode"])


def _ended(status: Object) -> Object | None:
    ended: Object | None = status["state"].get("terminated")
    if ended is None and "waiting" in status["state"]:
        ended = status["lastState"].get("terminated")
    return ended


def unready_containers(spec: Object, shown: Mapping[str, Object]) -> list[str]:
    """Returns the names of the main containers and sidecars that are not ready.

    Args:
        spec: the spec of the pod.
        shown: container name -> status of the container.
    """
    sidecars = [
        container
        for container in spec.get("initContainers") or []
        if container.get("restartPolicy") == "Always"
    ]
    names = [container["name"] for container in [*sidecars, *spec["containers"]]]
    return [name for name in names if not shown[name]["ready"]]


def kubelet_conditions(
    pod: Object, phase: str, unready_names: list[str], *, initialized: bool
) -> dict[str, ConditionValue]:
    """Returns type -> value for the conditions Initialized, ContainersReady and Ready.

    Args:
        pod: the API object, with the conditions of its readiness gates.
        phase: the phase of the pod.
        unready_names: the names of the pod's main containers and sidecars that are not ready.
        initialized: True if all init containers have succeeded or have started as sidecars.
    """
    closed_gates = [
        _closed(gate, status) for gate, status in gates_of(pod).items() if status != "True"
    ]
    reason = "ContainersNotReady"
    message = f"containers with unready status: [{' '.join(unready_names)}]"
    if phase in COMPLETED:
        reason, message = ("PodCompleted" if phase == "Succeeded" else "PodFailed"), ""
    containers = _value(not unready_names and phase not in COMPLETED, reason, message)
    gates = _value(not closed_gates, "ReadinessGatesNotReady", ", ".join(closed_gates))
    return {
        "Initialized": _value(initialized or phase == "Succeeded", "ContainersNotInitialized"),
        "ContainersReady": containers,
        "Ready": gates if containers[0] else containers,
    }


def restart_all_condition(
    pod: Object, phase: str, *, is_restarting: bool
) -> dict[str, ConditionValue]:
    """Returns the condition AllContainersRestarting, as a mapping from its type to its value.

    The mapping is empty if no container has a restart rule with the action RestartAllContainers.

    Args:
        pod: the API object.
        phase: the phase of the pod.
        is_restarting: True if such a rule has matched and not all containers have started again.
    """
    spec = pod["spec"]
    both = [*(spec.get("initContainers") or []), *spec["containers"]]
    rules = [rule for container in both for rule in restarts_in(spec, container).rules]
    if all(rule.action != RESTART_ALL for rule in rules):
        return {}
    ended = {"Succeeded": "PodCompleted", "Failed": "PodFailed"}.get(phase, "")
    if is_restarting and not ended:
        message = "container exited with restart policy rule"
        return {"AllContainersRestarting": (True, "RestartAllContainersStarted", message)}
    return {"AllContainersRestarting": (False, ended, "")}


def gates_of(pod: Object) -> dict[str, str | None]:
    """Returns readiness gate -> status of its condition; None if the condition is missing."""
    by_type = {c["type"]: c["status"] for c in (pod.get("status") or {}).get("conditions") or []}
    gates = [gate["conditionType"] for gate in pod["spec"].get("readinessGates") or []]
    return {gate: by_type.get(gate) for gate in gates}


def _closed(gate: str, status: str | None) -> str:
    if status is None:
        return f'corresponding condition of pod readiness gate "{gate}" does not exist.'
    return f'the status of pod readiness gate "{gate}" is not "True", but {status}'


def _value(value: bool, reason: str, message: str = "") -> ConditionValue:
    return (True, "", "") if value else (False, reason, message)


def conditions(
    before: Iterable[Object], values: Mapping[str, ConditionValue], now: str, generation: int | None
) -> list[Object]:
    """Returns the conditions of a pod after some of them are set, sorted by type.

    The transition time of a condition changes only if its status changes.

    Args:
        before: the conditions before the change. Conditions that are not in `values` stay.
        values: type -> (status, reason, message) of the conditions to set.
        now: the transition time of conditions whose status changes.
        generation: the value for `observedGeneration`; None leaves the field out.
    """
    by_type = {condition["type"]: condition for condition in before}
    result = [condition for kind, condition in by_type.items() if kind not in values]
    for kind, (value, reason, message) in values.items():
        status, previous = "True" if value else "False", by_type.get(kind)
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


def merged_status(api_status: Object, kubelet_status: Object) -> Object:
    """Returns the status of an API object, with the parts that the kubelet writes replaced.

    Conditions that the kubelet does not write stay, such as those of readiness gates. If the phase
    in the API object is final, it also stays, with its reason and message.

    Args:
        api_status: the status of the API object.
        kubelet_status: the status that the kubelet publishes.
    """
    own: list[Object] = kubelet_status["conditions"]
    own_types = {condition["type"] for condition in own} | RESIZING
    others = [
        condition
        for condition in api_status.get("conditions") or []
        if condition["type"] not in own_types
    ]
    both = sorted([*others, *own], key=lambda condition: str(condition["type"]))
    status = {**api_status, **kubelet_status, "conditions": both}
    # A final phase never changes again.
    if api_status.get("phase") in COMPLETED:
        final = ("phase", "reason", "message")
        status |= {key: api_status[key] for key in final if key in api_status}
    return status
