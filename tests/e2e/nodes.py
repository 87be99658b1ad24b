"""Fake nodes: creates them, sends their heartbeats, and disconnects and reconnects them."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from urllib3.exceptions import HTTPError

from .kube import Json, Kube, KubeError
from .pods import is_ready

HEARTBEAT = 1.0
LABEL = "e2e.fake/node"
CAPACITY = {"cpu": "1000", "memory": "4Ti", "pods": "2000", "ephemeral-storage": "4Ti"}
DECLARED = ["RestartAllContainersOnContainerExits"]
"""Features that the scheduler requires of a node for some pods. The fake kubelet supports them."""

LIMIT = 5
"""Seconds of silence after which the TApps in these tests count a node as lost."""


def mobile(made: Json) -> Json:
    """Lets the instances of a TApp leave lost nodes, and returns the TApp."""
    made["metadata"]["annotations"] = {"apps.tkestack.io/lost-node-seconds": str(LIMIT)}
    made["spec"]["forceDeletePod"] = True
    return made


def timestamp() -> str:
    """Returns the current time in Kubernetes' format."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


class Nodes:
    """Nodes with a separate thread for heartbeats, so that busy pods do not delay these."""

    def __init__(self, kube: Kube, names: Sequence[str], *, tainted: bool) -> None:
        self.names = frozenset(names)
        self.lost: set[str] = set()
        self._kube = kube
        self._tainted = tainted
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._beat, name="heartbeat", daemon=True)

    def start(self) -> None:
        """Creates nodes and leases and reports all nodes as Ready."""
        for name in sorted(self.names):
            self._kube.apply(self._node(name))
            self._report(name)
            self._renew(name)
        self._thread.start()

    def stop(self) -> None:
        """Stops the heartbeats. On a cluster with real nodes, the fake nodes are deleted."""
        self._ending.set()
        self._thread.join(10)
        if self._tainted:
            for name in self.names:
                self._kube.delete("v1", "nodes", None, name)
        self._kube.close()

    def lose(self, name: str) -> None:
        """Sends no more heartbeats of this node."""
        if name not in self.names:
            raise LookupError(f"no fake node {name}")
        self.lost.add(name)

    def recover(self, name: str) -> None:
        """Sends heartbeats again and reports the node as Ready."""
        self.lost.discard(name)
        self._renew(name)
        self._report(name)

    def _beat(self) -> None:
        while not self._ending.wait(HEARTBEAT):
            for name in sorted(self.names - self.lost):
                # A node continues to try while the API server is down.
                with contextlib.suppress(KubeError, OSError, HTTPError):
                    self._renew(name)
                    if not is_ready(self._kube.get("v1", "nodes", None, name)):
                        self._report(name)  # the API server was down for too long

    def _node(self, name: str) -> Json:
        taints = [{"key": LABEL, "value": "true", "effect": "NoSchedule"}] if self._tainted else []
        labels = {
            LABEL: "true",
            "kubernetes.io/hostname": name,
            "kubernetes.io/os": "linux",
            "kubernetes.io/arch": "amd64",
        }
        node: Json = {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": name, "labels": labels},
            "spec": {"taints": taints} if taints else {},
        }
        return node

    def _report(self, name: str) -> None:
        now = timestamp()
        good = {
            "Ready": ("True", "KubeletReady"),
            "MemoryPressure": ("False", "KubeletHasSufficientMemory"),
            "DiskPressure": ("False", "KubeletHasNoDiskPressure"),
            "PIDPressure": ("False", "KubeletHasSufficientPID"),
        }
        conditions: list[Any] = [
            {
                "type": kind,
                "status": status,
                "reason": reason,
                "message": reason,
                "lastHeartbeatTime": now,
                "lastTransitionTime": now,
            }
            for kind, (status, reason) in good.items()
        ]
        status = {
            "capacity": CAPACITY,
            "allocatable": CAPACITY,
            "declaredFeatures": DECLARED,
            "conditions": conditions,
            "addresses": [{"type": "InternalIP", "address": "127.0.0.1"}],
        }
        path = self._kube.path("v1", "nodes", None, name, "status")
        self._kube.patch(path, {"status": status})

    def _renew(self, name: str) -> None:
        now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        self._kube.apply(
            {
                "apiVersion": "coordination.k8s.io/v1",
                "kind": "Lease",
                "metadata": {"name": name, "namespace": "kube-node-lease"},
                "spec": {"holderIdentity": name, "leaseDurationSeconds": 40, "renewTime": now},
            }
        )
