"""Builds TApps with `prePull` and a slow registry, and reads their pullers."""

from typing import Any

from simulator.api.store import ForbiddenError
from tests.prepull import is_puller
from tests.scenarios.apps import tapp, template
from tests.scenarios.life import Document, Life

FIRST = {"inPlaceUpdateStrategy": {"prePull": True}, "maxUnavailable": 1}
SECONDS = 20.0
"""Duration of a pull in seconds."""


def tapp_with_slow_registry(nodes: int = 3, **settings: Any) -> Life:
    """Returns a TApp with `prePull` and five available instances; from now on each pull takes 20
    seconds.

    `nodes` is the number of nodes, and `settings` are settings of the service or arguments of
    `Life`.
    """
    life = Life(nodes=nodes, **settings)
    life.apply(tapp(template=template("web:1"), updateStrategy=FIRST))
    life.world.kubelet.levers.pull_seconds = SECONDS
    life.writes()
    return life


def pullers(life: Life) -> dict[str, Document]:
    """Returns node name -> puller pod for all pullers."""
    return {pod["spec"]["nodeName"]: pod for pod in life.world.list("Pod") if is_puller(pod)}


def seconds_unavailable(life: Life) -> float:
    """Runs until the TApp is complete; returns for how many seconds instance 0 could not serve."""
    lost, step = 0.0, 0.25
    while not life.complete:
        life.world.run(step)
        worker = life.world.kubelet.worker(life.pods[0])
        assert worker is not None
        lost += 0.0 if worker.local.can_serve(life.world.clock.now) else step
    return lost


class Refusal:
    """Refuses to create pullers, as an admission policy: the pods that only pull an image onto a
    node.

    Attributes:
        active: False if it refuses nothing.
        asked: the number of attempts to create a puller so far.
        most: the number of pullers that may exist before it refuses another one.
        life: the life whose pullers are counted; None counts as no pullers.
    """

    def __init__(self, most: int = 0) -> None:
        self.active, self.asked, self.most = True, 0, most
        self.life: Life | None = None

    def __call__(self, operation: str, pod: Document) -> Document:
        """Returns the object unchanged, or raises ForbiddenError for a puller that is refused."""
        if operation == "CREATE" and is_puller(pod):
            self.asked += 1
            there = 0 if self.life is None else len(pullers(self.life))
            if self.active and there >= self.most:
                raise ForbiddenError("exceeded quota: pods")
        return pod
