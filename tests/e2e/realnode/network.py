"""Gives addresses to pods that do not use the host's network.

A pair of virtual interfaces connects each pod to the host. There is no bridge and no forwarding,
and the only route leads to the addresses of Services. The interfaces disappear with the namespaces
of the pods, which end with the node's namespaces.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from ipaddress import IPv4Network

from tests.e2e.waiting import PATIENCE, until

from .node import RealNode

PODS, SERVICES = IPv4Network("198.18.0.0/16"), IPv4Network("198.19.0.0/16")
"""Halves of the address range for benchmarks of networks (RFC 2544)."""
FORWARDING = "/proc/sys/net/ipv4/ip_forward"


def block(whole: IPv4Network, number: int) -> IPv4Network:
    """Returns a block of 16 addresses.

    Parallel runs share the host's routes, so each takes its own block.
    """
    return IPv4Network((int(whole[number * 16 % whole.num_addresses]), 28))


class PodNetwork:
    """While this context is active, the node's pods get addresses unless they use the host's
    network.
    """

    def __init__(self, node: RealNode) -> None:
        self._init = node.space.init
        self._configuration = node.containerd.directory / "cni" / "05-pods.conflist"
        self._forwarding = node.space.directory / "ip_forward"

    def __enter__(self) -> PodNetwork:
        # The plugin would switch on forwarding for the whole host. This file makes it look switched
        # on already.
        self._forwarding.write_text("1\n")
        self._inside("mount", "--bind", str(self._forwarding), FORWARDING)
        subnet = str(block(PODS, os.getpid()))
        routes = [{"dst": str(SERVICES)}]
        addresses = {"type": "host-local", "ranges": [[{"subnet": subnet}]], "routes": routes}
        plugins = [{"type": "ptp", "ipam": addresses}]
        content = {"cniVersion": "1.0.0", "name": "pods", "plugins": plugins}
        self._configuration.write_text(json.dumps(content))
        return self

    def __exit__(self, *_: object) -> None:
        self._configuration.unlink()
        self._inside("umount", FORWARDING)

    @classmethod
    @contextmanager
    def for_pods(cls, node: RealNode) -> Iterator[None]:
        """Activates the network, and waits at the end until no pod is left on the node."""
        with cls(node):
            yield
            here = partial(
                node.kube.list_all, "v1", "pods", fieldSelector=f"spec.nodeName={node.name}"
            )
            until(lambda: not here(), "no pods are left on the node", PATIENCE)

    def _inside(self, *command: str) -> None:
        enter = ["nsenter", "--target", str(self._init), "--mount", "--pid"]
        subprocess.run([*enter, *command], check=True, capture_output=True)
