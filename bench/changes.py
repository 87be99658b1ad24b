"""Changes of a running pod between two syncs: each function changes the pod that it gets.

The API server's part is `sign`: another resourceVersion, and the time of the kubelet's report.
"""

import random

from bench.parent import Document
from bench.pods import LAST_APPLIED, container_id, go

_OF_CONTAINERS = ("Ready", "ContainersReady")


def readiness(pod: Document, now: str, *, ready: bool) -> None:
    """Its readiness probe begins to fail, or succeeds again."""
    pod["status"]["containerStatuses"][0]["ready"] = ready
    for condition in pod["status"]["conditions"]:
        if condition["type"] in _OF_CONTAINERS:
            condition["status"] = "True" if ready else "False"
            condition["lastTransitionTime"] = now


def restarts(pod: Document, now: str, rng: random.Random) -> None:
    """Its container has ended by itself, and another one runs in its place."""
    status = pod["status"]["containerStatuses"][0]
    ended = {
        "containerID": status["containerID"],
        "exitCode": 1,
        "finishedAt": now,
        "reason": "Error",
        "startedAt": status["state"]["running"]["startedAt"],
    }
    status["lastState"] = {"terminated": ended}
    status["restartCount"] += 1
    _started(pod, now, rng)


def is_updated(pod: Document, child: Document, now: str) -> None:
    """Metacontroller has written what the hook wants, and the kubelet stops the old container."""
    labels, annotations = (dict(child["metadata"][part]) for part in ("labels", "annotations"))
    pod["metadata"]["labels"] |= labels
    pod["metadata"]["annotations"] |= {**annotations, LAST_APPLIED: go(child).decode()}
    pod["metadata"]["generation"] += 1
    pod["spec"]["containers"][0]["image"] = child["spec"]["containers"][0]["image"]
    pod["status"]["observedGeneration"] = pod["metadata"]["generation"]
    readiness(pod, now, ready=False)
    status = pod["status"]["containerStatuses"][0]
    status["started"] = False
    status["state"] = {"waiting": {"reason": "ContainerCreating"}}


def has_new_container(pod: Document, now: str, rng: random.Random) -> None:
    """The update is over: the new image's container runs and is ready."""
    status = pod["status"]["containerStatuses"][0]
    status["image"] = pod["spec"]["containers"][0]["image"]
    status["restartCount"] += 1
    _started(pod, now, rng)


def sign(pod: Document, now: str, version: int) -> None:
    """Notes the write: what a report that says nothing new consists of."""
    pod["metadata"]["resourceVersion"] = str(version)
    for entry in pod["metadata"]["managedFields"]:
        if entry["manager"] == "kubelet":
            entry["time"] = now


def _started(pod: Document, now: str, rng: random.Random) -> None:
    status = pod["status"]["containerStatuses"][0]
    status["containerID"] = container_id(rng)
    status["state"] = {"running": {"startedAt": now}}
    status["started"] = True
    readiness(pod, now, ready=True)
