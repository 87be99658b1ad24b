"""Tests the Events of the shipped service: gunicorn with two workers, and its end."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from hooks.service.settings import Settings
from tests.api_server import ApiServer, api_server
from tests.builders import as_sent, request, tapp
from tests.load.service import ROOT, Service


@pytest.fixture
def api(tmp_path: Path) -> Iterator[ApiServer]:
    with api_server(tmp_path / "account") as running:
        yield running


@pytest.fixture
def served(api: ApiServer, tmp_path: Path) -> Iterator[Service]:
    """Yields the service with two workers, which writes Events to the fake API server."""
    account = str(tmp_path / "account")
    with Service(TAPP_EVENTS="true", TAPP_EVENTS_ACCOUNT=account, **api.environ) as service:
        yield service


def sync(service: Service, generation: int) -> None:
    body = as_sent(request(tapp(generation=generation, replicas=2), []))
    code, answer = service.call("POST", "/sync", body)
    assert code == 200
    assert len(json.loads(answer)["children"]) == 2


def test_two_workers_write_one_event_and_count_it(api: ApiServer, served: Service) -> None:
    for _ in range(20):
        sync(served, 1)
    counted = b'tapp_hook_events_total{outcome="created"} 1.0'
    end = time.monotonic() + 60
    while counted not in served.get("/metrics")[1]:
        assert time.monotonic() < end, api.posts
        time.sleep(0.01)
    served.stop()  # The workers write the Events that wait before they end.
    assert len(api.events) == 1
    assert len(api.posts) <= 2  # one by each worker.


def test_queued_events_are_written_when_the_service_stops(api: ApiServer, served: Service) -> None:
    for generation in range(1, 6):
        sync(served, generation)
    served.stop()
    assert len(api.events) == 5


def test_service_stops_although_the_api_server_hangs(api: ApiServer, served: Service) -> None:
    api.hang = 3600
    for generation in range(1, 6):
        sync(served, generation)
    assert served.stop() == 0  # `stop` kills workers that do not end


def test_no_api_client_is_imported_without_events() -> None:
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
