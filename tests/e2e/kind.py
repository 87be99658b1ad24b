"""Runs a kind cluster: real kubelets and images, with the service and Metacontroller as pods.

This happens only on request (`E2E_KIND=1`) and only if Docker responds. The name of a cluster
contains the process id of its run, so the next run deletes a cluster that a killed run left.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from .audit import AuditLog
from .controlplane import LocalControlPlane, apply_definitions
from .kube import Kube
from .process import ProcessError

NAME = "tapp-e2e"
HERE = Path(__file__).resolve().parent
DEFAULT_METACONTROLLER = (
    "https://github.com/metacontroller/metacontroller//manifests/production?ref=v4.17.2"
)


def call(*command: str, timeout: float = 600) -> str:
    """Runs a command and returns its output. Raises ProcessError with the output if it fails."""
    done = subprocess.run(
        command, text=True, capture_output=True, timeout=timeout, check=False,
        stdin=subprocess.DEVNULL, start_new_session=True,
    )  # fmt: skip
    if done.returncode != 0:
        output = f"{done.stdout[-2000:]}{done.stderr[-2000:]}"
        raise ProcessError(f"{' '.join(command)}: code {done.returncode}\n{output}")
    return done.stdout


def kind_answers() -> str | None:
    """Returns None if kind can be used, or a line that says why it cannot."""
    for tool in ("docker", "kind", "kubectl"):
        if shutil.which(tool) is None:
            return f"E2E_KIND=1, but {tool} is not on PATH"
    try:
        call("docker", "info", timeout=20)
    except (ProcessError, subprocess.TimeoutExpired):
        return "E2E_KIND=1, but the Docker daemon does not answer"
    return None


class Kind:
    """A kind cluster with the shipped manifests."""

    backend = "kind"
    context: str | None = None
    control_plane: LocalControlPlane | None = None
    hook_in_cluster = True

    def __init__(self, directory: Path, definitions: Sequence[Path], repository: Path) -> None:
        self.kubeconfig = directory / "kind.kubeconfig"
        self.audit: AuditLog | None = AuditLog(directory / "audit" / "audit.log")
        self._name = f"{NAME}-{os.getpid()}"
        self._directory = directory
        self._definitions = list(definitions)
        self._repository = repository

    def start(self) -> None:
        """Creates the cluster, builds and loads the image of this checkout, and installs all
        manifests.
        """
        delete_leftovers()
        audit = self._directory / "audit"
        audit.mkdir()
        shutil.copy(HERE / "audit-policy.yaml", audit / "policy.yaml")
        config = self._directory / "kind.yaml"
        text = (HERE / "kind.yaml").read_text().replace("@DIRECTORY@", str(self._directory))
        config.write_text(text)
        image = "tapp-hooks:dev"  # the name in metacontroller/overlays/kind
        call("docker", "build", "--tag", image, str(self._repository))
        call(
            "kind", "create", "cluster", "--name", self._name, "--config", str(config),
            "--kubeconfig", str(self.kubeconfig), "--wait", "180s",
        )  # fmt: skip
        call("kind", "load", "docker-image", image, "--name", self._name)
        with contextlib.closing(Kube(self.kubeconfig)) as kube:
            for file in self._definitions:
                apply_definitions(kube, file)
        metacontroller = os.environ.get("METACONTROLLER_MANIFESTS") or DEFAULT_METACONTROLLER
        self._kubectl("apply", "--server-side", "-k", metacontroller)
        overlay = self._repository / "metacontroller" / "overlays" / "kind"
        self._kubectl("apply", "--server-side", "--force-conflicts", "-k", str(overlay))
        self._kubectl(
            "wait", "--for=condition=Ready", "pods", "--all", "--all-namespaces", "--timeout=180s"
        )

    def stop(self) -> None:
        """Deletes the cluster."""
        call("kind", "delete", "cluster", "--name", self._name)

    def logs(self) -> list[Path]:
        """Exports and returns the logs of all nodes and containers."""
        target = self._directory / "kind-logs"
        try:
            call("kind", "export", "logs", str(target), "--name", self._name)
        except ProcessError as error:
            (self._directory / "kind-export.log").write_text(str(error))
        return [*target.rglob("*.log"), *self._directory.glob("*.log")]

    def _kubectl(self, *arguments: str) -> str:
        return call("kubectl", "--kubeconfig", str(self.kubeconfig), *arguments)


def delete_leftovers() -> None:
    """Deletes kind clusters of runs whose process has ended."""
    for name in call("kind", "get", "clusters").split():
        owner = re.fullmatch(rf"{NAME}-(\d+)", name)
        if owner and not Path(f"/proc/{owner.group(1)}").exists():
            call("kind", "delete", "cluster", "--name", name)
