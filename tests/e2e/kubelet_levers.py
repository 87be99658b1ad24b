"""Levers of the fake kubelet for tests: `simulator.node.levers`, and how pods are named."""

from __future__ import annotations

from dataclasses import dataclass

from simulator.node.levers import Levers as Behaviour
from simulator.objects.objects import Object


@dataclass
class Levers(Behaviour):
    """Behaviour of containers. Change the attributes at any time; they count from the next step on.

    Images are named as the pod's spec spells them.
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
        """Puts every lever back to rest; of which time the kubelet is stays as it is."""
        vars(self).update(vars(Levers(reports_generation=self.reports_generation)))


def key_of(pod: Object) -> str:
    """`namespace/name`, as tests name pods."""
    return f"{pod['metadata']['namespace']}/{pod['metadata']['name']}"
