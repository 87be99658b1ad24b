"""The real node: starts its parts, offers levers for tests, and checks the requirements."""

from __future__ import annotations

import contextlib
import os
import platform
import shutil
import subprocess
import sys
import time
from pathlib import Path

from urllib3.exceptions import HTTPError

from tests.e2e.binaries import build
from tests.e2e.kube import Kube, KubeError

from .containerd import Containerd
from .images import Images
from .kubelet import RealKubelet
from .registry import Registry
from .space import ISOLATE, Space, hierarchies, sweep
from .witness import Witness

PACKAGES = "runc, busybox-static and containernetworking-plugins"


class RealNode:
    """containerd, kubelet, a registry and the witness in one directory.

    `dns` is the address of a DNS server for the cluster's names, if this is the cluster's only
    node.
    """

    def __init__(
        self, kubeconfig: Path, directory: Path, *, context: str | None = None, dns: str = ""
    ) -> None:
        sweep()
        self.seconds = 0.0
        """Seconds until the node was Ready."""
        self.kube = Kube(kubeconfig, context=context)
        self.space = Space(directory, directory.name)
        self._busybox = Path(shutil.which("busybox") or "busybox")
        self._kubeconfig = kubeconfig
        self._dns = dns
        self.images = Images(self._busybox, platform.machine())
        self.registry = Registry(self.images)
        self.containerd: Containerd
        self.kubelet: RealKubelet
        self.witness: Witness

    @property
    def name(self) -> str:
        """The name of the node."""
        return self.kubelet.name

    def start(self) -> RealNode:
        """Starts all parts and waits for a Ready node. Stops them if a part fails."""
        begun = time.monotonic()
        try:
            self.registry.start()
            self.space.start()
            binaries = build.containerd().bin_dir
            self.containerd = Containerd(self.space, binaries, self.registry.url)
            self.containerd.start()
            archive = self.space.directory / "images.tar"
            self.images.archive(archive)
            self.containerd.load(archive)
            binary = kubelet_binary()
            socket = self.containerd.socket
            self.kubelet = RealKubelet(self.space, binary, self._kubeconfig, socket, self._dns)
            self.kubelet.start()
            self.kubelet.wait_ready(self.kube)
            proc = Path(f"/proc/{self.space.init}/root/proc")
            self.witness = Witness(self.containerd.tasks, proc)
            self.witness.start()
        except BaseException:
            self.stop()
            raise
        self.seconds = time.monotonic() - begun
        return self

    def stop(self) -> None:
        """Stops the parts that write first. The remaining processes end with the namespace."""
        for part in ("witness", "kubelet", "containerd"):
            if hasattr(self, part):
                getattr(self, part).stop()
        if hasattr(self, "kubelet"):
            # The cluster may have been stopped.
            with contextlib.suppress(KubeError, OSError, HTTPError):
                self.kube.delete("v1", "nodes", None, self.name)
        self.space.stop()
        self.registry.stop()
        self.kube.close()

    def rest(self) -> None:
        """Resets all levers: kubelet and containerd run, and the registry offers no image."""
        self.registry.reset()
        if not self.containerd.alive:
            self.containerd.start()
        if not self.kubelet.alive:
            self.kubelet.start()
        self.kubelet.wait_ready(self.kube)

    def silence(self) -> None:
        """Kills the kubelet: no heartbeats and statuses, while containers continue to run."""
        self.kubelet.stop(kill=True)

    def kill(self, pid: int) -> None:
        """Kills a process by its process id inside the namespace."""
        enter = ["nsenter", "--target", str(self.space.init), "--pid"]
        kill = [str(self._busybox), "kill", "-9", str(pid)]
        subprocess.run([*enter, *kill], check=True, capture_output=True)

    def __enter__(self) -> RealNode:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()


def kubelet_binary() -> Path:
    """Returns the kubelet of the version in E2E_KUBELET, or of the control plane's version."""
    if older := os.environ.get("E2E_KUBELET"):
        return build.kubernetes(older).bin_dir / "kubelet"
    given = Path(os.environ.get("KUBEBUILDER_ASSETS") or build.bin_dir()) / "kubelet"
    return given if given.exists() else build.bin_dir() / "kubelet"


def missing(backend: str) -> str | None:
    """Returns a line that says why no real node can run here, or None if it can.

    `backend` is the kind of cluster: `local`, `existing` or `kind`.
    """
    if sys.platform != "linux":
        return "no real node: needs Linux"
    if os.geteuid() != 0:
        return "no real node: needs root"
    if backend != "local":
        return f"no real node: the cluster is {backend}, not of the tests' own processes"
    tools = [shutil.which("runc"), shutil.which("busybox"), Containerd.cni_plugins()]
    if not all(tools) or b"/ld-" in Path(tools[1] or "").read_bytes()[:4096]:
        return f"no real node: needs the packages {PACKAGES}"
    part = build.containerd()
    built = all((part.bin_dir / name).exists() for name in part.names)
    if not built or not kubelet_binary().exists():
        return "no real node: run `make e2e-binaries` (needs Go)"
    if not hierarchies() or not all(os.access(each, os.W_OK) for each in hierarchies()):
        return "no real node: cgroups cannot be written"
    trial = [*ISOLATE, "mount", "-t", "tmpfs", "tmpfs", "/run"]
    tried = subprocess.run(trial, text=True, capture_output=True, check=False)
    if tried.returncode != 0:
        return f"no real node: {tried.stderr.strip()}"
    return None
