"""Containers that a kubelet starts again after their end: policies of pod and container, rules.

The rule itself is Kubernetes' (`tapp.kube.restarts`); here is what only a kubelet asks of it.
"""

from simulator.objects.objects import Object
from tapp.kube.restarts import ALWAYS, NEVER, RESTART_ALL, Restarts, restarts_of


def starts_again(spec: Object, container: Object, exit_code: int) -> bool:
    """Tell whether a container of a pod's spec is started again that ended with this code."""
    return _of(spec, container).follow(exit_code)


def restarts_unhealthy(spec: Object, container: Object) -> bool:
    """Tell whether it is once a probe has failed: rules are about exit codes, and it still runs."""
    return _of(spec, container).policy != NEVER


def restarts_all(container: Object, exit_code: int) -> bool:
    """Tell whether all containers of its pod are, when it has ended with this code."""
    return _of({}, container).action(exit_code) == RESTART_ALL


def could_restart_all(spec: Object) -> bool:
    """Tell whether a rule of any container asks for that (AllContainersCouldRestart)."""
    both = [*(spec.get("initContainers") or []), *spec["containers"]]
    return any(rule.action == RESTART_ALL for one in both for rule in _of(spec, one).rules)


def _of(spec: Object, container: Object) -> Restarts:
    return restarts_of(container, spec.get("restartPolicy") or ALWAYS)
