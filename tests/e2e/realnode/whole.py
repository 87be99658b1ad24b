"""A cluster as a user has it: one real node, which takes every pod, and Services that work."""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Iterable
from pathlib import Path

from tests.e2e.released import Fresh

from .network import SERVICES, PodNetwork, block
from .node import RealNode
from .services import Services


class WholeCluster(Fresh):
    """An empty cluster, with `kubectl` and `helm` for it.

    `images` are names under which its node has a program that just runs.
    """

    node: RealNode

    def __init__(self, binaries: Path, directory: Path, images: Iterable[str]) -> None:
        self._images = list(images)
        self._addresses = block(SERVICES, os.getpid())
        flags = [f"--service-cluster-ip-range={self._addresses}"]
        # As they are by default; other tests cannot wait so long.
        flags += [f"--default-{why}-toleration-seconds=300" for why in ("not-ready", "unreachable")]
        super().__init__(binaries, directory, flags)

    def start_nodes(self, stack: contextlib.ExitStack) -> None:
        """Starts the node, and what answers for Services."""
        busybox = Path(shutil.which("busybox") or "busybox")
        services = stack.enter_context(Services(self.kubeconfig, self._addresses, busybox))
        # Not called as the session's node is, whose cgroup has that name.
        self.node = RealNode(self.kubeconfig, self.directory / "whole", dns=services.dns)
        for name in self._images:
            self.node.images.add(name, {"VERSION": name.rpartition(":")[2]})
        stack.enter_context(self.node)
        stack.enter_context(PodNetwork(self.node))

    @property
    def hook_url(self) -> str:
        """The service's own address, which this host reaches as pods do."""
        found = self.kube.get("v1", "services", "tapp-system", "tapp-hooks")["spec"]
        return f"http://{found['clusterIP']}:{found['ports'][0]['port']}"
