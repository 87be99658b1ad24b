"""Plays the updates of instances that leave their Services before an update in place."""

from typing import Any

from tests.builders import Document, tapp, template
from tests.unit.world import Hook, World

GATE = "apps.tkestack.io/InPlaceUpdateReady"
DRAIN = "apps.tkestack.io/drain"
LABEL = "apps.tkestack.io/pod-status"
GRACE = 5


def gated(image: str = "nginx:1", **more: Any) -> Document:
    return template(image, readinessGates=[{"conditionType": GATE}], **more)


def strategy(grace: int = GRACE, **more: Any) -> Document:
    return {"inPlaceUpdateStrategy": {"gracePeriodSeconds": grace}, **more}


class DrainedWorld(World):
    """Simulates a TApp with the readiness gate and a grace period, whose clock a test sets."""

    def __init__(self, replicas: int = 3, grace: int = GRACE, **options: Any) -> None:
        parent = tapp(replicas=replicas, template=gated(), updateStrategy=strategy(grace))
        super().__init__(parent, hook=Hook(), **options)
        self.settle()

    def later(self, seconds: float) -> None:
        self.hook.now += seconds

    def gate(self, id: int) -> str:
        found = [item for item in self.pod(id)["status"]["conditions"] if item["type"] == GATE]
        return found[0]["status"] if found else "missing"

    def drain_annotation(self, id: int) -> str:
        return self.pod(id)["metadata"]["annotations"].get(DRAIN) or ""

    def leaving(self, image: str = "nginx:2", **spec: Any) -> "DrainedWorld":
        """Changes the image and runs a sync, so that instance 0 begins to leave its Services;
        returns the world.
        """
        self.change(template=gated(image), **spec)
        self.sync()
        return self

    def out_of_services(self) -> "DrainedWorld":
        """Changes the image and brings instance 0 to the point where it has left its Services;
        returns the world.
        """
        self.leaving().pod_status()
        self.kubelet()
        return self
