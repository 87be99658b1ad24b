"""The kubelet as a process inside the node's namespaces."""

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
    """One node's kubelet: stopped and started again under pods that run on.

    Only pods that ask for the node land there, beside fake ones; but where `dns` says which address
    answers the cluster's names, it is a cluster's one node, and takes them all.
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
        """Starts it and waits until it is healthy."""
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
        """Stops it: the node goes silent, its containers run on."""
        if self._process is not None:
            self._process.stop(kill=kill)

    def become(self, binary: Path) -> None:
        """Another kubelet takes over the node and what runs there, as in an upgrade."""
        self.stop()
        self._process, self.binary = None, binary
        self.start()

    @property
    def alive(self) -> bool:
        """True if it runs."""
        return self._process is not None and self._process.alive

    def wait_ready(self, kube: Kube) -> None:
        """Waits until the cluster counts the node as ready."""
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
            # One cgroup of the run's own, so that nothing of it can stay behind.
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
            # The control plane takes a node for lost after a few seconds.
            "nodeLeaseDurationSeconds": LEASE_SECONDS,
            "nodeStatusUpdateFrequency": "2s",
            "nodeStatusReportFrequency": "60s",
        }


def node_is_ready(kube: Kube, node: str) -> bool:
    """True if the API server answers, and takes the node for Ready."""
    with contextlib.suppress(KubeError):
        return is_ready(kube.find("v1", "nodes", None, node) or {})
    return False
