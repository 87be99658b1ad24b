"""Which containers a kubelet starts again that have ended: policies of pod and container, rules.

Source: pkg/api/v1/pod/util.go (ContainerShouldRestart, FindMatchingContainerRestartRule), and
computePodActions for a container whose probe has failed. A server that does not know the fields of
containers drops them, and its kubelet goes by the pod's policy.
"""

from simulator.objects.objects import Object

ALL = "RestartAllContainers"
"""The action of a rule that starts the whole pod again, init containers too."""
RESTARTING_ALL = "RestartingAllContainers"
"""The reason that a container shows that was removed for it."""


def starts_again(spec: Object, container: Object, exit_code: int) -> bool:
    """Tell whether a container of a pod's spec is started again that ended with this code."""
    if _action(container, exit_code) in ("Restart", ALL):
        return True
    policy = _policy(spec, container)
    return policy == "Always" or (policy == "OnFailure" and exit_code != 0)


def restarts_unhealthy(spec: Object, container: Object) -> bool:
    """Tell whether it is once a probe has failed: rules are about exit codes, and it still runs."""
    return _policy(spec, container) != "Never"


def restarts_all(container: Object, exit_code: int) -> bool:
    """Tell whether all containers of its pod are, when it has ended with this code."""
    return _action(container, exit_code) == ALL


def could_restart_all(spec: Object) -> bool:
    """Tell whether a rule of any container asks for that (AllContainersCouldRestart)."""
    both = [*(spec.get("initContainers") or []), *spec["containers"]]
    return any(rule["action"] == ALL for one in both for rule in _rules(one))


def _policy(spec: Object, container: Object) -> str:
    return str(container.get("restartPolicy") or spec.get("restartPolicy") or "Always")


def _rules(container: Object) -> list[Object]:
    return container.get("restartPolicyRules") or []


def _action(container: Object, exit_code: int) -> str:
    """Return what the first rule asks for that has the code; "" where none has."""
    for rule in _rules(container):
        codes = rule["exitCodes"]
        if (exit_code in (codes.get("values") or [])) == (codes["operator"] == "In"):
            return str(rule["action"])
    return ""
