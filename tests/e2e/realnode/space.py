"""The namespaces of the node, with which the kernel removes all its processes and mounts.

All processes of the node are in one PID namespace and all mounts in one mount namespace. When the
first process of the namespace ends, the kernel kills the other processes, and the mounts go with
the last of them. This works even if the tests are killed. The run's directory and empty cgroups
remain, and the next run deletes them.

In the namespace, /run, /var/lib and /var/log are empty and the kubelet's kernel settings are
ordinary files, because a node writes to all of them.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from tests.e2e.process import Process, ProcessError

INIT = """
import pathlib, signal, subprocess, sys
directory, tunables = pathlib.Path(sys.argv[1]), sys.argv[2:]
for place in ("/run", "/var/lib", "/var/log"):
    subprocess.run(["mount", "-t", "tmpfs", "-o", "mode=755", "tmpfs", place], check=True)
for name in tunables:
    real, ours = pathlib.Path("/proc/sys", name), directory / name.replace("/", "-")
    if real.exists():
        ours.write_text(real.read_text())
        subprocess.run(["mount", "--bind", ours, real], check=True)
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
(directory / "up").touch()
while True:
    signal.pause()
"""
"""The first process of the namespace. It reaps orphaned processes."""
TUNABLES = (
    "vm/overcommit_memory",
    "vm/panic_on_oom",
    "kernel/panic",
    "kernel/panic_on_oops",
    "kernel/keys/root_maxkeys",
    "kernel/keys/root_maxbytes",
)
ENTER = """
import ctypes, os, signal, sys
libc = ctypes.CDLL(None, use_errno=True)
spaces = [os.open(f"/proc/{sys.argv[1]}/ns/{kind}", os.O_RDONLY) for kind in ("pid", "mnt")]
for space in spaces:
    if libc.setns(space, 0) != 0:
        sys.exit(f"setns: {os.strerror(ctypes.get_errno())}")
    os.close(space)
child = os.fork()
if child == 0:
    libc.prctl(1, signal.SIGKILL)
    os.execvpe(sys.argv[2], sys.argv[2:], os.environ)
for number in (signal.SIGTERM, signal.SIGINT):
    signal.signal(number, lambda number, frame: os.kill(child, number))
code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
sys.exit(code if code >= 0 else 128 - code)
"""
"""Enters the namespaces, starts a program there, and forwards signals to it."""
ISOLATE = ("unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc")
CGROUPS = Path("/sys/fs/cgroup")
CONTROLLERS = ("cpu", "cpuset", "memory", "hugetlb", "pids", "io")
"""The controllers that a kubelet needs in its cgroup.

With cgroup v2, the parent has to delegate them.
"""
PREFIX = "tapp-e2e-"


class Space:
    """A PID namespace, a mount namespace, and a cgroup in each hierarchy."""

    def __init__(self, directory: Path, name: str = "node") -> None:
        self.directory = directory
        self.cgroup = f"{PREFIX}{os.getpid()}-{name}"
        """The name contains the process id of the run, so that a later run knows whether the run
        has ended.
        """
        python = (sys.executable, "-I", "-S", "-c", INIT)
        directory.mkdir(parents=True, exist_ok=True)
        self._init = Process(
            "node-init", [*ISOLATE, *python, directory, *TUNABLES], directory / "node-init.log"
        )

    def start(self) -> None:
        """Creates namespaces and cgroups."""
        (self.directory / "up").unlink(missing_ok=True)
        self._init.start()
        self._init.wait_until((self.directory / "up").exists, "namespace")
        for hierarchy in hierarchies():
            (hierarchy / self.cgroup).mkdir(exist_ok=True)
        if unified():
            for name in CONTROLLERS:
                with contextlib.suppress(OSError):  # this kernel does not have the controller
                    (CGROUPS / "cgroup.subtree_control").write_text(f"+{name}")

    def stop(self) -> None:
        """Kills all processes inside; namespaces, mounts and cgroups end with them."""
        self._init.stop(kill=True)
        remove_cgroups(self.cgroup)

    @property
    def init(self) -> int:
        """The process id, on the host, of the first process inside."""
        outer = self._init.pid
        children = Path(f"/proc/{outer}/task/{outer}/children").read_text().split()
        if not children:
            raise ProcessError("the node's namespace has ended")
        return int(children[0])

    def process(
        self, name: str, *command: str | Path, environment: dict[str, str] | None = None
    ) -> Process:
        """Returns a program that will run inside, not started. The namespaces must exist."""
        enter = [sys.executable, "-I", "-S", "-c", ENTER, str(self.init), *command]
        return Process(name, enter, self.directory / f"{name}.log", environment=environment)


def unified() -> bool:
    """Returns True if all controllers are in one hierarchy (cgroup v2)."""
    return (CGROUPS / "cgroup.procs").exists()


def hierarchies() -> list[Path]:
    """Returns the directories that need a cgroup: one with cgroup v2, one for each controller with
    v1.
    """
    if unified():
        return [CGROUPS]
    found = {each.resolve() for each in CGROUPS.iterdir() if (each / "cgroup.procs").exists()}
    return sorted(found)


def inside(cgroup: Path) -> Iterator[int]:
    """Yields the process ids in a cgroup and in all cgroups below it."""
    for file in cgroup.rglob("cgroup.procs"):
        with contextlib.suppress(OSError):
            yield from map(int, file.read_text().split())


def remove_cgroups(name: str) -> None:
    """Deletes a cgroup and all cgroups below it from each hierarchy, and kills their processes."""
    deadline = time.monotonic() + 10
    for top in [each / name for each in hierarchies()]:
        while top.exists():
            with contextlib.suppress(FileNotFoundError):  # runc deletes cgroups as well
                for pid in inside(top):
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(pid, signal.SIGKILL)
                below = sorted((each for each in top.rglob("*") if each.is_dir()), reverse=True)
                for each in [*below, top]:
                    with contextlib.suppress(OSError):  # a process in the cgroup has not ended yet
                        each.rmdir()
            if time.monotonic() > deadline:
                raise ProcessError(f"{top} cannot be removed")
            time.sleep(0.02)


def sweep() -> None:
    """Deletes the cgroups of runs that were killed.

    The kernel has removed the rest of these runs.
    """
    for hierarchy in hierarchies():
        for top in hierarchy.glob(f"{PREFIX}*"):
            owner = top.name.removeprefix(PREFIX).partition("-")[0]
            if owner.isdigit() and not Path(f"/proc/{owner}").exists():
                remove_cgroups(top.name)
