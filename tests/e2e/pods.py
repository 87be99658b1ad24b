"""Creates, changes, reads and awaits plain pods of one namespace."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import Any

from .kube import Json, Kube
from .waiting import PATIENCE, until


def pod(namespace: str, name: str, **spec: Any) -> Json:
    """Returns a pod with one container `main`, unless the spec says otherwise."""
    containers = [{"name": "main", "image": "app:1"}]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"containers": containers, "terminationGracePeriodSeconds": 1} | spec,
    }


def dry_run_pod(kube: Kube, namespace: str, made: Json) -> None:
    """Creates a pod of a template in a dry run.

    Raises KubeError if the API server refuses the pod.
    """
    pod = {"apiVersion": "v1", "kind": "Pod", **made}
    pod["metadata"] = {**made.get("metadata", {}), "name": "probe", "namespace": namespace}
    kube.request("POST", kube.path("v1", "pods", namespace), pod, {"dryRun": "All"})


class Pods:
    """The pods of a namespace."""

    def __init__(self, kube: Kube, namespace: str) -> None:
        self.kube = kube
        self.namespace = namespace

    def get(self, name: str) -> Json:
        return self.kube.get("v1", "pods", self.namespace, name)

    def create(self, name: str, **spec: Any) -> Json:
        return self.kube.create(pod(self.namespace, name, **spec))

    def delete(self, name: str, **options: Any) -> bool:
        return self.kube.delete("v1", "pods", self.namespace, name, **options)

    def set_image(
        self, name: str, image: str, container: int = 0, group: str = "containers"
    ) -> None:
        patch = [{"op": "replace", "path": f"/spec/{group}/{container}/image", "value": image}]
        self.kube.patch(self.kube.path("v1", "pods", self.namespace, name), patch)

    def wait(self, name: str, ready: Callable[[Json], bool], timeout: float = PATIENCE) -> Json:
        deadline = time.monotonic() + timeout
        while True:
            found = self.get(name)
            if ready(found):
                return found
            assert time.monotonic() < deadline, found.get("status")
            time.sleep(0.03)

    def wait_gone(self, name: str) -> None:
        find = partial(self.kube.find, "v1", "pods", self.namespace, name)
        until(lambda: find() is None, f"{name} is gone", PATIENCE)


def is_ready(found: Json) -> bool:
    """Returns True if the condition Ready of a pod, a node or a TApp is True."""
    return any(
        each["type"] == "Ready" and each["status"] == "True"
        for each in (found.get("status") or {}).get("conditions") or []
    )


def container(found: Json, index: int = 0, group: str = "containerStatuses") -> Json:
    status: Json = (found["status"].get(group) or [{}] * (index + 1))[index]
    return status


def waiting(found: Json) -> str:
    state = container(found).get("state") or {}
    return str((state.get("waiting") or {}).get("reason", ""))


def phase(found: Json) -> str:
    return str(found["status"]["phase"])
