"""Child processes that end with the tests.

Each process gets its own session. So Ctrl-C reaches only the tests, which then stop all processes
in order. The process dies with the thread that started it (`PR_SET_PDEATHSIG`), even if the tests
are killed. A small launcher sets that signal and then becomes the program, because setting it
between fork and exec is unsafe beside threads. Start processes from the main thread.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import signal
import socket
import ssl
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Sequence
from pathlib import Path
from random import SystemRandom

PORTS = range(20_000, 30_000)
LAUNCHER = """
import ctypes, os, signal, sys
ctypes.CDLL(None).prctl(1, signal.SIGKILL)
if os.getppid() != int(sys.argv[1]):
    sys.exit("the starting process is gone")
os.execvpe(sys.argv[2], sys.argv[2:], os.environ)
"""
TAIL_LINES = 25


class ProcessError(RuntimeError):
    """A process did not start, or died. The message ends with the last lines of its log."""


class Process:
    """A program that is started, watched by its process id and stopped.

    Its output goes to one log file.
    """

    running: list[Process] = []  # noqa: RUF012 - the registry of all processes, which atexit empties

    def __init__(
        self,
        name: str,
        command: Sequence[str | Path],
        log: Path,
        *,
        environment: dict[str, str] | None = None,
        directory: Path | None = None,
    ) -> None:
        self.name = name
        self.log = log
        self._command = [str(part) for part in command]
        self._environment = environment
        self._directory = directory
        self._child: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int:
        """The process id of the running program.

        Raises ProcessError if the program was not started.
        """
        if self._child is None:
            raise ProcessError(f"{self.name} is not started")
        return self._child.pid

    @property
    def alive(self) -> bool:
        """True if this object's program runs. Another program on its port does not count."""
        return self._child is not None and self._child.poll() is None

    def start(self) -> None:
        """Starts the program, whose output is appended to the log."""
        if self.alive:
            raise ProcessError(f"{self.name} already runs as pid {self.pid}")
        launch = [sys.executable, "-I", "-S", "-c", LAUNCHER, str(os.getpid()), *self._command]
        with self.log.open("ab") as output:
            self._child = subprocess.Popen(
                launch,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env=self._environment,
                cwd=self._directory,
                start_new_session=True,
            )
        Process.running.append(self)

    def stop(self, *, kill: bool = False, grace: float = 15) -> None:
        """Ends the program and waits for it.

        The program gets SIGTERM and, after `grace` seconds, SIGKILL. With `kill` it gets SIGKILL at
        once.
        """
        child, self._child = self._child, None
        if child is None:
            return
        if child.poll() is None:
            if not kill:
                child.terminate()
                with contextlib.suppress(subprocess.TimeoutExpired):
                    child.wait(grace)
            # The program leads a process group, so its own child processes end with it.
            with contextlib.suppress(ProcessLookupError):
                os.killpg(child.pid, signal.SIGKILL)
            child.wait()
        Process.running.remove(self)

    def becomes(self, program: Path) -> None:
        """Replaces the program from its next start on; the arguments stay."""
        self._command[0] = str(program)

    def signal(self, number: signal.Signals) -> None:
        """Sends a signal to the program."""
        os.kill(self.pid, number)

    def tail(self, lines: int = TAIL_LINES) -> str:
        """Returns the last lines of the log, indented for an error message."""
        if not self.log.exists():
            return ""
        text = self.log.read_text(errors="replace").splitlines()[-lines:]
        return "".join(f"\n    {line[:400]}" for line in text)

    def require_alive(self) -> None:
        """Raises ProcessError with the last lines of the log if the program has died."""
        if self._child is not None and self._child.poll() is not None:
            code = self._child.returncode
            raise ProcessError(f"{self.name} ended with code {code}:{self.tail()}")

    def wait_until(self, ready: Callable[[], bool], what: str, timeout: float = 60) -> None:
        """Waits until `ready` returns True. Raises ProcessError as soon as the program dies."""
        deadline = time.monotonic() + timeout
        while True:
            self.require_alive()
            if ready():
                self.require_alive()  # the response may be from another program on this port
                return
            if time.monotonic() > deadline:
                raise ProcessError(f"{self.name}: no {what} after {timeout:.0f} s:{self.tail()}")
            time.sleep(0.05)

    def wait_http(
        self, url: str, *, token: str | None = None, ca: Path | None = None, timeout: float = 60
    ) -> None:
        """Waits until the response of `url` is 200."""
        self.wait_until(lambda: answers_ok(url, token=token, ca=ca), f"200 from {url}", timeout)


def answers_ok(url: str, *, token: str | None = None, ca: Path | None = None) -> bool:
    """Returns True if a GET of this loopback URL gives 200, and False if the certificate cannot be
    read yet.
    """
    request = urllib.request.Request(url)
    if token:
        request.add_header("Authorization", f"Bearer {token}")
    try:
        context = None
        if url.startswith("https:"):
            # The controller manager and the scheduler create their own certificates for loopback,
            # so these are not verified.
            context = ssl.create_default_context(cafile=str(ca)) if ca else unverified()
        with urllib.request.urlopen(request, timeout=2, context=context) as answer:
            return int(answer.status) == 200
    except urllib.error.HTTPError as refused:
        refused.close()
        return False
    except OSError:
        return False


def unverified() -> ssl.SSLContext:
    """Returns a client context for self-signed loopback certificates."""
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


def free_ports(count: int) -> list[int]:
    """Returns different loopback ports on which no program listens.

    The ports are random, and below the range of outgoing connections (32768 and above). Several
    sessions choose ports at the same time, and a port is taken only when its program starts.
    """
    found: list[int] = []
    for port in SystemRandom().sample(PORTS, len(PORTS)):
        with socket.socket() as one, contextlib.suppress(OSError):
            one.bind(("127.0.0.1", port))
            found.append(port)
        if len(found) == count:
            return found
    raise ProcessError(f"there are no {count} free ports from {PORTS[0]} to {PORTS[-1]}")


def stop_leftovers() -> None:
    """Kills all processes that still run, the youngest first, at the end of the tests."""
    for process in reversed(Process.running.copy()):
        process.stop(kill=True)


atexit.register(stop_leftovers)
