"""The namespaces that hold everything of the node, so that the kernel clears it away.

All processes of the node live in one PID namespace and all mounts in one mount namespace. When the
namespace's first process ends, orderly or because the tests were killed, the kernel kills what is
inside, and the mounts go with the last process. What remains are directories: the run's workspace
and empty cgroups, which the next run removes.

In there /run, /var/lib and /var/log are empty, and the kubelet's kernel settings are files of ours:
a node writes to all of them.
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
"""The first process: reaps what it inherits, and does nothing else."""
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
"""Enters the namespaces and becomes the parent of a program there, which gets its signals."""
ISOLATE = ("unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc")
CGROUPS = Path("/sys/fs/cgroup")
CONTROLLERS = ("cpu", "cpuset", "memory", "hugetlb", "pids", "io")
"""What a kubelet wants in its cgroup: with v2 the parent has to hand them down."""
PREFIX = "tapp-e2e-"


class Space:
    """A PID and a mount namespace, and a cgroup in every hierarchy."""

    def __init__(self, directory: Path, name: str = "node") -> None:
        self.directory = directory
        self.cgroup = f"{PREFIX}{os.getpid()}-{name}"
        """Its name tells whose it is, so that a later run knows when it is nobody's any more."""
        python = (sys.executable, "-I", "-S", "-c", INIT)
        directory.mkdir(parents=True, exist_ok=True)
        self._init = Process(
            "node-init", [*ISOLATE, *python, directory, *TUNABLES], directory / "node-init.log"
        )

    def start(self) -> None:
        """Makes namespaces and cgroups."""
        (self.directory / "up").unlink(missing_ok=True)
        self._init.start()
        self._init.wait_until((self.directory / "up").exists, "namespace")
        for hierarchy in hierarchies():
            (hierarchy / self.cgroup).mkdir(exist_ok=True)
        if unified():
            for name in CONTROLLERS:
                with contextlib.suppress(OSError):  # this kernel has none of that name
                    (CGROUPS / "cgroup.subtree_control").write_text(f"+{name}")

    def stop(self) -> None:
        """Kills all that is inside; namespaces, mounts and cgroups are gone afterwards."""
        self._init.stop(kill=True)
        remove_cgroups(self.cgroup)

    @property
    def init(self) -> int:
        """The pid, on the host, of the first process inside."""
        outer = self._init.pid
        children = Path(f"/proc/{outer}/task/{outer}/children").read_text().split()
        if not children:
            raise ProcessError("the node's namespace has ended")
        return int(children[0])

    def process(
        self, name: str, *command: str | Path, environment: dict[str, str] | None = None
    ) -> Process:
        """A program inside, not started; the space has to be up."""
        enter = [sys.executable, "-I", "-S", "-c", ENTER, str(self.init), *command]
        return Process(name, enter, self.directory / f"{name}.log", environment=environment)


def unified() -> bool:
    """True if all controllers are in one hierarchy: cgroup v2."""
    return (CGROUPS / "cgroup.procs").exists()


def hierarchies() -> list[Path]:
    """Where a cgroup has to be made: one place with cgroup v2, one for each controller with v1."""
    if unified():
        return [CGROUPS]
    found = {each.resolve() for each in CGROUPS.iterdir() if (each / "cgroup.procs").exists()}
    return sorted(found)


def inside(cgroup: Path) -> Iterator[int]:
    """The pids of a cgroup and of all below it."""
    for file in cgroup.rglob("cgroup.procs"):
        with contextlib.suppress(OSError):
            yield from map(int, file.read_text().split())


def remove_cgroups(name: str) -> None:
    """Removes a cgroup and all below it from every hierarchy, and kills what still runs in it."""
    deadline = time.monotonic() + 10
    for top in [each / name for each in hierarchies()]:
        while top.exists():
            with contextlib.suppress(FileNotFoundError):  # runc removes them as well
                for pid in inside(top):
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(pid, signal.SIGKILL)
                below = sorted((each for each in top.rglob("*") if each.is_dir()), reverse=True)
                for each in [*below, top]:
                    with contextlib.suppress(OSError):  # a process in it has not quite ended
                        each.rmdir()
            if time.monotonic() > deadline:
                raise ProcessError(f"{top} cannot be removed")
            time.sleep(0.02)


def sweep() -> None:
    """Removes the cgroups of runs that were killed; all else of them the kernel has removed."""
    for hierarchy in hierarchies():
        for top in hierarchy.glob(f"{PREFIX}*"):
            owner = top.name.removeprefix(PREFIX).partition("-")[0]
            if owner.isdigit() and not Path(f"/proc/{owner}").exists():
                remove_cgroups(top.name)
