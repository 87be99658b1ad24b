"""Runs the kubelet as a process inside the node's namespaces."""

from __future__ import annotations

import contextlib
from pathlib import Path

import yaml

from tests.e2e.kube import Json, Kube, KubeError
from tests.e2e.pods import is_ready
from tests.e2e.process import Process, free_ports

from .space import Space

LABEL = "e2e.real/node"
LEASE_SECONDS = 8
DOMAIN = "cluster.local"


class RealKubelet:
    """The kubelet of a node. Its pods continue to run while it restarts.

    The node is tainted, so that only pods that ask for it run there, beside fake nodes. With `dns`,
    the address of a DNS server for the cluster's names, it is the cluster's only node and takes all
    pods.
    """

    def __init__(
        self, space: Space, binary: Path, kubeconfig: Path, socket: Path, dns: str = ""
    ) -> None:
        self.name = "real-0"
        self.directory = space.directory / "kubelet"
        self._space = space
        self.binary = binary
        self._kubeconfig = kubeconfig
        self._process: Process | None = None
        port, self._health = free_ports(2)
        self.directory.mkdir(parents=True)
        settings = self._settings(port, f"unix://{socket}")
        if dns:
            settings |= {"clusterDNS": [dns], "clusterDomain": DOMAIN}
        else:
            taint = {"key": LABEL, "value": "true", "effect": "NoSchedule"}
            settings["registerWithTaints"] = [taint]
        (self.directory / "config.yaml").write_text(yaml.safe_dump(settings))

    def start(self) -> None:
        """Starts the kubelet and waits until it is healthy."""
        if self._process is None:
            self._process = self._space.process(
                "kubelet",
                self.binary,
                f"--config={self.directory / 'config.yaml'}",
                f"--kubeconfig={self._kubeconfig}",
                f"--root-dir={self.directory / 'root'}",
                f"--cert-dir={self.directory / 'pki'}",
                f"--hostname-override={self.name}",
                f"--node-labels={LABEL}=true",
                "--v=2",
            )
        self._process.start()
        self._process.wait_http(f"http://127.0.0.1:{self._health}/healthz")

    def stop(self, *, kill: bool = False) -> None:
        """Stops the kubelet: the node sends no heartbeats, and its containers continue to run."""
        if self._process is not None:
            self._process.stop(kill=kill)

    def become(self, binary: Path) -> None:
        """Replaces the kubelet by another binary, which takes over the running pods, as in an
        upgrade.
        """
        self.stop()
        self._process, self.binary = None, binary
        self.start()

    @property
    def alive(self) -> bool:
        """True if the kubelet runs."""
        return self._process is not None and self._process.alive

    def wait_ready(self, kube: Kube) -> None:
        """Waits until the node is Ready in the API server."""
        assert self._process is not None
        self._process.wait_until(lambda: node_is_ready(kube, self.name), "ready node")

    def _settings(self, port: int, endpoint: str) -> Json:
        return {
            "apiVersion": "kubelet.config.k8s.io/v1beta1",
            "kind": "KubeletConfiguration",
            "address": "127.0.0.1",
            "port": port,
            "healthzBindAddress": "127.0.0.1",
            "healthzPort": self._health,
            "authentication": {"anonymous": {"enabled": False}, "webhook": {"enabled": True}},
            "containerRuntimeEndpoint": endpoint,
            "imageServiceEndpoint": endpoint,
            "podLogsDir": str(self.directory / "logs"),
            "resolvConf": "",
            "makeIPTablesUtilChains": False,
            # A cgroup for this run only, so that no process of it can remain.
            "cgroupRoot": f"/{self._space.cgroup}",
            "cgroupDriver": "cgroupfs",
            "failCgroupV1": False,
            "enforceNodeAllocatable": [],
            "oomScoreAdj": 0,
            "failSwapOn": False,
            "localStorageCapacityIsolation": False,
            "evictionHard": {"memory.available": "1Mi"},
            "imageGCHighThresholdPercent": 100,
            "serializeImagePulls": False,
            # The control plane treats a node as lost after a few seconds.
            "nodeLeaseDurationSeconds": LEASE_SECONDS,
            "nodeStatusUpdateFrequency": "2s",
            "nodeStatusReportFrequency": "60s",
        }


def node_is_ready(kube: Kube, node: str) -> bool:
    """Returns True if the API server responds and the node is Ready."""
    with contextlib.suppress(KubeError):
        return is_ready(kube.find("v1", "nodes", None, node) or {})
    return False
