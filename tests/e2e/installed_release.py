"""An empty cluster on which a test installs a release as users do.

The fake kubelet runs its pods. The service and Metacontroller are processes of this host. The real
Metacontroller reaches the service by its registered name, through a proxy setting. The simulator's
Metacontroller gets the address of the service.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from hooks.version import VERSION
from release.__main__ import main
from tests.contract.metacontroller_substitutes import chart_in, manifests_in

from .binaries import build
from .cluster import REPOSITORY, choose
from .controlplane import LocalControlPlane, wait_established
from .definitions import metacontroller_manifests
from .hook import HookService
from .kube import Json, Kube, KubeError
from .kubelet import FakeKubelet
from .metacontroller import API, EmulatedMetacontroller, binary_from
from .process import Process, free_ports
from .waiting import PATIENCE, until

IMAGE = f"registry.example.com/tapp-hooks:{VERSION}"
CHART = f"tapp-{VERSION}.tgz"
GROUP = "apps.tkestack.io/v1"
CONTROLLER = "tapp-controller"


def release_into(place: Path) -> Path:
    """Writes the files of `make release`, with Metacontroller's own parts if a checkout is
    available.
    """
    theirs = metacontroller_manifests(os.environ)
    with pytest.MonkeyPatch.context() as patch:
        built = (str(build.bin_dir()), str(build.helm().bin_dir), os.environ["PATH"])
        patch.setenv("PATH", os.pathsep.join(built))
        patch.setenv("METACONTROLLER_CHART", str(metacontroller_chart(place)))
        patch.setenv("METACONTROLLER_MANIFESTS", str(theirs or manifests_in(place)))
        assert main(["--version", VERSION, "--image", IMAGE, "--dist", str(place / "dist")]) == 0
    return place / "dist"


def metacontroller_chart(place: Path) -> Path:
    """Returns Metacontroller's chart from a checkout, or a stand-in written into `place`."""
    theirs = metacontroller_manifests(os.environ)
    return theirs.parents[1] / "deploy/helm/metacontroller" if theirs else chart_in(place)


def checkout_of(commit: str, place: Path) -> Path:
    """Returns the repository at a commit; skips the test if this clone does not have the commit."""
    archive, directory = place / "older.tar", place / "older"
    command = ["git", "-C", str(REPOSITORY), "archive", "-o", str(archive), commit]
    if subprocess.run(command, capture_output=True, check=False).returncode != 0:
        pytest.skip(f"this clone has no commit {commit}")
    directory.mkdir()
    subprocess.run(["tar", "-xf", archive, "-C", directory], check=True)
    return directory


@contextlib.contextmanager
def fresh_cluster(
    workspace: Path, api_flags: Sequence[str] = (), gates: str = ""
) -> Iterator[Fresh]:
    """Yields an empty cluster; skips the test if the environment cannot start one."""
    choice = choose(os.environ)
    if isinstance(choice, str) or choice.binaries is None:
        pytest.skip(choice if isinstance(choice, str) else "starts a control plane of its own")
    with Fresh(choice.binaries, Path(tempfile.mkdtemp(dir=workspace)), api_flags, gates) as made:
        yield made


class Fresh:
    """An empty cluster, with `kubectl` and `helm` for it."""

    context: str | None = None

    def __init__(
        self, binaries: Path, directory: Path, api_flags: Sequence[str] = (), gates: str = ""
    ) -> None:
        self.directory = directory
        place = directory / "cluster"
        self.plane = LocalControlPlane(binaries, place, api_flags=api_flags, gates=gates)
        self.kubeconfig = self.plane.kubeconfig
        self.hook = HookService(directory)
        self._stack = contextlib.ExitStack()
        self._real: Process | None = None
        self._emulated: EmulatedMetacontroller | None = None

    def __enter__(self) -> Fresh:
        """Starts the control plane and the nodes."""
        self._stack.callback(self.plane.stop)
        self.plane.start()
        self.kube = Kube(self.kubeconfig)
        self._stack.callback(self.kube.close)
        self.start_nodes(self._stack)
        return self

    def __exit__(self, *_: object) -> None:
        """Stops all processes."""
        self._stack.close()

    def start_nodes(self, stack: contextlib.ExitStack) -> None:
        """Starts the fake kubelet, which runs until the stack ends."""
        stack.enter_context(FakeKubelet(self.kubeconfig))

    @property
    def path(self) -> str:
        """PATH with the built kubectl and helm first."""
        built = (str(build.bin_dir()), str(build.helm().bin_dir), os.environ["PATH"])
        return os.pathsep.join(built)

    @property
    def hook_url(self) -> str:
        """The address of the service for a Metacontroller on this host."""
        return self.hook.url

    # Commands

    def run(self, *command: str | Path) -> subprocess.CompletedProcess[str]:
        """Runs kubectl or helm to its end, with any exit code."""
        homes = {f"HELM_{name}_HOME": str(self.directory) for name in ("CACHE", "CONFIG", "DATA")}
        environment = os.environ | homes
        environment |= {"KUBECONFIG": str(self.kubeconfig), "PATH": self.path}
        return subprocess.run(
            command, env=environment, text=True, capture_output=True, check=False,
            stdin=subprocess.DEVNULL,
        )  # fmt: skip

    def do(self, *command: str | Path) -> str:
        """Runs kubectl or helm, which must succeed, and returns its output."""
        done = self.run(*command)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def until_done(self, *command: str | Path) -> None:
        """Repeats a command until it succeeds: the API server serves kinds some time after their
        definition.
        """
        deadline = time.monotonic() + PATIENCE
        while (done := self.run(*command)).returncode != 0:
            assert time.monotonic() < deadline, done.stderr
            time.sleep(1)

    # The service and Metacontroller

    def serve(self, service: HookService | None = None) -> None:
        """Starts the given service, or the service of this checkout."""
        self.hook = service or self.hook
        self._stack.callback(self.hook.stop)
        self.hook.start()

    def control(self) -> None:
        """Starts Metacontroller for the registered controller; call this again after a change of
        the registration.
        """
        binary = binary_from(os.environ)
        if binary is not None:
            if self._real is None:
                self._real = self._metacontroller(binary)
                self._stack.callback(self._real.stop)
                self._real.start()
            return
        if self._emulated is not None:
            self._emulated.unregister(CONTROLLER)
        else:
            self._emulated = EmulatedMetacontroller(self.kubeconfig)
            self._stack.callback(self._emulated.stop)
        found = self.kube.find(API, "compositecontrollers", None, CONTROLLER)
        if found is not None:
            self.established()  # the real Metacontroller retries until the kind is served
            self._emulated.register(found, self.hook_url)

    def _metacontroller(self, binary: Path) -> Process:
        (port,) = free_ports(1)
        command = [
            binary,
            f"--kubeconfig={self.kubeconfig}",
            "--metrics-address=0",
            f"--health-probe-bind-address=127.0.0.1:{port}",
            "--discovery-interval=1s",
            "--client-go-qps=200",
            "--client-go-burst=400",
        ]
        log = self.directory / "metacontroller.log"
        reach = os.environ | {"HTTP_PROXY": self.hook.url, "NO_PROXY": "127.0.0.1"}
        return Process("metacontroller", command, log, environment=reach, directory=log.parent)

    # A TApp

    def tapp(self, name: str) -> Json | None:
        """Returns the TApp in `default`, or None if it does not exist."""
        try:
            return self.kube.find(GROUP, "tapps", "default", name)
        except KubeError:
            return None

    def pods(self, name: str) -> dict[str, str]:
        """Returns the uids of the TApp's pods by name."""
        found = self.kube.list_all("v1", "pods", "default")
        metadata = [each["metadata"] for each in found]
        return {m["name"]: m["uid"] for m in metadata if m["name"].startswith(f"{name}-")}

    def ready(self, name: str) -> bool:
        """Returns True if the TApp is Ready at its newest generation."""
        found = self.tapp(name) or {}
        status = found.get("status") or {}
        conditions = {each["type"]: each["status"] for each in status.get("conditions") or []}
        seen = status.get("observedGeneration") == (found.get("metadata") or {}).get("generation")
        return bool(seen and conditions.get("Ready") == "True")

    def until(self, fact: Callable[[], bool], what: str) -> None:
        """Waits until a condition holds."""
        until(fact, what, PATIENCE)

    def established(self) -> None:
        """Waits until the API server serves TApps."""
        wait_established(self.kube, "tapps.apps.tkestack.io")
