"""Child processes that never outlive the tests.

Each process gets its own session (so Ctrl-C reaches only the tests, which then stop everything in
order) and dies with the thread that started it (`PR_SET_PDEATHSIG`), also when the tests are
killed. The wish is set by a tiny launcher that then becomes the program: setting it between fork
and exec in this process would not be safe beside threads. Start processes from the main thread.
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
    """A process that did not start, or died; the message ends with its log's tail."""


class Process:
    """One program: started, watched by pid, stopped; its output in one log file."""

    running: list[Process] = []  # noqa: RUF012 - the one registry that atexit empties

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
        """The pid of the running program."""
        if self._child is None:
            raise ProcessError(f"{self.name} is not started")
        return self._child.pid

    @property
    def alive(self) -> bool:
        """True if the program that *we* started runs (another one on its port does not count)."""
        return self._child is not None and self._child.poll() is None

    def start(self) -> None:
        """Starts the program; its output is appended to the log."""
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
        """Ends the program (SIGTERM, after `grace` SIGKILL; at once with `kill`) and reaps it."""
        child, self._child = self._child, None
        if child is None:
            return
        if child.poll() is None:
            if not kill:
                child.terminate()
                with contextlib.suppress(subprocess.TimeoutExpired):
                    child.wait(grace)
            # The program leads a process group of its own: what it forked goes with it.
            with contextlib.suppress(ProcessLookupError):
                os.killpg(child.pid, signal.SIGKILL)
            child.wait()
        Process.running.remove(self)

    def becomes(self, program: Path) -> None:
        """From its next start on it is another program, with the same arguments."""
        self._command[0] = str(program)

    def signal(self, number: signal.Signals) -> None:
        """Sends a signal to the program."""
        os.kill(self.pid, number)

    def tail(self, lines: int = TAIL_LINES) -> str:
        """The end of the log, indented for an error message."""
        if not self.log.exists():
            return ""
        text = self.log.read_text(errors="replace").splitlines()[-lines:]
        return "".join(f"\n    {line[:400]}" for line in text)

    def require_alive(self) -> None:
        """Raises with the log's tail when the program has died."""
        if self._child is not None and self._child.poll() is not None:
            code = self._child.returncode
            raise ProcessError(f"{self.name} ended with code {code}:{self.tail()}")

    def wait_until(self, ready: Callable[[], bool], what: str, timeout: float = 60) -> None:
        """Waits for `ready`, and raises at once when the program dies meanwhile."""
        deadline = time.monotonic() + timeout
        while True:
            self.require_alive()
            if ready():
                self.require_alive()  # the answer may have come from a stranger on our port
                return
            if time.monotonic() > deadline:
                raise ProcessError(f"{self.name}: no {what} after {timeout:.0f} s:{self.tail()}")
            time.sleep(0.05)

    def wait_http(
        self, url: str, *, token: str | None = None, ca: Path | None = None, timeout: float = 60
    ) -> None:
        """Waits until `url` answers 200."""
        self.wait_until(lambda: answers_ok(url, token=token, ca=ca), f"200 from {url}", timeout)


def answers_ok(url: str, *, token: str | None = None, ca: Path | None = None) -> bool:
    """True if a GET of this loopback URL gives 200; an unreadable certificate counts as not yet."""
    request = urllib.request.Request(url)
    if token:
        request.add_header("Authorization", f"Bearer {token}")
    try:
        context = None
        if url.startswith("https:"):
            # kcm and the scheduler make certificates of their own: loopback, not verified.
            context = ssl.create_default_context(cafile=str(ca)) if ca else unverified()
        with urllib.request.urlopen(request, timeout=2, context=context) as answer:
            return int(answer.status) == 200
    except urllib.error.HTTPError as refused:
        refused.close()
        return False
    except OSError:
        return False


def unverified() -> ssl.SSLContext:
    """A client context for self-made loopback certificates."""
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


def free_ports(count: int) -> list[int]:
    """Loopback ports that nothing listens on, all different.

    At random, and none of those that connections are given (32768 and above): several sessions
    choose at the same time, and a port is taken only when its program starts.
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
    """Stops whatever is still running, youngest first: the net below every orderly stop."""
    for process in reversed(Process.running.copy()):
        process.stop(kill=True)


atexit.register(stop_leftovers)
