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


def test_what_waits_for_its_time_is_answered_when_its_worker_ends() -> None:
    """A large TApp that would wait for longer than the worker is given to end."""
    body = json.dumps({**REQUEST, "children": {"Pod.v1": PODS}}).encode()
    settings = {"TAPP_PACE_SECONDS": "5", "TAPP_PACE_POD_SECONDS": "1"}
    short = "--graceful-timeout 2"
    arrived = b'tapp_hook_body_bytes_count{hook="sync"} 2.0'
    with (
        Service(workers=1, GUNICORN_CMD_ARGS=short, **settings) as service,
        ThreadPoolExecutor() as pool,
    ):
        assert service.call("POST", "/sync", body)[0] == 200
        waiting = pool.submit(service.call, "POST", "/sync", body)
        while arrived not in service.get("/metrics")[1]:
            pass
        assert service.stop() == 0
        assert waiting.result()[0] == 200


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
        begun = time.monotonic()
        service.stop()
        assert time.monotonic() - begun < 8


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
