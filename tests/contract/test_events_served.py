"""Events of the service as it is shipped: gunicorn, two workers, its end."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from hooks.service.settings import Settings
from tests.api_server import ApiServer, api_server
from tests.builders import as_sent, request, tapp

ROOT = Path(__file__).parents[2]


@pytest.fixture
def api(tmp_path: Path) -> Iterator[ApiServer]:
    with api_server(tmp_path / "account") as running:
        yield running


@pytest.fixture
def served(api: ApiServer, tmp_path: Path) -> Iterator["tuple[subprocess.Popen[bytes], str]"]:
    """Gunicorn with two workers and events on, and its URL."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    environment = {key: value for key, value in os.environ.items() if not key.startswith("TAPP_")}
    environment.pop("PROMETHEUS_MULTIPROC_DIR", None)
    environment |= api.environ | {
        "HOST": "127.0.0.1",
        "PORT": str(port),
        "WEB_CONCURRENCY": "2",
        "TAPP_EVENTS": "true",
        "TAPP_EVENTS_ACCOUNT": str(tmp_path / "account"),
    }
    command = [sys.executable, "-m", "gunicorn", "hooks.app:create_app()"]
    with (tmp_path / "log").open("wb") as log:
        process = subprocess.Popen(command, cwd=ROOT, env=environment, stdout=log, stderr=log)
    url = f"http://127.0.0.1:{port}"
    try:
        for _ in range(200):
            try:
                fetch(f"{url}/healthz")
                break
            except OSError:
                time.sleep(0.1)
        yield process, url
    finally:
        if process.poll() is None:
            process.kill()
        process.wait(10)


def fetch(url: str, body: bytes | None = None) -> str:
    asked = urllib.request.Request(url, body, {"Content-Type": "application/json"})
    with urllib.request.urlopen(asked, timeout=10) as answer:
        text: str = answer.read().decode()
    return text


def sync(url: str, generation: int) -> None:
    answer = fetch(f"{url}/sync", as_sent(request(tapp(generation=generation, replicas=2), [])))
    assert len(json.loads(answer)["children"]) == 2


def test_workers_tell_one_and_count_it(
    api: ApiServer, served: "tuple[subprocess.Popen[bytes], str]"
) -> None:
    _, url = served
    for _ in range(20):
        sync(url, 1)
    api.until(1)
    time.sleep(0.3)
    assert len(api.events) == 1
    assert len(api.posts) <= 2  # one of each worker
    assert 'tapp_hook_events_total{outcome="created"} 1.0' in fetch(f"{url}/metrics")


def test_what_waits_at_the_end_is_written_if_that_takes_no_time(
    api: ApiServer, served: "tuple[subprocess.Popen[bytes], str]"
) -> None:
    process, url = served
    api.hang = 0.2
    for generation in range(1, 6):
        sync(url, generation)
    process.send_signal(signal.SIGTERM)
    process.wait(20)
    assert len(api.events) == 5


def test_an_api_server_that_hangs_holds_up_no_end(
    api: ApiServer, served: "tuple[subprocess.Popen[bytes], str]"
) -> None:
    process, url = served
    api.hang = 60
    for generation in range(1, 6):
        sync(url, generation)
    begun = time.monotonic()
    process.send_signal(signal.SIGTERM)
    process.wait(20)
    assert time.monotonic() - begun < 8


def test_without_events_no_client_is_imported() -> None:
    code = (
        "import sys; from hooks.app import create_app; create_app(); "
        "print([name for name in sys.modules if name.split('.')[0] in ('kubernetes', 'urllib3')])"
    )
    environ = {key: value for key, value in os.environ.items() if not key.startswith("TAPP_")}
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, env=environ, capture_output=True, check=True
    )
    assert done.stdout.strip() == b"[]"
    assert Settings().events is False
