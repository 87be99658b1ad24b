"""The acts of the demo: each is one change of the spec and the goals that it must reach.

An act is a generator. It yields the next spec, or None to delete the TApp. The caller then lets the
cluster settle and resumes the act, which returns its goals. Goals look at the objects of the
cluster, and not at the reports of the service.
"""

import json
import math
from datetime import datetime
from typing import Any

from demo.stage import (
    NAME,
    Act,
    Goal,
    Play,
    Spec,
    Stage,
    complete,
    condition_of,
    images,
    is_ready,
    ready,
)
from simulator.api.store import Event
from simulator.objects.clock import EPOCH

NEXT_IMAGE = "nginx:1.30"
GATE = "apps.tkestack.io/InPlaceUpdateReady"
GRACE = 5  # Seconds between leaving the Services and the update
LOST = 60  # Seconds without a report after which a node is lost


def drain(stage: Stage) -> Play:
    """Changes an image of pods that have the readiness gate.

    The pods have to leave their Services before the update. Yields the new spec and returns the
    goals, as every act does.
    """
    before, closed_for = stage.uids, dict[int, float]()

    def measure(event: Event) -> None:
        """Records for how long the readiness gate of a pod was closed when its image changed.

        The value is in simulated seconds, by instance number. It is negative infinity if the pod
        was still Ready.
        """
        pod = event.object
        if event.kind.name == "Pod" and pod["spec"]["containers"][0]["image"] == NEXT_IMAGE:
            closed_at = math.inf if is_ready(pod) else false_since(condition_of(pod, GATE))
            number = int(pod["metadata"]["labels"]["tapp_instance_key"])
            closed_for.setdefault(number, stage.world.clock.now - closed_at)

    stage.world.watch(measure)
    spec: Spec = json.loads(json.dumps(stage.spec))
    spec["templatePool"]["hotfix"]["spec"]["containers"][0]["image"] = NEXT_IMAGE
    spec["updateStrategy"]["forceUpdate"]["maxUnavailable"] = 2
    spec["updateStrategy"]["inPlaceUpdateStrategy"] = {"gracePeriodSeconds": GRACE}
    yield spec
    wanted = {**dict.fromkeys(range(4), NEXT_IMAGE), 4: FIXED, 5: FIXED}
    return [
        Goal(f"0 to 3 run {NEXT_IMAGE}", images(stage) == wanted and ready(stage) == set(wanted)),
        Goal("in the same pods", stage.uids == before),
        Goal(
            f"each left its Services {GRACE} seconds before",
            set(closed_for) == set(range(4)) and min(closed_for.values()) >= GRACE,
        ),
        complete(stage),
    ]


def lose_node(stage: Stage) -> Play:
    """Lets a node stop reporting. The instances of the node have to start on other nodes."""
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
        Goal("no other pod was replaced, and all six are Ready", ready(stage) == set(nodes)),
        Goal("with the claims they had", stage.claims == claims),
        Goal("not before a minute without reports", min(created, default=0) >= earliest),
        complete(stage),
    ]
    stage.world.nodes.recover(lost)
    return goals


def false_since(condition: Spec) -> float:
    """Returns when a condition became False, in simulated seconds.

    Returns infinity if the condition is not False.
    """
    if condition.get("status") != "False":
        return math.inf
    return seconds(condition["lastTransitionTime"])


def seconds(time: str) -> float:
    """Returns the time of a timestamp, in simulated seconds since `EPOCH`."""
    return datetime.fromisoformat(time).timestamp() - EPOCH.timestamp()


def listed(numbers: set[int]) -> str:
    """Returns numbers as text, sorted, such as `2 and 5`."""
    return " and ".join(map(str, sorted(numbers)))


OLD, NEW, BAD, FIXED = "nginx:1.27", "nginx:1.28", "nginx:1.29-typo", "nginx:1.29"


def template(image: str, **more: Any) -> Spec:
    """Returns a pod template with one container, which mounts the claim `data`.

    Args:
        image: the image of the container.
        more: further fields of the container.
    """
    mounts = [{"name": "data", "mountPath": "/data"}]
    container = {"name": "web", "image": image, "volumeMounts": mounts, **more}
    return {"metadata": {"labels": {"app": NAME}}, "spec": {"containers": [container]}}


CLAIM = {
    "metadata": {"name": "data"},
    "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
}


def create(stage: Stage) -> Play:
    """Creates a TApp with six instances, each of which has a claim."""
    yield {
        "replicas": 6,
        "updateStrategy": {"maxUnavailable": 2},
        "template": template(OLD),
        "volumeClaimTemplates": [CLAIM],
    }
    return [
        Goal("six pods run and are Ready", ready(stage) == set(range(6))),
        Goal("each has its own claim", len(stage.claims) == len(stage.pods)),
        complete(stage),
    ]


def canary(stage: Stage) -> Play:
    """Lets one instance run a template of the pool, whose image is newer."""
    before = stage.uids
    yield {**stage.spec, "templatePool": {"canary": template(NEW)}, "templates": {"5": "canary"}}
    return [
        Goal(f"instance 5 runs {NEW}", images(stage) == {**dict.fromkeys(range(5), OLD), 5: NEW}),
        Goal("in the same pod: updated in place", stage.uids == before),
        Goal("no other pod was written to", stage.touched == {5}),
        complete(stage),
    ]


def roll(stage: Stage) -> Play:
    """Gives the default template the canary's image.

    All instances except the canary have to be updated.
    """
    before = stage.uids
    spec = {**stage.spec, "template": template(NEW)}
    yield {key: spec[key] for key in spec if key not in ("templatePool", "templates")}
    return [
        Goal(f"all run {NEW}", set(images(stage).values()) == {NEW}),
        Goal("in the same pods", stage.uids == before),
        Goal("instance 5 was not touched", stage.touched == set(range(5))),
        Goal("four instances served at any time", stage.fewest_serving == 4),  # noqa: PLR2004
        complete(stage),
    ]


def bad_image(stage: Stage) -> Play:
    """Gives the default template an image that cannot be pulled. The rollout has to stop."""
    stage.world.kubelet.levers.bad_images = {BAD}
    yield {**stage.spec, "template": template(BAD)}
    degraded = stage.condition("Degraded")
    return [
        Goal("it stopped after two instances", stage.touched == {0, 1}),
        Goal(f"the other four still serve {NEW}", ready(stage) == {2, 3, 4, 5}),
        Goal(
            "the status says Degraded, and why",
            degraded.get("status") == "True" and "instance 0" in degraded["message"],
        ),
    ]


def repair(stage: Stage) -> Play:
    """Gives the default template a good image. The broken instances have to be updated first."""
    before = stage.uids
    yield {**stage.spec, "template": template(FIXED)}
    return [
        Goal(f"all run {FIXED}", set(images(stage).values()) == {FIXED}),
        Goal(
            "all are Ready, in the pods they had",
            (ready(stage), stage.uids) == (set(before), before),
        ),
        Goal("four instances served at any time", stage.fewest_serving == 4),  # noqa: PLR2004
        complete(stage),
    ]


def kill(stage: Stage) -> Play:
    """Stops one instance, whose claim has to stay."""
    claims = stage.claims
    yield {**stage.spec, "statuses": {"3": "Killed"}}
    return [
        Goal("pod 3 is gone, the others run", ready(stage) == {0, 1, 2, 4, 5} == set(stage.pods)),
        Goal("its claim stayed", stage.claims == claims),
        Goal("status.statuses says Killed", stage.status["statuses"].get("3") == "Killed"),
        complete(stage),
    ]


def start(stage: Stage) -> Play:
    """Starts the stopped instance again. The instance has to use its old claim."""
    claims = stage.claims
    yield {key: value for key, value in stage.spec.items() if key != "statuses"}
    volumes = stage.pods[3]["spec"]["volumes"] if 3 in stage.pods else []  # noqa: PLR2004
    mounted = [(item.get("persistentVolumeClaim") or {}).get("claimName") for item in volumes]
    return [
        Goal("instance 3 runs again", ready(stage) == set(range(6))),
        Goal("with the claim it had", stage.claims == claims and f"data-{NAME}-3" in mounted),
        Goal("no other pod was written to", stage.touched == {3}),
        complete(stage),
    ]


def force(stage: Stage) -> Play:
    """Lets four instances run a template other than the rolling template.

    Their updates have a larger budget.
    """
    before, claims = stage.uids, stage.claims
    hotfix = template(FIXED, env=[{"name": "HOTFIX", "value": "on"}])
    hotfix["spec"]["readinessGates"] = [{"conditionType": GATE}]
    yield {
        **stage.spec,
        "updateStrategy": {
            "template": "default",
            "maxUnavailable": 2,
            "forceUpdate": {"maxUnavailable": 4},
        },
        "templatePool": {"hotfix": hotfix},
        "templates": {str(number): "hotfix" for number in range(4)},
    }
    recreated = {number for number, uid in stage.uids.items() if before.get(number) != uid}
    return [
        Goal(
            "0 to 3 have new pods with the variable", recreated == {0, 1, 2, 3} == hotfixed(stage)
        ),
        Goal("all four at once", stage.fewest_serving == 2),  # noqa: PLR2004
        Goal("with the claims they had", stage.claims == claims),
        complete(stage),
    ]


def scale_up(stage: Stage) -> Play:
    """Adds two instances. The existing instances have to stay as they are."""
    before = stage.uids
    yield {**stage.spec, "replicas": 8}
    kept = {number: uid for number, uid in stage.uids.items() if number in before}
    return [
        Goal("eight instances run", ready(stage) == set(range(8))),
        Goal("the first six were not touched", kept == before and stage.touched == {6, 7}),
        complete(stage),
    ]


def scale_down(stage: Stage) -> Play:
    """Removes the four instances with the highest numbers. Their claims have to stay."""
    claims = stage.claims
    yield {**stage.spec, "replicas": 4}
    return [
        Goal(
            "the highest numbers went: 0 to 3 run", ready(stage) == {0, 1, 2, 3} == set(stage.pods)
        ),
        Goal("all eight claims stayed", stage.claims == claims and len(claims) == 8),  # noqa: PLR2004
        complete(stage),
    ]


def delete(stage: Stage) -> Play:
    """Deletes the TApp. Its claims have to stay."""
    claims = stage.claims
    yield None
    return [
        Goal("the TApp is gone, and all of its pods", not stage.status and not stage.pods),
        Goal("every claim is still there", stage.claims == claims),
        Goal(
            "in thirteen acts no write was refused, and none was made without a change",
            not stage.bad_writes,
        ),
    ]


def hotfixed(stage: Stage) -> set[int]:
    """Returns the numbers of the instances whose container has an environment variable.

    Only the template of the hotfix sets one.
    """
    return {number for number, pod in stage.pods.items() if pod["spec"]["containers"][0].get("env")}


ACTS = (
    Act(
        "Six instances, each with its own volume",
        "Instances are numbered: 0 to 5.",
        create,
        brief=True,
    ),
    Act(
        "A canary",
        "A second template goes into the pool, and instance 5 gets it. Only the image differs, so "
        "the container is updated in place.",
        canary,
        brief=True,
    ),
    Act(
        "The others follow, two at a time",
        "The default template gets the new image. Instance 5 returns to this template and needs no "
        "update, because its pod runs this image already.",
        roll,
        brief=True,
    ),
    Act(
        "A bad image",
        "Somebody mistypes a tag. Two instances become unavailable, as the budget allows, and the "
        "rollout waits.",
        bad_image,
    ),
    Act(
        "Repaired by the next template",
        "Broken instances are updated first, whatever the budget: they are unavailable anyway.",
        repair,
    ),
    Act(
        "Instance 3 is stopped", "An entry in `statuses` does it; the data stays.", kill, brief=True
    ),
    Act("Instance 3 starts again", "The entry is removed.", start),
    Act(
        "A forced update",
        "A template that is not the rolling one has a larger budget, here 4. An environment "
        "variable and a readiness gate cannot be added to a running pod: these pods are replaced.",
        force,
    ),
    Act(
        "Out of the Service first",
        "With the gate and a grace period an instance leaves its Services before its container is "
        "updated (▽). Metacontroller sets the gate as the second hook tells it.",
        drain,
    ),
    Act(
        "A node is lost",
        "Five seconds after the change a node stops reporting (?). With forceDeletePod its "
        "instances start elsewhere, here after a minute (set by an annotation; the default is "
        "five minutes), as long as most nodes report.",
        lose_node,
    ),
    Act("Scaled up", "", scale_up),
    Act("Scaled down", "By default the claims of instances that leave are kept.", scale_down),
    Act("Deleted", "`kubectl delete tapp shop`. The data outlives the TApp.", delete),
)
