"""Runs a real gunicorn for the tests on a free port of the loopback, and reads its workers and
memory.
"""

import http.client
import os
import re
import signal
import socket
import ssl
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tests.e2e.costs import held_mib

ROOT = Path(__file__).parents[2]
HOST = "127.0.0.1"
START, STOP = 240.0, 120.0
"""The maximum seconds of a start and of a graceful stop."""


class Service:
    """Runs `gunicorn hooks.app:create_app()` as shipped; a context manager that stops it at the
    end.

    Attributes:
        port: the port on which the service listens.
        process: the master process of gunicorn.
    """

    def __init__(
        self,
        workers: int = 2,
        tls: ssl.SSLContext | None = None,
        command: tuple[str, ...] = (sys.executable,),
        **env: str,
    ) -> None:
        """Starts the service with this number of workers and the environment variables `env`.

        `tls` is the TLS context of the clients of a service with TLS; None without TLS. `command`
        is the beginning of the command line, up to Python.
        """
        self.log = tempfile.TemporaryFile("ab+")  # noqa: SIM115 - closed by stop()
        self._output = ""
        self._tls = tls
        dropped = ("PROMETHEUS_MULTIPROC_DIR", "TAPP_AUTH_TOKEN_FILE")
        malloc = dict(re.findall(r"(MALLOC_\w+)=(\S+)", (ROOT / "Dockerfile").read_text()))
        with socket.socket() as door:  # handed over: nobody can take the port before gunicorn does
            door.bind((HOST, 0))
            self.port = door.getsockname()[1]
            bind = f"fd://{door.fileno()}"
            self.process = subprocess.Popen(
                [*command, "-m", "gunicorn", "--bind", bind, "hooks.app:create_app()"],
                cwd=ROOT,
                env={
                    **{key: value for key, value in os.environ.items() if key not in dropped},
                    **malloc,
                    "WEB_CONCURRENCY": str(workers),
                    "TAPP_LOG_LEVEL": "WARNING",
                    "TAPP_PACE_SECONDS": "0",  # its clients want an answer to every call
                    **env,
                },
                stdout=self.log,
                stderr=subprocess.STDOUT,
                pass_fds=[door.fileno()],
            )

    def __enter__(self) -> "Service":
        give_up = time.monotonic() + START
        while time.monotonic() < give_up and self.process.poll() is None:
            try:
                self.get("/healthz", timeout=60)
            except (OSError, http.client.HTTPException):
                time.sleep(0.1)
            else:
                return self
        output = self.output()
        self.stop()
        raise AssertionError(f"gunicorn does not answer:\n{output}")

    def __exit__(self, *_: object) -> None:
        self.stop()

    def connect(self, timeout: float = 60) -> http.client.HTTPConnection:
        """Returns a new connection to the service."""
        if self._tls is not None:
            return http.client.HTTPSConnection(HOST, self.port, timeout=timeout, context=self._tls)
        return http.client.HTTPConnection(HOST, self.port, timeout=timeout)

    def get(self, path: str, timeout: float = 60) -> tuple[int, bytes]:
        """Sends a GET request on a new connection; returns the status code and the body."""
        return self.call("GET", path, timeout=timeout)

    def call(
        self, method: str, path: str, body: bytes | None = None, timeout: float = 60, **more: str
    ) -> tuple[int, bytes]:
        """Sends a request on a new connection; returns the status code and the body.

        `body` is the body of the request; None for no body. `timeout` is in seconds, and `more` are
        headers.
        """
        connection = self.connect(timeout)
        try:
            headers = {"Content-Type": "application/json", **more}
            connection.request(method, path, body, headers)
            answer = connection.getresponse()
            return answer.status, answer.read()
        except ConnectionRefusedError:
            if (code := self.process.poll()) is not None:
                raise AssertionError(f"gunicorn ended with {code}:\n{self.output()}") from None
            raise
        finally:
            connection.close()

    @property
    def workers(self) -> list[int]:
        """The process IDs of the workers; empty after the master has ended."""
        pid = self.process.pid
        try:
            children = Path(f"/proc/{pid}/task/{pid}/children").read_text()
        except OSError:
            return []
        return [int(child) for child in children.split()]

    def megabytes(self) -> float:
        """Returns the memory of all workers in MiB (Pss: shared pages count once)."""
        return held_mib(self.workers)

    def kill(self, pid: int, number: signal.Signals) -> None:
        """Sends the signal `number` to a worker or to the master; does nothing for any other
        process ID.
        """
        if pid in (self.process.pid, *self.workers):
            os.kill(pid, number)

    def output(self) -> str:
        """Returns the output of the service so far."""
        if not self.log.closed:
            self.log.seek(0)
            self._output = self.log.read().decode("utf-8", "replace")
            self.log.seek(0, os.SEEK_END)
        return self._output

    def stop(self) -> int:
        """Stops the service gracefully, and returns its exit code."""
        if self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(STOP)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        self.output()
        self.log.close()
        return self.process.returncode


def percentile(values: list[float], share: float) -> float:
    """Returns the smallest value that is at least as large as `share` of all values; 0 without
    values.
    """
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))] if ordered else 0.0
