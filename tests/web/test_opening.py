"""Tests that a browser opens the page with a one-time address, and that no browser of the terminal
is started.
"""

import http.client
import json
import os
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from kubectl_tapp.main import run
from kubectl_tapp.web import app, peer
from tests.web.browsers import page_of, program
from tests.web.page_server import Served, cluster, on_port, tapp

SECONDS = 120.0


def ask(url: str) -> http.client.HTTPResponse:
    """Sends a request like the first one of a browser, and returns the response."""
    at = urlsplit(url)
    connection = http.client.HTTPConnection("127.0.0.1", at.port or 0, timeout=SECONDS)
    connection.request("GET", f"{at.path}?{at.query}", headers={"Sec-Fetch-Site": "none"})
    return connection.getresponse()


@pytest.fixture
def served() -> Iterator[Served]:
    """Yields a new page for each test, because a one-time address is valid only once."""
    with on_port(cluster(tapp(replicas=1)), first="/default/shop") as found:
        yield found


def test_browser_gets_a_one_time_address(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Runs `kubectl tapp web`: the address in the command line of the browser does not contain the
    secret.

    Other users can read command lines. A file with the secret would not do, because a browser may
    have its own /tmp.
    """
    opened: list[str] = []
    monkeypatch.setattr("webbrowser.open", opened.append)
    monkeypatch.setattr("werkzeug.serving.BaseWSGIServer.serve_forever", lambda _: None)
    assert run(["web"], runner=cluster(tapp())) == 0
    said = capsys.readouterr().out
    secret = said.partition("key=")[2].split()[0]
    (url,) = opened
    assert url.startswith("http://127.0.0.1:")
    assert secret not in url
    assert url.partition("once=")[2] not in said
    assert "Ended" in said


def test_one_time_address_is_refused_after_its_use(served: Served) -> None:
    """Opens a one-time address twice: the first browser gets a cookie and a key, the second one an
    error.
    """
    url = served.door.address_for_one_use()
    answer = ask(url)
    assert answer.status == 303
    where = answer.getheader("Location") or ""
    assert where.startswith("/#key=")
    assert "to=/default/shop" in where
    assert "HttpOnly" in (answer.getheader("Set-Cookie") or "")
    again = ask(url)
    assert again.status == 403
    assert again.getheader("Set-Cookie") is None
    assert "once" in again.read().decode()


def test_browser_can_load_its_one_time_address_again(served: Served) -> None:
    """Opens a one-time address again with the cookie, as a browser does when it restores its
    pages.
    """
    url = served.door.address_for_one_use()
    cookie = (ask(url).getheader("Set-Cookie") or "").partition(";")[0]
    connection = http.client.HTTPConnection("127.0.0.1", served.port, timeout=SECONDS)
    connection.request("GET", url.removeprefix(served.url), headers={"Cookie": cookie})
    assert connection.getresponse().status == 200


@pytest.mark.parametrize("query", ["once=", "once=guessed", "key=", "once"])
def test_other_addresses_are_refused(served: Served, query: str) -> None:
    """Opens addresses with a wrong secret, before and after a one-time address was used: all are
    refused.
    """
    assert ask(f"{served.url}/?{query}").status == 403
    url = served.door.address_for_one_use()
    assert ask(f"{served.url}/?{query}").status == 403
    assert ask(url).status == 303
    assert ask(f"{served.url}/?{query}").status == 403


def test_one_time_address_expires(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    """Opens a one-time address too late: it is refused, because somebody may have read it in a
    log.
    """
    monkeypatch.setattr(app, "_ONE_USE_SECONDS", -1.0)
    assert ask(served.door.address_for_one_use()).status == 403


@pytest.mark.skipif(sys.platform != "linux" or os.geteuid() != 0, reason="needs root on Linux")
def test_other_user_of_the_machine_cannot_use_the_one_time_address(served: Served) -> None:
    """Opens a one-time address as another user of the machine: it is refused, and still valid for
    its owner.

    All users can read command lines, so only sockets of the same user are accepted.
    """
    url = urlsplit(served.door.address_for_one_use())
    thief = textwrap.dedent(f"""
        import os, socket
        os.setgid(65534), os.setuid(65534)
        own = socket.socket()
        own.connect(("127.0.0.1", {url.port}))
        own.sendall(b"GET /?{url.query} HTTP/1.0\\r\\nHost: {url.netloc}\\r\\n\\r\\n")
        os.write(1, own.recv(4096))
    """)
    command = [sys.executable, "-c", thief]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert said.split()[1] == "403"
    assert "Set-Cookie" not in said
    assert ask(url.geturl()).status == 303


TABLE = """\
  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout
   0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000  0 11 1
   1: 0100007F:1F90 0100007F:C350 01 00000000:00000000 00:00000000 00000000  1000  0 12 1
   2: 0100007F:C350 0100007F:1F90 {state} 00000000:00000000 00:00000000 00000000  {uid}  0 13 1
"""


@pytest.mark.parametrize(
    ("row", "kernel", "entered"),
    [
        ((0, "01"), "6.1.0", True),
        ((None, "01"), "6.1.0", True),
        ((4711, "01"), "6.1.0", False),
        ((4711, "01"), "5.15.0-microsoft-standard-WSL2", False),
        ((0, "06"), "6.1.0", False),
        ((0, "05"), "6.1.0", False),
        (None, "6.1.0", False),
        (None, "5.15.0-microsoft-standard-WSL2", True),
    ],
    ids=[
        "root, who forwards", "the user", "another user", "another user in WSL",
        "a closed socket", "a socket that closes", "no table", "a browser of Windows",
    ],
)  # fmt: skip
@pytest.mark.skipif(sys.byteorder != "little", reason="the table is written for such a machine")
def test_user_of_a_request_is_read_from_the_table_of_sockets(
    row: tuple[int | None, str] | None, kernel: str, entered: bool,
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path,
) -> None:  # fmt: skip
    """Accepts a request only from a socket of the same user or of root.

    The owner of the socket comes from a file in the format of /proc/net/tcp, where the kernel lists
    it as long as the socket is open.
    """
    table = tmp_path / "tcp"
    if row is not None:
        uid = os.geteuid() if row[0] is None else row[0]
        table.write_text(TABLE.format(uid=uid, state=row[1]), encoding="ascii")
    monkeypatch.setattr(peer, "_TABLES", (str(tmp_path / "none"), str(table)))
    monkeypatch.setattr("sys.platform", "linux")
    monkeypatch.setattr("platform.release", lambda: kernel)
    assert peer.may_be_same_user(0xC350, 0x1F90) is entered


def test_socket_of_ipv6_is_found(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Reads the owner of a socket that is connected to 127.0.0.1 by an IPv4-mapped IPv6 address."""
    mapped = peer._as_in_table("::ffff:127.0.0.1")
    line = f"0: {mapped}:C350 {mapped}:1F90 01 0:0 00:0 0 4711 0 1 1"
    (tmp_path / "tcp6").write_text(f"header\n{line}\n", encoding="ascii")
    monkeypatch.setattr(peer, "_TABLES", (str(tmp_path / "tcp6"),))
    assert peer.owner_of(0xC350, 0x1F90) == 4711


def test_forwarded_port_can_be_opened(served: Served) -> None:
    """Opens the page through another port, as after `ssh -L 9000:127.0.0.1:PORT`: the server
    accepts requests from the origin with the new port only.
    """
    connection = http.client.HTTPConnection("127.0.0.1", served.port, timeout=SECONDS)
    path = served.door.address.removeprefix(served.url)
    connection.request("GET", path, headers={"Host": "127.0.0.1:9000"})
    answer = connection.getresponse()
    assert answer.status == 303
    answer.read()
    where = answer.getheader("Location") or ""
    headers = {
        "Host": "127.0.0.1:9000", "Origin": "http://127.0.0.1:9000",
        "Cookie": (answer.getheader("Set-Cookie") or "").partition(";")[0],
        app.KEY: where.partition("key=")[2].partition("&")[0],
    }  # fmt: skip
    for origin, status in (("http://127.0.0.1:9000", 200), (served.url, 403)):
        connection.request("GET", "/api/settings", headers=headers | {"Origin": origin})
        answer = connection.getresponse()
        answer.read()
        assert answer.status == status


NOTING = """
import json, os
path = os.environ["KUBERC"]
note = {"kuberc": json.load(open(path)) if os.path.exists(path) else path}
open(PLACE + "/calls", "a").write(json.dumps(note | {"words": sys.argv[1:]}) + "\\n")
print('{"items": []}')
"""


@pytest.mark.parametrize("policy", [{}, {"credentialPluginPolicy": "DenyAll"}], ids=["", "policy"])
@pytest.mark.parametrize("end", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_page_ignores_preferences_of_kubectl_and_leaves_no_file(
    tmp_path: Path, end: signal.Signals, policy: dict[str, str]
) -> None:
    """Runs the server with a kuberc: its calls of kubectl have only the policy for credential
    plugins.

    The temporary file with that policy is removed, whichever signal ends the server.
    """
    kubectl = program(tmp_path, "kubectl", NOTING.replace("PLACE", repr(str(tmp_path))))
    kind = {"apiVersion": "kubectl.config.k8s.io/v1beta1", "kind": "Preference"}
    option = {"name": "show-labels", "default": "true"}
    defaults = {"defaults": [{"command": "get", "options": [option]}]}
    (tmp_path / "kuberc").write_text(json.dumps(kind | defaults | policy))
    (tmp_path / "tmp").mkdir()
    files = {"KUBERC": str(tmp_path / "kuberc"), "TMPDIR": str(tmp_path / "tmp")}
    with page_of(tmp_path, KUBECTL=str(kubectl), BROWSER="none", **files) as process:
        assert process.stdout is not None
        address = process.stdout.readline().split()[-1]
        answer = ask(address)
        key = (answer.getheader("Location") or "").partition("key=")[2].partition("&")[0]
        cookie = (answer.getheader("Set-Cookie") or "").partition(";")[0]
        at = urlsplit(address)
        connection = http.client.HTTPConnection("127.0.0.1", at.port or 0, timeout=SECONDS)
        connection.request("GET", "/api/tapps", headers={"Cookie": cookie, app.KEY: key})
        assert connection.getresponse().status == 200
        limit, calls = time.monotonic() + SECONDS, list[dict[str, Any]]()
        while not any("--watch" in each["words"] for each in calls):
            assert time.monotonic() < limit, calls
            time.sleep(0.05)
            lines = (tmp_path / "calls").read_text() if (tmp_path / "calls").exists() else ""
            calls = [json.loads(each) for each in lines.splitlines()]
        process.send_signal(end)
        process.wait(SECONDS)
    assert [each["kuberc"] for each in calls] == [(kind | policy) if policy else "off"] * len(calls)
    assert [*(tmp_path / "tmp").iterdir()] == []
