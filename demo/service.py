"""Runs the real service: gunicorn on a free port of 127.0.0.1, which is stopped at the end."""

import contextlib
import http.client
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
START_SECONDS = 120.0  # Most seconds until the service is ready; a busy machine imports slowly
STOP_SECONDS = 10.0
OK = 200
APPLICATION = "demo.clock:application()"  # Uses the time in the header `TIME_HEADER`
TIME_HEADER = "X-Seconds-Since-The-Epoch"


class ServiceError(Exception):
    """The service did not start; the message includes the last lines of its log."""


@contextlib.contextmanager
def serve() -> Iterator[str]:
    """Runs the service while the `with` block runs, and yields its URL.

    Raises ServiceError if the service does not start.
    """
    with tempfile.TemporaryFile() as log:
        process, port = _start(log.fileno())
        try:
            if not _becomes_ready(process, port):
                log.seek(0)
                text = log.read().decode(errors="replace")[-2000:]
                raise ServiceError(f"the service did not start:\n{text}")
            yield f"http://127.0.0.1:{port}"
        finally:
            _stop(process)


def _start(log: int) -> "tuple[subprocess.Popen[bytes], int]":
    """Starts gunicorn on a free port, and returns the process and the port.

    Environment variables TAPP_... are removed, so that the service has its default options. `log`
    is the file descriptor for the service's output.
    """
    environment = {key: value for key, value in os.environ.items() if not key.startswith("TAPP_")}
    environment.pop("PROMETHEUS_MULTIPROC_DIR", None)
    # Gunicorn inherits the open socket, so no other process can take the port in between.
    with socket.socket() as door:
        door.bind(("127.0.0.1", 0))
        process = subprocess.Popen(  # noqa: S603 - our own service
            [sys.executable, "-m", "gunicorn", "--bind", f"fd://{door.fileno()}", APPLICATION],
            cwd=ROOT,
            env={**environment, "WEB_CONCURRENCY": "1"},
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            pass_fds=[door.fileno()],
            start_new_session=True,  # Ctrl-C in the terminal must not reach gunicorn.
        )
        return process, door.getsockname()[1]


def _becomes_ready(process: "subprocess.Popen[bytes]", port: int) -> bool:
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline and process.poll() is None:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=1)
        try:
            connection.request("GET", "/readyz")
            if connection.getresponse().status == OK:
                return True
        except OSError:
            time.sleep(0.05)
        finally:
            connection.close()
    return False


def _stop(process: "subprocess.Popen[bytes]") -> None:
    if process.poll() is None:
        process.terminate()
        try:
            process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
