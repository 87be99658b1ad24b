"""Tests the shipped service: gunicorn, its configuration, its workers."""

import json
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.contract.client import REQUEST, fetch
from tests.load.service import HOST, ROOT, Service
from tests.typical_requests import NOTHING, request_in

LONG = 120.0


PODS = {
    f"shop/other-{number}": {"metadata": {"name": f"other-{number}", "namespace": "shop"}}
    for number in range(60)
}


PROTOCOL = (ROOT / "docs" / "endpoints.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with Service(1) as service:
        yield f"http://{HOST}:{service.port}"


def test_sync_of_the_shipped_service_returns_two_pods(url: str) -> None:
    answer = json.loads(fetch(f"{url}/sync", REQUEST))
    assert [child["metadata"]["name"] for child in answer["children"]] == ["web-0", "web-1"]


def test_metrics_of_all_workers_are_exported(url: str) -> None:
    fetch(f"{url}/sync", REQUEST)
    text = fetch(f"{url}/metrics").decode()
    assert 'tapp_hook_requests_total{code="200",hook="sync"}' in text
    assert "tapp_hook_seconds_bucket" in text
    assert 'tapp_hook_actions_total{action="Create"}' in text


@pytest.mark.parametrize("path", ["/healthz", "/readyz", "/version"])
def test_probes_and_version_respond(url: str, path: str) -> None:
    assert json.loads(fetch(url + path))


ARRIVED = re.compile(rb'tapp_hook_body_bytes_count{hook="sync"} ([0-9.]+)')


def arrived(service: Service) -> float:
    """Returns the number of sync bodies that the service has received, from its metrics."""
    found = ARRIVED.search(service.get("/metrics", timeout=LONG)[1])
    return float(found[1]) if found else 0


def test_delayed_sync_gets_its_response_when_the_worker_stops() -> None:
    """Stops the service while the pacer delays a sync of a large TApp; the sync gets its
    response.
    """
    body = json.dumps({**REQUEST, "children": {"Pod.v1": PODS}}).encode()
    settings = {"TAPP_PACE_SECONDS": "5", "TAPP_PACE_POD_SECONDS": "1"}
    with Service(workers=1, **settings) as service, ThreadPoolExecutor() as pool:
        assert service.call("POST", "/sync", body)[0] == 200
        waiting = pool.submit(service.call, "POST", "/sync", body)
        while arrived(service) < 2:
            pass
        assert service.stop() == 0
        assert waiting.result()[0] == 200


@pytest.mark.parametrize("workers", [1, 2], ids=["one worker", "two workers"])
def test_sigterm_during_decisions_loses_no_response(workers: int) -> None:
    """Stops the service after eight requests have arrived, of which a worker decides some later.

    All requests get their responses.
    """
    path, body = request_in(NOTHING, 300)
    with Service(workers=workers) as service, ThreadPoolExecutor(8) as pool:
        whole = service.call("POST", path, body)[1]
        before = arrived(service)
        asking = [pool.submit(service.call, "POST", path, body, LONG) for _ in range(8)]
        while arrived(service) < before + 8:
            pass
        assert service.stop() == 0
        assert [each.result() for each in asking] == [(200, whole)] * 8


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGQUIT])
def test_stop_prints_no_traceback(number: signal.Signals) -> None:
    """Sends a signal to gunicorn after one of its workers has been replaced: it stops without a
    traceback.

    The signal may come while a worker starts, while it works, or at the end of gunicorn.
    """
    with Service(workers=2) as service:
        service.call("POST", "/sync", json.dumps(REQUEST).encode())
        first = service.workers[0]
        service.kill(first, signal.SIGTERM)  # another one takes its place
        while first in service.workers:
            time.sleep(0.05)
        service.get("/healthz")
        service.kill(service.process.pid, number)
        assert service.process.wait(LONG) == 0
        output = service.output()
    assert "Worker exiting" in output
    for trouble in ("Traceback", "TypeError", "Exception ignored", "Error"):
        assert trouble not in output


def test_worker_that_ends_idle_connections_prints_no_traceback() -> None:
    """Replaces the workers (SIGHUP) while a client keeps an idle connection, as Metacontroller
    does.

    After `graceful_timeout` the old worker ends the connection. That is no error in a request.
    """
    with Service(1, GUNICORN_CMD_ARGS="--graceful-timeout 1") as service:
        first = service.workers[0]
        with socket.create_connection((HOST, service.port)) as idle:
            idle.sendall(b"GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n")
            assert idle.recv(1)
            service.kill(service.process.pid, signal.SIGHUP)
            while first in service.workers:
                time.sleep(0.05)
        assert service.stop() == 0
        output = service.output()
    assert "Worker graceful timeout" in output
    for trouble in ("Traceback", "GreenletExit", "Error handling request"):
        assert trouble not in output


@pytest.mark.skipif(not Path("/proc/self/smaps_rollup").exists(), reason="only Linux has this file")
def test_worker_shares_the_memory_of_imports() -> None:
    """A worker shares more of its memory with its parent than it has alone."""
    with Service(workers=1) as service:
        assert service.get("/readyz")[0] == 200
        (worker,) = service.workers
        text = Path(f"/proc/{worker}/smaps_rollup").read_text()
        kilobytes = dict(re.findall(r"^(\w+):\s+(\d+) kB", text, re.MULTILINE))
        assert int(kilobytes["Private_Dirty"]) < int(kilobytes["Shared_Dirty"])


def test_workers_stop_during_their_start() -> None:
    """Stops the service while eight workers start: none of them exceeds the graceful timeout.

    A worker that ignores the signal before it listens would run on for `graceful_timeout`.
    """
    with Service(workers=8) as service:
        assert service.stop() == 0
        assert "graceful timeout" not in service.output()


def test_sigterm_ends_a_worker_that_does_not_listen_yet() -> None:
    """Runs gunicorn's `post_fork` hook and sends SIGTERM: the process ends by the signal.

    The worker must not inherit the signal handler of gunicorn's parent process.
    """
    code = (
        "import os, runpy, signal; signal.signal(signal.SIGTERM, lambda *_: None); "
        "runpy.run_path('gunicorn.conf.py')['post_fork'](None, None); "
        "os.kill(os.getpid(), signal.SIGTERM)"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=False)
    assert done.returncode == -signal.SIGTERM


def test_curl_command_in_the_protocol_gets_the_documented_response(
    url: str, tmp_path: Path
) -> None:
    def block(kind: str) -> str:
        found = re.search(rf"(?s)```{kind}\n(.*?)```", PROTOCOL)
        assert found
        return found[1]

    (tmp_path / "request.json").write_text(block("json request"))
    command = block("sh curl").replace("http://127.0.0.1:8080", url)
    done = subprocess.run(command, shell=True, cwd=tmp_path, capture_output=True, check=True)
    assert json.loads(done.stdout) == json.loads(block("json answer /plan"))
