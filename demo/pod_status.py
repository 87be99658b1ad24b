"""The acts with the component pod-status: a drain before an update, and a lost node."""

import json
import math
from datetime import datetime

from demo.act import Goal, Play, Spec, complete, images, ready
from demo.stage import Stage, condition_of, is_ready
from simulator.api.store import Event
from simulator.objects.clock import EPOCH

OLD, NEXT = "nginx:1.29", "nginx:1.30"
GATE = "apps.tkestack.io/InPlaceUpdateReady"
GRACE = 5  # Seconds of a drain
LOST = 60  # Seconds of silence after which a node is lost


def drain(stage: Stage) -> Play:
    """A new image for the pods that have the gate; the first ones leave their Services."""
    before, closed_for = stage.uids, dict[int, float]()

    def measure(event: Event) -> None:
        """For how long a pod's gate has been closed when its image changes; -inf if it is Ready."""
        pod = event.object
        if event.kind.name == "Pod" and pod["spec"]["containers"][0]["image"] == NEXT:
            closed_at = math.inf if is_ready(pod) else false_since(condition_of(pod, GATE))
            number = int(pod["metadata"]["labels"]["tapp_instance_key"])
            closed_for.setdefault(number, stage.world.clock.now - closed_at)

    stage.world.watch(measure)
    spec: Spec = json.loads(json.dumps(stage.spec))
    spec["templatePool"]["hotfix"]["spec"]["containers"][0]["image"] = NEXT
    spec["updateStrategy"]["forceUpdate"]["maxUnavailable"] = 2
    spec["updateStrategy"]["inPlaceUpdateStrategy"] = {"gracePeriodSeconds": GRACE}
    yield spec
    wanted = {**dict.fromkeys(range(4), NEXT), 4: OLD, 5: OLD}
    return [
        Goal(f"0 to 3 run {NEXT}", images(stage) == wanted and ready(stage) == set(wanted)),
        Goal("in the same pods", stage.uids == before),
        Goal(
            f"each left its Services {GRACE} seconds before",
            set(closed_for) == set(range(4)) and min(closed_for.values()) >= GRACE,
        ),
        complete(stage),
    ]


def lose_node(stage: Stage) -> Play:
    """A node goes silent; what ran there starts elsewhere."""
    nodes = {number: pod["spec"]["nodeName"] for number, pod in stage.pods.items()}
    before, claims, lost = stage.uids, stage.claims, nodes[5]
    moved = {number for number, node in nodes.items() if node == lost}
    stage.world.clock.after(GRACE, lambda: stage.world.nodes.lose(lost))
    stage.annotations = {"apps.tkestack.io/lost-node-seconds": str(LOST)}
    yield {**stage.spec, "forceDeletePod": True}
    recreated = {number for number, uid in stage.uids.items() if before.get(number) != uid}
    earliest = stage.started + GRACE + LOST
    created = [seconds(stage.pods[id]["metadata"]["creationTimestamp"]) for id in recreated]
    homes = {pod["spec"]["nodeName"] for pod in stage.pods.values()}
    goals = [
        Goal(f"{listed(moved)} run on other nodes", recreated == moved and lost not in homes),
        Goal("no other pod was made anew, and all six are Ready", ready(stage) == set(nodes)),
        Goal("with the claims they had", stage.claims == claims),
        Goal("not before a minute of silence", min(created, default=0) >= earliest),
        complete(stage),
    ]
    stage.world.nodes.recover(lost)
    return goals


def false_since(condition: Spec) -> float:
    """Since when a condition is False, in simulated time; infinity where it is not."""
    if condition.get("status") != "False":
        return math.inf
    return seconds(condition["lastTransitionTime"])


def seconds(time: str) -> float:
    """A time of an object in simulated seconds."""
    return datetime.fromisoformat(time).timestamp() - EPOCH.timestamp()


def listed(numbers: set[int]) -> str:
    """`2 and 5`."""
    return " and ".join(map(str, sorted(numbers)))
