"""Settings with which tests change the behavior of the fake kubelet and its containers."""

from __future__ import annotations

from dataclasses import dataclass

from simulator.node.levers import Levers as Behaviour
from simulator.objects.objects import Object


@dataclass
class Levers(Behaviour):
    """Behavior of containers and of the kubelet.

    A test may change an attribute at any time; the change has an effect from the kubelet's next
    step on. The keys of mappings are images as the pod's spec has them.
    """

    react_seconds: float = 0.0
    jitter: float = 0.0
    relist_seconds: float = 0.1
    pull_seconds: float = 0.05
    start_seconds: float = 0.05
    init_seconds: float = 0.05
    stop_seconds: float = 0.1
    stop_code: int = 0
    crash_seconds: float = 0.2
    backoff_seconds: float = 0.5
    backoff_limit: float = 4.0
    retry_seconds: float = 0.3

    def reset(self) -> None:
        """Resets all levers but `reports_generation`, which depends on the cluster's version."""
        vars(self).update(vars(Levers(reports_generation=self.reports_generation)))


def key_of(pod: Object) -> str:
    """Returns `namespace/name` of a pod."""
    return f"{pod['metadata']['namespace']}/{pod['metadata']['name']}"
