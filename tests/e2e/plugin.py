"""Calls of `kubectl tapp` as a shell makes them: a process of its own, the real kubectl."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from .binaries import build
from .cluster import Cluster

ROOT = Path(__file__).parents[2]


@dataclass(frozen=True)
class Plugin:
    """The plugin, in one namespace of a cluster."""

    cluster: Cluster
    namespace: str

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        """Starts one call; its standard error goes with its output."""
        context = ["--context", self.cluster.context] if self.cluster.context else []
        places = [os.environ.get("KUBEBUILDER_ASSETS"), str(build.bin_dir()), os.environ["PATH"]]
        path = os.pathsep.join(each for each in places if each)
        return subprocess.Popen(
            [
                *(sys.executable, "-m", "kubectl_tapp.main", *arguments),
                *("--namespace", self.namespace, "--kubeconfig", str(self.cluster.kubeconfig)),
                *context,
            ],
            cwd=ROOT,
            env={**os.environ, "PATH": path, "COLUMNS": "120"},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )

    def run(self, *arguments: str, code: int = 0, seconds: float = 120) -> str:
        """One call; what it said. Its exit code must be this one."""
        process = self.start(*arguments)
        out, _ = process.communicate(timeout=seconds)
        assert process.returncode == code, f"{arguments}: exit code {process.returncode}\n{out}"
        return out


def interrupt(process: subprocess.Popen[str]) -> str:
    """Ctrl-C: the whole group gets it, kubectl, too; what was said."""
    os.killpg(process.pid, signal.SIGINT)
    out, _ = process.communicate(timeout=30)
    return out
