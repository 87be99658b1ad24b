"""Tests forged requests to the server of the web page, without a browser (docs/security.md)."""

import http.client
import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from kubectl_tapp.web.app import KEY, POLICY
from tests.web.page_server import Served, cluster, on_port, tapp


@dataclass
class User:
    """A browser that has opened the printed address.

    Attributes:
        served: the page.
        cookie: the cookie that the browser has received.
        key: the key that the page sends with each request.
    """

    served: Served
    cookie: str
    key: str

    def ask(
        self, path: str, method: str = "GET", body: Any = None, **headers: str | None
    ) -> http.client.HTTPResponse:
        """Sends a request as the page does, and returns the response.

        `headers` replace the headers of the page; None removes a header.
        """
        known: dict[str, str | None] = {
            "Host": f"127.0.0.1:{self.served.port}",
            "Cookie": self.cookie,
            KEY: self.key,
            "Sec-Fetch-Site": "same-origin",
            **({"Origin": self.served.url} if method == "POST" else {}),
            **({"Content-Type": "application/json"} if body is not None else {}),
            **{name.replace("_", "-"): value for name, value in headers.items()},
        }
        connection = http.client.HTTPConnection("127.0.0.1", self.served.port, timeout=120)
        text = body if isinstance(body, bytes | None) else json.dumps(body)
        given = {name: value for name, value in known.items() if value is not None}
        connection.request(method, path, text, given)
        return connection.getresponse()


@pytest.fixture(scope="module")
def served() -> Iterator[Served]:
    """Yields the page that all tests of this file attack."""
    with on_port(cluster(tapp()), first="/default/shop") as found:
        yield found


@pytest.fixture(scope="module")
def user(served: Served) -> User:
    """Returns a browser that has opened the printed address."""
    path = served.door.address.removeprefix(served.url)
    answer = User(served, "", "").ask(path, Cookie=None, X_TApp_Key=None, Sec_Fetch_Site="none")
    assert answer.status == 303
    where = answer.getheader("Location") or ""
    cookie = answer.getheader("Set-Cookie") or ""
    assert {"HttpOnly", "SameSite=Strict"} <= set(cookie.split("; "))
    assert f"tapp-{served.port}=" in cookie
    assert served.door.address.partition("key=")[2] not in where + cookie
    return User(served, cookie.partition(";")[0], where.partition("key=")[2].partition("&")[0])


PLAN = {"namespace": "default", "name": "shop", "change": "kill", "values": {"ids": ["1"]}}
ATTACKS: dict[str, tuple[str, str, Any, dict[str, str | None]]] = {
    "another user without the secret": ("GET", "/", None, {"Cookie": None, KEY: None}),
    "a guessed secret": ("GET", "/?key=guessed", None, {"Cookie": None, KEY: None}),
    "a guessed cookie": ("GET", "/", None, {"Cookie": "tapp-1=guessed"}),
    "a file without the secret": ("GET", "/page.js", None, {"Cookie": None}),
    "the cookie, caught at another port, without the key": ("GET", "/api/tapps", None, {KEY: None}),
    "the key without the cookie": ("GET", "/api/tapps", None, {"Cookie": None}),
    "a name that was rebound": ("GET", "/api/settings", None, {"Host": "evil.example:80"}),
    "a rebound name with the port": ("GET", "/", None, {"Host": "evil.example"}),
    "localhost by its name": ("GET", "/api/settings", None, {"Host": "localhost"}),
    "another page reads": ("GET", "/api/settings", None, {"Origin": "https://evil.example"}),
    "another page navigates": ("GET", "/", None, {"Sec-Fetch-Site": "cross-site"}),
    "a page at another port": ("GET", "/api/settings", None, {"Sec-Fetch-Site": "same-site"}),
    "another page plans": ("POST", "/api/plan", PLAN, {"Origin": "https://evil.example"}),
    "another port plans": ("POST", "/api/plan", PLAN, {"Origin": "http://127.0.0.1:1"}),
    "a page without an origin": ("POST", "/api/plan", PLAN, {"Origin": "null"}),
    "a post without an origin": ("POST", "/api/plan", PLAN, {"Origin": None}),
    "a form of another page": (
        "POST", "/api/do", b"key=x",
        {"Content-Type": "application/x-www-form-urlencoded", "Origin": "https://evil.example",
         KEY: None},
    ),
    "a post without the key": ("POST", "/api/do", {"key": "x"}, {KEY: None}),
}  # fmt: skip


@pytest.mark.parametrize("attack", ATTACKS)
def test_attack_gets_only_an_error(user: User, attack: str) -> None:
    """Sends a forged request: the response has no data, no cookie and no key, and kubectl is not
    called.
    """
    method, path, body, headers = ATTACKS[attack]
    calls = len(user.served.standin.writes)
    own = {name.replace("-", "_"): value for name, value in headers.items()}
    answer = user.ask(path, method, body, **own)
    text = answer.read().decode()
    assert answer.status == 403
    assert "shop" not in text
    assert user.key not in text
    assert answer.getheader("Set-Cookie") is None
    assert answer.getheader("Access-Control-Allow-Origin") is None
    assert len(user.served.standin.writes) == calls


@pytest.mark.parametrize("path", ["/", "/page.js", "/api/settings", "/api/nothing"])
def test_every_response_has_the_security_headers(user: User, path: str) -> None:
    """Compares the headers of several responses.

    With them the page loads nothing from other sites, is in no frame, and is not stored.
    """
    answer = user.ask(path)
    assert answer.getheader("Content-Security-Policy") == POLICY
    assert answer.getheader("Cache-Control") == "no-store"
    assert answer.getheader("X-Frame-Options") == "DENY"
    assert answer.getheader("X-Content-Type-Options") == "nosniff"
    assert answer.getheader("Referrer-Policy") == "no-referrer"
    assert "unsafe" not in POLICY


def test_changes_need_a_post(user: User) -> None:
    """Sends GET requests to the addresses for changes, with the user's cookie and key: they are
    refused.
    """
    before = len(user.served.standin.writes)
    assert user.ask("/api/do?key=x").status == 405
    assert user.ask("/api/plan?name=shop").status == 405
    assert len(user.served.standin.writes) == before


NONSENSE: dict[str, Any] = {
    "a name that is an option": {**PLAN, "name": "--kubeconfig=/tmp/evil"},
    "a namespace that is an option": {**PLAN, "namespace": "-A"},
    "a name with a path": {**PLAN, "name": "../secrets"},
    "a name that is no text": {**PLAN, "name": {"a": 1}},
    "no change": {**PLAN, "change": "delete"},
    "a value that is none of the verb": {**PLAN, "values": {"ids": ["1"], "html": "/tmp/x"}},
    "the verb itself": {**PLAN, "values": {"verb": "x"}},
    "ids that are no list": {**PLAN, "values": {"ids": 7}},
    "ids that are an option": {**PLAN, "values": {"ids": ["--all"]}},
    "values that are no object": {**PLAN, "values": [1]},
    "values that are missing": {**PLAN, "values": {}},
    "a list": [PLAN],
}


@pytest.mark.parametrize("body", NONSENSE.values(), ids=NONSENSE)
def test_invalid_request_is_one_error(user: User, body: Any) -> None:
    """Sends invalid values to the plan: each gets 400 with an error, and none reaches kubectl."""
    before = len(user.served.standin.writes)
    answer = user.ask("/api/plan", "POST", body)
    said = json.loads(answer.read())
    assert answer.status == 400
    assert said["error"]
    assert "fault" not in said["error"]
    assert len(user.served.standin.writes) == before


def test_large_or_invalid_body_is_refused(user: User) -> None:
    """Sends a body of 2 MiB, a body that is not JSON, and one with another content type."""
    assert user.ask("/api/plan", "POST", b'"' + b"x" * (2 << 20) + b'"').status == 413
    assert user.ask("/api/plan", "POST", b"not JSON").status == 400
    assert user.ask("/api/plan", "POST", b"x", Content_Type="text/plain").status == 415


def test_plan_can_be_written_only_once(user: User) -> None:
    """Carries out a plan by its key: a second use of the key, or another key, has no effect."""
    found = json.loads(user.ask("/api/plan", "POST", PLAN).read())
    assert "1 deleted" in found["plan"]["headline"]
    assert user.ask("/api/do", "POST", {"key": found["key"]}).status == 200
    assert user.ask("/api/do", "POST", {"key": found["key"]}).status == 409
    assert user.ask("/api/do", "POST", {"key": "guessed"}).status == 409


def test_read_only_server_refuses_changes() -> None:
    """Sends changes to a server with `--read-only`: the server itself refuses them, because the
    page could be bypassed.
    """
    with on_port(cluster(tapp()), read_only=True) as served:
        path = served.door.address.removeprefix(served.url)
        answer = User(served, "", "").ask(path, Sec_Fetch_Site="none")
        key = (answer.getheader("Location") or "").partition("key=")[2].partition("&")[0]
        user = User(served, (answer.getheader("Set-Cookie") or "").partition(";")[0], key)
        for path in ("/api/plan", "/api/do"):
            refused = user.ask(path, "POST", PLAN)
            assert refused.status == 403
            assert "--read-only" in refused.read().decode()
        assert served.standin.writes == []


def test_link_on_another_site_opens_the_page(served: Served) -> None:
    """Opens the printed address from a link on another site: the response is a page that reloads
    itself.

    Browsers do not send a strict cookie after a redirect that began on another site.
    """
    path = served.door.address.removeprefix(served.url)
    answer = User(served, "", "").ask(path, Sec_Fetch_Site="cross-site", Cookie=None)
    assert answer.status == 200
    assert b'http-equiv="refresh"' in answer.read()
