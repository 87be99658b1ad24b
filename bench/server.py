"""The service as it is shipped: gunicorn.conf.py, and the image's environment, on loopback."""

import os
import re
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.client import HTTPConnection
from pathlib import Path

ROOT = Path(__file__).parents[1]
HOST = "127.0.0.1"
_READY = 30.0
"""Seconds that a start may take."""


@dataclass(frozen=True)
class Server:
    """A running gunicorn: its port and its workers' process ids."""

    port: int
    workers: list[int]


@contextmanager
def serving(workers: int, application: str = "hooks.app:create_app()") -> Iterator[Server]:
    """Starts gunicorn with that many workers, and stops it in the end."""
    with socket.socket() as free:
        free.bind((HOST, 0))
        port = free.getsockname()[1]
    environment = {
        **{key: value for key, value in os.environ.items() if key != "PROMETHEUS_MULTIPROC_DIR"},
        **image_environment(),
        "HOST": HOST,
        "PORT": str(port),
        "WEB_CONCURRENCY": str(workers),
        "TAPP_PACE_SECONDS": "0",  # what an answer costs is measured, one after the other
    }
    command = [sys.executable, "-m", "gunicorn", application, "--log-level", "error"]
    process = subprocess.Popen(  # noqa: S603 - our own service
        command, cwd=ROOT, env=environment, stdout=subprocess.DEVNULL
    )
    try:
        _wait(process, port)
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text()
        yield Server(port, [int(pid) for pid in children.split()])
    finally:
        process.terminate()
        try:
            process.wait(40)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def image_environment() -> dict[str, str]:
    """What the Dockerfile sets for the allocator."""
    return dict(re.findall(r"(MALLOC_\w+)=(\S+)", (ROOT / "Dockerfile").read_text()))


def _wait(process: subprocess.Popen[bytes], port: int) -> None:
    """Until the service answers."""
    give_up = time.monotonic() + _READY
    while time.monotonic() < give_up and process.poll() is None:
        connection = HTTPConnection(HOST, port, timeout=1)
        try:
            connection.request("GET", "/healthz")
            connection.getresponse().read()
            time.sleep(0.5)  # the other workers
        except OSError:
            time.sleep(0.05)
        else:
            return
        finally:
            connection.close()
    raise SystemExit(f"gunicorn does not answer on port {port}")
