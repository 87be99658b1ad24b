"""A cluster like a user's: one real node that takes all pods, and working Services."""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Iterable
from pathlib import Path

from tests.e2e.installed_release import Fresh

from .network import SERVICES, PodNetwork, block
from .node import RealNode
from .services import Services


class WholeCluster(Fresh):
    """An empty cluster, with `kubectl` and `helm` for it.

    `images` are names under which its node has an image whose program only runs.
    """

    node: RealNode

    def __init__(self, binaries: Path, directory: Path, images: Iterable[str]) -> None:
        self._images = list(images)
        self._addresses = block(SERVICES, os.getpid())
        flags = [f"--service-cluster-ip-range={self._addresses}"]
        # The default values, for which other tests cannot wait.
        flags += [f"--default-{why}-toleration-seconds=300" for why in ("not-ready", "unreachable")]
        super().__init__(binaries, directory, flags)

    def start_nodes(self, stack: contextlib.ExitStack) -> None:
        """Starts the node and the server for Services."""
        busybox = Path(shutil.which("busybox") or "busybox")
        services = stack.enter_context(Services(self.kubeconfig, self._addresses, busybox))
        # The name differs from the session's node, whose name is in use for a cgroup.
        self.node = RealNode(self.kubeconfig, self.directory / "whole", dns=services.dns)
        for name in self._images:
            self.node.images.add(name, {"VERSION": name.rpartition(":")[2]})
        stack.enter_context(self.node)
        stack.enter_context(PodNetwork(self.node))

    @property
    def hook_url(self) -> str:
        """The cluster address of the service, which this host reaches as pods do."""
        found = self.kube.get("v1", "services", "tapp-system", "tapp-hooks")["spec"]
        return f"http://{found['clusterIP']}:{found['ports'][0]['port']}"
