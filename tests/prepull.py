"""Checks that images are pulled before an update stops containers (`prePull`), for
`tests.invariants`.

With `prePull` the service creates a *puller* on each node: a short-lived pod that belongs to no
instance and makes the kubelet pull the new image.
"""

from collections.abc import Iterator
from typing import Any

from tests.hook_calls import desired, number, observed

Document = dict[str, Any]
PULLER = "apps.tkestack.io/puller"


def is_puller(pod: Document) -> bool:
    """Returns True if the pod is a puller: a pod that pulls images and belongs to no instance."""
    return PULLER in (pod["metadata"].get("labels") or {})


def stopped_before_pull(request: Document, answer: Document) -> list[str]:
    """Returns each running container whose new image is not on the node yet and which a response
    stops.

    Each entry has the form `POD: IMAGE`. The list is empty if `prePull` is not set, and if the
    condition PullersNotRun says that pullers cannot run.
    """
    strategy = request["parent"]["spec"].get("updateStrategy") or {}
    first = (strategy.get("inPlaceUpdateStrategy") or {}).get("prePull")
    conditions = {item["type"] for item in answer["status"].get("conditions") or []}
    if request["finalizing"] or not first or "PullersNotRun" in conditions:
        return []
    pods, want = observed(request, "Pod"), desired(answer, "Pod")
    there = {pair for pod in pods.values() for pair in _on_node(pod)}
    found = []
    for name, pod in pods.items():
        if number(request, name) is None or name not in want:
            continue
        node, running = pod["spec"].get("nodeName"), _running(pod)
        before, never = _images(pod), _never_pulled(pod)
        changed = {
            container: image
            for container, image in _images(want[name]).items()
            if before.get(container, image) != image and "@sha256:" not in image
            if container not in never
        }
        if running & changed.keys():
            found += [f"{name}: {i}" for i in changed.values() if (node, i) not in there]
    return found


def _on_node(pod: Document) -> Iterator[tuple[str, str]]:
    """Yields pairs of node and image: the images that, according to this pod, are on its node."""
    node = pod["spec"].get("nodeName") or ""
    statuses = (pod.get("status") or {}).get("containerStatuses") or []
    if is_puller(pod):
        if any(status.get("containerID") for status in statuses):
            for volume in pod["spec"]["volumes"]:
                yield node, volume["image"]["reference"]
        return
    for status in _statuses(pod):
        if "running" in (status.get("state") or {}):
            image = str(status.get("image", ""))
            for prefix in ("", "docker.io/", "docker.io/library/"):
                yield node, image.removeprefix(prefix)


def _statuses(pod: Document) -> list[Document]:
    status = pod.get("status") or {}
    both = ("containerStatuses", "initContainerStatuses")
    return [item for key in both for item in status.get(key) or []]


def _running(pod: Document) -> set[str]:
    return {s["name"] for s in _statuses(pod) if "running" in (s.get("state") or {})}


def _images(pod: Document) -> dict[str, str]:
    return {item["name"]: item.get("image", "") for item in _containers(pod)}


def _never_pulled(pod: Document) -> set[str]:
    return {item["name"] for item in _containers(pod) if item.get("imagePullPolicy") == "Never"}


def _containers(pod: Document) -> list[Document]:
    spec = pod.get("spec") or {}
    return [*(spec.get("containers") or []), *(spec.get("initContainers") or [])]
