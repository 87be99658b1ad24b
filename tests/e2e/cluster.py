"""Chooses the cluster for the tests, and starts and stops it.

The order is: an existing cluster (`E2E_KUBECONFIG`), local binaries (`KUBEBUILDER_ASSETS`, or the
output of `make e2e-binaries`), kind (`E2E_KIND=1`). The default kubeconfig is never used.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Protocol

from .audit import AuditLog
from .binaries import build
from .controlplane import NEEDED, LocalControlPlane, apply_definitions
from .kind import Kind, kind_answers
from .kube import Kube, documents
from .process import Process, ProcessError
from .waiting import PATIENCE, until

REPOSITORY = Path(__file__).resolve().parents[2]
PREFIX = "tapp-e2e-"


class Cluster(Protocol):
    """The interface of all clusters that tests may use."""

    backend: str
    """`local`, `existing` or `kind`."""
    kubeconfig: Path
    context: str | None
    hook_in_cluster: bool
    """True if the service and Metacontroller run in the cluster, from the shipped manifests."""

    @property
    def audit(self) -> AuditLog | None:
        """The API server's audit log, or None if the tests cannot read it."""

    @property
    def control_plane(self) -> LocalControlPlane | None:
        """The processes of the control plane, or None if the tests may not restart them."""

    def start(self) -> None: ...
    def stop(self) -> None: ...
    def logs(self) -> list[Path]: ...


class ExistingCluster:
    """A cluster of the user. The tests create namespaces and missing CustomResourceDefinitions.

    `stop` deletes only the definitions that `start` created. Only these tests can have created
    objects of these kinds.
    """

    backend = "existing"
    control_plane: LocalControlPlane | None = None
    audit: AuditLog | None = None
    hook_in_cluster = False

    def __init__(self, kubeconfig: Path, context: str | None, definitions: Sequence[Path]) -> None:
        self.kubeconfig = kubeconfig
        self.context = context
        self._definitions = list(definitions)
        self._made: list[str] = []

    def start(self) -> None:
        """Checks that the cluster responds, and creates the missing definitions."""
        with contextlib.closing(Kube(self.kubeconfig, context=self.context)) as kube:
            kube.request("GET", "/version")
            group = "apiextensions.k8s.io/v1"
            for file in self._definitions:
                names = [each["metadata"]["name"] for each in documents(file)]
                here = [kube.find(group, "customresourcedefinitions", None, n) for n in names]
                if any(here) and "compositecontrollers.metacontroller.k8s.io" in names:
                    raise ProcessError("this cluster has a Metacontroller, which would interfere")
                if not any(here):
                    apply_definitions(kube, file)
                    self._made += names

    def stop(self) -> None:
        """Deletes the definitions that `start` created."""
        with contextlib.closing(Kube(self.kubeconfig, context=self.context)) as kube:
            for name in self._made:
                kube.delete("apiextensions.k8s.io/v1", "customresourcedefinitions", None, name)

    def logs(self) -> list[Path]:
        """Returns an empty list: the cluster's logs belong to the user."""
        return []


@dataclass(frozen=True)
class Choice:
    """The cluster that the environment variables choose."""

    backend: str
    kubeconfig: Path | None = None
    context: str | None = None
    binaries: Path | None = None

    def make(self, directory: Path, definitions: Sequence[Path]) -> Cluster:
        """Returns the cluster, which is not started yet."""
        if self.kubeconfig is not None:
            return ExistingCluster(self.kubeconfig, self.context, definitions)
        if self.binaries is not None:
            return LocalControlPlane(self.binaries, directory / "cluster", definitions)
        return Kind(directory, definitions, REPOSITORY)


def choose(environment: Mapping[str, str]) -> Choice | str:
    """Returns the chosen cluster, or a line that says why no cluster can be used and how to get
    one.
    """
    if given := environment.get("E2E_KUBECONFIG"):
        file = Path(given)
        if not file.is_file():
            return f"E2E_KUBECONFIG={given} is not a file"
        return Choice("existing", kubeconfig=file, context=environment.get("E2E_CONTEXT"))
    if assets := environment.get("KUBEBUILDER_ASSETS"):
        missing = [name for name in NEEDED if not (Path(assets) / name).exists()]
        if missing:
            return f"KUBEBUILDER_ASSETS={assets} lacks {', '.join(missing)}"
        return Choice("local", binaries=Path(assets))
    built = build.bin_dir()
    if all((built / name).exists() for name in NEEDED):
        return Choice("local", binaries=built)
    if environment.get("E2E_KIND") == "1":
        problem = kind_answers()
        return problem or Choice("kind")
    return (
        "no cluster: run `make e2e-binaries` (needs Go), or set KUBEBUILDER_ASSETS, "
        "E2E_KUBECONFIG, or E2E_KIND=1 (needs Docker and kind)"
    )


class Workspace:
    """A temporary directory of a run, whose logs are kept if the run fails.

    Each run deletes the directories of earlier runs that were killed.
    """

    def __init__(self) -> None:
        self._sweep()
        self.directory = Path(tempfile.mkdtemp(prefix=PREFIX))
        (self.directory / "owner").write_text(str(os.getpid()))

    @staticmethod
    def keep(logs: Sequence[Path], environment: Mapping[str, str]) -> Path:
        """Copies logs to `E2E_LOGS` (default: build/e2e-logs) and returns the directory."""
        root = Path(environment.get("E2E_LOGS") or REPOSITORY / "build" / "e2e-logs")
        target = root / f"{time.strftime('%Y%m%d-%H%M%S')}-{os.getpid()}"
        target.mkdir(parents=True, exist_ok=True)
        for log in logs:
            if log.exists():
                shutil.copy(log, target / log.name)
        return target

    def remove(self) -> None:
        """Deletes the directory."""
        shutil.rmtree(self.directory, ignore_errors=True)

    @staticmethod
    def _sweep() -> None:
        for left in Path(tempfile.gettempdir()).glob(f"{PREFIX}*/owner"):
            try:
                owner = int(left.read_text())
            except (OSError, ValueError):
                continue
            if not Path(f"/proc/{owner}").exists():
                shutil.rmtree(left.parent, ignore_errors=True)


def wait_namespace_ready(kube: Kube, namespace: str) -> None:
    """Waits for the `default` service account, without which a namespace admits no pod."""
    account = partial(kube.find, "v1", "serviceaccounts", namespace, "default")
    until(account, f"a default service account in {namespace}", 60)


def wait_namespace_gone(kube: Kube, namespace: str) -> None:
    """Waits until a namespace that is being deleted no longer exists."""
    find = partial(kube.find, "v1", "namespaces", None, namespace)
    until(lambda: find() is None, f"the namespace {namespace} is gone", PATIENCE)


def all_logs(cluster: Cluster, directory: Path) -> list[Path]:
    """Returns the logs of the cluster and of all other processes of the run."""
    return sorted({*cluster.logs(), *directory.rglob("*.log"), *(p.log for p in Process.running)})
