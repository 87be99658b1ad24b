"""Runs `kubectl tapp` as a user's shell does: as a process, with or without a terminal."""

from __future__ import annotations

import os
import pty
import re
import select
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml

from .binaries import build
from .cluster import Cluster

ROOT = Path(__file__).parents[2]
_STYLE = re.compile(r"\x1b\[[0-9;?]*[a-zA-Z]")


@dataclass(frozen=True)
class Plugin:
    """The plugin in one namespace of a cluster, called as `kubectl tapp`.

    Attributes:
        directory: has `kubectl-tapp`, its completion program and a kubeconfig for the namespace.
    """

    directory: Path

    @classmethod
    def at(cls, cluster: Cluster, namespace: str, directory: Path) -> Plugin:
        """Writes the plugin's programs for the real kubectl, and a kubeconfig for the namespace."""
        config = yaml.safe_load(cluster.kubeconfig.read_text())
        current = cluster.context or config["current-context"]
        config["current-context"] = current
        for each in config["contexts"]:
            if each["name"] == current:
                each["context"]["namespace"] = namespace
        (directory / "config").write_text(yaml.safe_dump(config))
        for name, entry in (("kubectl-tapp", "main"), ("kubectl_complete-tapp", "complete")):
            program = directory / name
            code = f"from kubectl_tapp.entry import {entry}; {entry}()"
            program.write_text(f'#!/bin/sh\nexec {sys.executable} -c "{code}" "$@"\n')
            program.chmod(0o755)
        return cls(directory)

    @property
    def environment(self) -> Mapping[str, str]:
        """The environment of a shell: kubectl, helm and the plugin in PATH, the cluster in
        KUBECONFIG.
        """
        built = [str(build.bin_dir()), str(build.helm().bin_dir)]
        places = [str(self.directory), os.environ.get("KUBEBUILDER_ASSETS"), *built]
        path = os.pathsep.join([*(each for each in places if each), os.environ["PATH"]])
        mine = {"PATH": path, "KUBECONFIG": str(self.directory / "config"), "COLUMNS": "120"}
        mine |= {f"HELM_{name}_HOME": str(self.directory) for name in ("CACHE", "CONFIG", "DATA")}
        return {**os.environ, **mine, "PYTHONPATH": str(ROOT), "TERM": "xterm-256color"}

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        """Starts `kubectl tapp` without a terminal."""
        return self._started(["kubectl", "tapp", *arguments])

    def run(self, *arguments: str, code: int = 0, seconds: float = 300) -> str:
        """Runs `kubectl tapp` and returns its output. The exit code must be `code`."""
        return self._ended(self.start(*arguments), arguments, code, seconds)

    def shell(self, line: str, seconds: float = 300) -> str:
        """Runs a line in bash and returns its output. The exit code must be 0."""
        return self._ended(self._started(["bash", "-c", line]), [line], 0, seconds)

    def _started(self, command: Sequence[str]) -> subprocess.Popen[str]:
        return subprocess.Popen(
            command,
            cwd=self.directory,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )

    @staticmethod
    def _ended(
        process: subprocess.Popen[str], said: Sequence[str], code: int, seconds: float
    ) -> str:
        out, _ = process.communicate(timeout=seconds)
        assert process.returncode == code, f"{said}: exit code {process.returncode}\n{out}"
        return out


def interrupt(process: subprocess.Popen[str]) -> str:
    """Sends Ctrl-C to the process group, including kubectl, and returns the output."""
    os.killpg(process.pid, signal.SIGINT)
    out, _ = process.communicate(timeout=30)
    return out


def environment_with_kubectl() -> dict[str, str]:
    """Returns the environment with the control plane's kubectl first in PATH."""
    path = f"{build.bin_dir()}{os.pathsep}{os.environ['PATH']}"
    if shutil.which("kubectl", path=path) is None:
        pytest.skip("no kubectl")
    return {**os.environ, "PATH": path}


class Person:
    """A user at a terminal with a running `kubectl tapp` command: types keys and reads the
    output.
    """

    def __init__(self, plugin: Plugin, *arguments: str) -> None:
        """Types the command."""
        self.said = ""
        self._pid, self._terminal = pty.fork()
        if self._pid == 0:
            os.chdir(plugin.directory)
            os.execvpe("kubectl", ["kubectl", "tapp", *arguments], dict(plugin.environment))

    def reads(self, text: str, seconds: float = 60) -> Person:
        """Waits until a text is on the screen."""
        end = time.monotonic() + seconds
        while text not in self.said:
            assert time.monotonic() < end, f"no {text!r} in\n{self.said}"
            assert self._read(), f"it ended without {text!r}:\n{self.said}"
        return self

    def types(self, keys: str) -> Person:
        """Types keys."""
        os.write(self._terminal, keys.encode())
        return self

    def interrupts(self) -> str:
        """Types Ctrl-C, waits for the end of the command, and returns the whole output.

        Python ignores a Ctrl-C between the question and the wait for its answer. So the user
        repeats it if nothing happens.
        """
        self.types("\x03")
        return self.ends(130, again="\x03")

    def ends(self, code: int, seconds: float = 60, again: str = "") -> str:
        """Waits for the exit code `code` and returns the whole output.

        Types `again` every ten seconds.
        """
        end, tries = time.monotonic() + seconds, 1
        while self._read():
            left = end - time.monotonic()
            assert left > 0, f"it does not end:\n{self.said}"
            if again and left < seconds - 10 * tries:
                self.types(again)
                tries += 1
        _, status = os.waitpid(self._pid, 0)
        os.close(self._terminal)
        assert os.waitstatus_to_exitcode(status) == code, self.said
        return self.said

    def _read(self) -> bool:
        """Reads the output of the next second. Returns False at the end of the output."""
        ready, _, _ = select.select([self._terminal], [], [], 1)
        if not ready:
            return True
        try:
            data = os.read(self._terminal, 65536)
        except OSError:  # Linux reports the end of a terminal as an error
            return False
        self.said += _STYLE.sub("", data.decode(errors="replace")).replace("\r", "")
        return bool(data)
