"""Nothing of the real node is left behind, however the tests end."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from .cluster import REPOSITORY, Cluster, Workspace
from .kube import Kube
from .patience import until
from .pods import Pods, is_ready
from .realnode.node import RealNode
from .realnode.space import PREFIX, hierarchies, sweep
from .realnode.workloads import real_spec

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(180)]


def processes(directory: Path) -> list[str]:
    """The processes that have anything to do with a run's directory."""
    found = []
    for each in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            line = each.read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue
        if str(directory) in line:
            found.append(line)
    return found


def cgroups(pid: int) -> list[Path]:
    """The cgroups of a run."""
    return [found for each in hierarchies() for found in each.glob(f"{PREFIX}{pid}-*")]


def mounts(directory: Path) -> list[str]:
    """What is mounted below a run's directory, as this process sees it."""
    lines = Path("/proc/self/mountinfo").read_text().splitlines()
    return [line for line in lines if str(directory) in line]


@pytest.fixture
def held(running_node: RealNode) -> Iterator[subprocess.Popen[str]]:  # noqa: ARG001 - it can run
    """Another cluster with a real node, of a process of its own."""
    command = [sys.executable, "-m", "tests.e2e.hold", "--nodes", "0", "--real"]
    with subprocess.Popen(
        command, cwd=REPOSITORY, stdout=subprocess.PIPE, text=True, start_new_session=True
    ) as process:
        yield process
        if process.poll() is None:
            process.kill()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_nothing_is_left(held: subprocess.Popen[str], number: signal.Signals) -> None:
    """Neither process, mount nor cgroup; only of a killed run the next one clears directories."""
    assert held.stdout is not None
    kubeconfig = Path(held.stdout.readline().strip().removeprefix("export KUBECONFIG="))
    held.stdout.readline()
    directory = kubeconfig.parent.parent
    kube = Kube(kubeconfig)
    try:
        pods = Pods(kube, "default")
        until(lambda: kube.find("v1", "serviceaccounts", "default", "default"), "an account")
        pods.create("a", **real_spec())
        pods.wait("a", is_ready)
    finally:
        kube.close()
    assert processes(directory) != []
    assert cgroups(held.pid) != []
    assert mounts(directory) == []
    shims = [line for line in processes(directory) if "containerd-shim" in line]
    assert len(shims) == 1
    os.kill(held.pid, number)
    held.wait(60)
    until(lambda: processes(directory) == [], "no process is left", 15)
    assert mounts(directory) == []
    if number == signal.SIGKILL:
        sweep()
        Workspace().remove()
    assert cgroups(held.pid) == []
    assert not directory.exists()


def test_a_node_that_cannot_start_is_stopped_again(
    cluster: Cluster,
    running_node: RealNode,  # noqa: ARG001 - it can run
    workspace: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """An error on the way up leaves nothing running, and says what the program said."""
    monkeypatch.setattr(f"{RealNode.__module__}.kubelet_binary", lambda: Path("/bin/false"))
    place = workspace / "second"  # a socket's path has an end
    node = RealNode(cluster.kubeconfig, place)
    with pytest.raises(Exception, match="kubelet ended with code 1"):
        node.start()
    until(lambda: processes(place) == [], "no process is left", 15)
