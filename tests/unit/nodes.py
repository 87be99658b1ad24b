"""Nodes that stop reporting, and a TApp with each instance on a different node."""

from datetime import UTC, datetime
from typing import Any

from tests.builders import Document, tapp
from tests.unit.world import Hook, World

LOST = "apps.tkestack.io/lost-node"


def timestamp(at: float) -> str:
    return datetime.fromtimestamp(int(at), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def not_ready(pod: Document, since: float) -> Document:
    """Returns a pod as the node lifecycle controller leaves it: not Ready, otherwise unchanged."""
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
    """A settled TApp with each instance on a different node."""

    def __init__(self, replicas: int = 5, **spec: Any) -> None:
        spec = {"forceDeletePod": True, **spec}
        super().__init__(tapp(replicas=replicas, **spec), hook=Hook())
        self.settle()
        for id in range(replicas):
            self.modify(id, lambda pod, id=id: on_node(pod, f"node-{id}"))

    def stop_reporting(self, *ids: int, ago: float = 0) -> "WorldOfNodes":
        for id in ids:
            self.modify(id, lambda pod: not_ready(pod, self.hook.now - ago))
        return self

    def later(self, seconds: float) -> "WorldOfNodes":
        self.hook.now += seconds
        return self

    def lost_node_annotation(self, id: int) -> str:
        return self.pod(id)["metadata"]["annotations"].get(LOST) or ""
