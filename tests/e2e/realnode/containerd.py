"""Runs containerd with runc as a process inside the node's namespaces."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.e2e.process import Process, ProcessError

from .images import HOST, PAUSE
from .space import ENTER, Space

NAMESPACE = "k8s.io"
CNI_PLACES = [Path(each) for each in ("/usr/lib/cni", "/opt/cni/bin", "/usr/libexec/cni")]
LOOPBACK = '{"cniVersion": "1.0.0", "name": "lo", "plugins": [{"type": "loopback"}]}'
CONFIG = """version = 3
root = '{directory}/root'
state = '{directory}/state'

[grpc]
address = '{directory}/containerd.sock'

[ttrpc]
address = '{directory}/containerd.sock.ttrpc'

[plugins.'io.containerd.nri.v1.nri']
disable = true

[plugins.'io.containerd.grpc.v1.cri']
stream_server_address = '127.0.0.1'

[plugins.'io.containerd.cri.v1.images']
snapshotter = '{snapshotter}'

[plugins.'io.containerd.cri.v1.images'.pinned_images]
sandbox = '{pause}'

[plugins.'io.containerd.cri.v1.images'.registry]
config_path = '{directory}/hosts'

[plugins.'io.containerd.cri.v1.runtime']
restrict_oom_score_adj = true
disable_apparmor = true

[plugins.'io.containerd.cri.v1.runtime'.cni]
bin_dirs = ['{plugins}']
conf_dir = '{directory}/cni'

[plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc]
runtime_type = 'io.containerd.runc.v2'

[plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc.options]
SystemdCgroup = false
"""


class Containerd:
    """The container runtime. Its containers continue to run while it restarts."""

    def __init__(self, space: Space, binaries: Path, registry: str) -> None:
        self.directory = space.directory / "containerd"
        self.tasks = self.directory / "state" / "io.containerd.runtime.v2.task" / NAMESPACE
        """Contains a directory for each container that has a task."""
        self.socket = self.directory / "containerd.sock"
        self._space = space
        self._binaries = binaries
        self._prepare(registry)
        self._process: Process | None = None

    @property
    def snapshotter(self) -> str:
        """The snapshotter: copies if the file system is an overlay, on which overlays cannot be
        stacked.
        """
        asked = ["stat", "--file-system", "--format", "%T", str(self._space.directory)]
        found = subprocess.run(asked, text=True, capture_output=True, check=True).stdout.strip()
        return "native" if found == "overlayfs" else "overlayfs"

    def start(self) -> None:
        """Starts containerd and waits until it responds."""
        if self._process is None:
            path = f"{self._binaries}{os.pathsep}{os.environ['PATH']}"
            file = self.directory / "config.toml"
            self._process = self._space.process(
                "containerd", self._binaries / "containerd", "--config", file,
                environment=os.environ | {"PATH": path},
            )  # fmt: skip
        self._process.start()
        self._process.wait_until(self._answers, "answer")

    @property
    def alive(self) -> bool:
        """True if containerd runs."""
        return self._process is not None and self._process.alive

    def stop(self, *, kill: bool = False) -> None:
        """Stops containerd; containers continue to run."""
        if self._process is not None:
            self._process.stop(kill=kill)

    def restart(self, *, kill: bool = False) -> None:
        """Ends containerd and starts it again."""
        self.stop(kill=kill)
        self.start()

    def load(self, archive: Path) -> None:
        """Imports the images of an OCI layout."""
        self.ctr("images", "import", "--local", "--snapshotter", self.snapshotter, archive)

    def ctr(self, *arguments: str | Path) -> str:
        """Runs ctr inside the namespaces and returns its output; raises ProcessError if it
        fails.
        """
        call = [self._binaries / "ctr", "-a", self.socket, "-n", NAMESPACE, *arguments]
        enter = [sys.executable, "-I", "-S", "-c", ENTER, str(self._space.init)]
        done = subprocess.run([*enter, *call], text=True, capture_output=True, check=False)
        if done.returncode != 0:
            raise ProcessError(f"ctr {' '.join(map(str, arguments))}: {done.stderr.strip()}")
        return done.stdout

    def _answers(self) -> bool:
        try:
            self.ctr("version")
        except ProcessError:
            return False
        return True

    @staticmethod
    def cni_plugins() -> Path | None:
        """Returns the directory of the CNI plugins, or None if there is no loopback plugin."""
        return next((each for each in CNI_PLACES if (each / "loopback").exists()), None)

    def _prepare(self, registry: str) -> None:
        for name in ("root", "state", "cni", f"hosts/{HOST}"):
            (self.directory / name).mkdir(parents=True)
        values = {"directory": self.directory, "pause": PAUSE, "plugins": self.cni_plugins()}
        values["snapshotter"] = self.snapshotter
        (self.directory / "config.toml").write_text(CONFIG.format(**values))
        (self.directory / "cni" / "10-lo.conflist").write_text(LOOPBACK)
        (self.directory / "hosts" / HOST / "hosts.toml").write_text(f'server = "{registry}"\n')
