"""Simulates nodes that stop reporting, for a TApp whose instances run on different nodes.

A pod on such a node is not Ready, and its other conditions stay as they were.
"""

from datetime import UTC, datetime
from typing import Any

from tests.builders import Document, tapp
from tests.unit.world import Hook, World

LOST = "apps.tkestack.io/lost-node"


def timestamp(at: float) -> str:
    return datetime.fromtimestamp(int(at), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def not_ready(pod: Document, since: float) -> Document:
    """Returns a pod as the node lifecycle controller changes it when its node stops reporting.

    Ready is False since the time `since`, in seconds since the epoch; everything else is unchanged.
    """
    conditions = [
        {**item, "status": "False", "lastTransitionTime": timestamp(since)}
        if item["type"] == "Ready"
        else item
        for item in pod["status"]["conditions"]
    ]
    return {**pod, "status": {**pod["status"], "conditions": conditions}}


def on_node(pod: Document, node: str) -> Document:
    return {**pod, "spec": {**pod["spec"], "nodeName": node}}


class WorldOfNodes(World):
    """Simulates a TApp with available instances, each on a different node: instance 0 on `node-0`,
    and so on.

    `spec` has further fields of the spec; by default `forceDeletePod` is True. Methods that return
    the world itself can be chained.
    """

    def __init__(self, replicas: int = 5, **spec: Any) -> None:
        spec = {"forceDeletePod": True, **spec}
        super().__init__(tapp(replicas=replicas, **spec), hook=Hook())
        self.settle()
        for id in range(replicas):
            self.modify(id, lambda pod, id=id: on_node(pod, f"node-{id}"))

    def stop_reporting(self, *ids: int, ago: float = 0) -> "WorldOfNodes":
        """Makes the nodes of these instances silent since `ago` seconds before now; returns the
        world.
        """
        for id in ids:
            self.modify(id, lambda pod: not_ready(pod, self.hook.now - ago))
        return self

    def later(self, seconds: float) -> "WorldOfNodes":
        """Advances the clock of the hook by some seconds; returns the world."""
        self.hook.now += seconds
        return self

    def lost_node_annotation(self, id: int) -> str:
        """Returns the annotation that marks an instance's pod as lost with its node, or ""."""
        return self.pod(id)["metadata"]["annotations"].get(LOST) or ""
