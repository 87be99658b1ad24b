"""The service as it is shipped: gunicorn, its configuration, its workers."""

import json
import re
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.load.service import HOST, ROOT, Service
from tests.situations import NOTHING, request_in

LONG = 120.0

REQUEST = {
    "parent": {
        "apiVersion": "apps.tkestack.io/v1",
        "kind": "TApp",
        "metadata": {"name": "web", "namespace": "shop", "uid": "u-1"},
        "spec": {
            "replicas": 2,
            "template": {"spec": {"containers": [{"name": "a", "image": "a"}]}},
        },
    },
    "children": {"Pod.v1": {}, "PersistentVolumeClaim.v1": {}},
    "related": {},
    "finalizing": False,
}


PODS = {
    f"shop/other-{number}": {"metadata": {"name": f"other-{number}", "namespace": "shop"}}
    for number in range(60)
}


PROTOCOL = (ROOT / "docs" / "protocol.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with Service(1) as service:
        yield f"http://{HOST}:{service.port}"


def fetch(url: str, body: object = None) -> bytes:
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url, data, {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=60) as answer:
        read: bytes = answer.read()
    return read


def test_a_served_sync_answers_two_pods(url: str) -> None:
    answer = json.loads(fetch(f"{url}/sync", REQUEST))
    assert [child["metadata"]["name"] for child in answer["children"]] == ["web-0", "web-1"]


def test_the_metrics_of_all_workers_are_served(url: str) -> None:
    fetch(f"{url}/sync", REQUEST)
    text = fetch(f"{url}/metrics").decode()
    assert 'tapp_hook_requests_total{code="200",hook="sync"}' in text
    assert "tapp_hook_seconds_bucket" in text
    assert 'tapp_hook_actions_total{action="Create"}' in text


@pytest.mark.parametrize("path", ["/healthz", "/readyz", "/version"])
def test_the_doors_for_people_and_probes_are_open(url: str, path: str) -> None:
    assert json.loads(fetch(url + path))


ARRIVED = re.compile(rb'tapp_hook_body_bytes_count{hook="sync"} ([0-9.]+)')


def arrived(service: Service) -> float:
    """Bodies of syncs that the service has received."""
    found = ARRIVED.search(service.get("/metrics", timeout=LONG)[1])
    return float(found[1]) if found else 0


def test_what_waits_for_its_time_is_answered_when_its_worker_ends() -> None:
    """A sync of a large TApp, which the pacer delays."""
    body = json.dumps({**REQUEST, "children": {"Pod.v1": PODS}}).encode()
    settings = {"TAPP_PACE_SECONDS": "5", "TAPP_PACE_POD_SECONDS": "1"}
    with Service(workers=1, **settings) as service, ThreadPoolExecutor() as pool:
        assert service.call("POST", "/sync", body)[0] == 200
        waiting = pool.submit(service.call, "POST", "/sync", body)
        while arrived(service) < 2:
            pass
        assert service.stop() == 0
        assert waiting.result()[0] == 200


@pytest.mark.parametrize("workers", [1, 2])
def test_sigterm_in_the_middle_of_decisions_loses_no_answer(workers: int) -> None:
    """More of them than a worker decides at a time; each is answered in full."""
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
def test_a_stop_prints_no_traceback(number: signal.Signals) -> None:
    """Neither at the start, nor while it serves, nor at the end of a worker or of gunicorn."""
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


@pytest.mark.skipif(not Path("/proc/self/smaps_rollup").exists(), reason="only Linux tells")
def test_a_worker_shares_what_was_imported() -> None:
    """It holds less for itself than what it has from the process that started it."""
    with Service(workers=1) as service:
        assert service.get("/readyz")[0] == 200
        (worker,) = service.workers
        text = Path(f"/proc/{worker}/smaps_rollup").read_text()
        kilobytes = dict(re.findall(r"^(\w+):\s+(\d+) kB", text, re.MULTILINE))
        assert int(kilobytes["Private_Dirty"]) < int(kilobytes["Shared_Dirty"])


def test_workers_that_have_hardly_begun_end() -> None:
    """Some are told to end before they listen; they would go on for `graceful_timeout`."""
    with Service(workers=8) as service:
        assert service.stop() == 0
        assert "graceful timeout" not in service.output()


def test_a_worker_that_does_not_listen_yet_is_ended_by_sigterm() -> None:
    """Whatever the process that started it does with that signal."""
    code = (
        "import os, runpy, signal; signal.signal(signal.SIGTERM, lambda *_: None); "
        "runpy.run_path('gunicorn.conf.py')['post_fork'](None, None); "
        "os.kill(os.getpid(), signal.SIGTERM)"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=False)
    assert done.returncode == -signal.SIGTERM


def test_the_curl_line_of_the_protocol_is_answered(url: str, tmp_path: Path) -> None:
    """The page's request, asked as the page says, has the page's answer."""

    def block(kind: str) -> str:
        found = re.search(rf"(?s)```{kind}\n(.*?)```", PROTOCOL)
        assert found
        return found[1]

    (tmp_path / "request.json").write_text(block("json request"))
    command = block("sh curl").replace("http://127.0.0.1:8080", url)
    done = subprocess.run(command, shell=True, cwd=tmp_path, capture_output=True, check=True)
    assert json.loads(done.stdout) == json.loads(block("json answer /plan"))
