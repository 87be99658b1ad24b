"""The HTTP server of the page: `create_app` builds it, and `AccessGuard` checks each request.

Only a browser of this user may use the server. The server refuses requests of other users of the
machine and of other web pages in the same browser. It also refuses requests that reach it by
another host name. A request needs a cookie and, for the API, a key. Browsers send a cookie to every
port of a host, so the cookie alone is not enough; the key is in the local storage of this port.
"""

import re
import secrets
import threading
import time
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
from flask import Flask, Response, request
from werkzeug.exceptions import HTTPException

from kubectl_tapp.base.errors import CommandError, Exit
from kubectl_tapp.cluster.session import Session
from kubectl_tapp.live.following import Follower, Followers
from kubectl_tapp.show.page_style import PICTURES
from kubectl_tapp.web.changes import Changes
from kubectl_tapp.web.peer import may_be_same_user
from kubectl_tapp.web.work import Work

HOST = "127.0.0.1"
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "Content-Security-Policy": POLICY, "Cache-Control": "no-store",
    "Cross-Origin-Opener-Policy": "same-origin", "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer", "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}  # fmt: skip
KEY = "X-TApp-Key"
_SCRIPTS = "page.js", "connection.js", "show.js", "one.js", "changes.js", "plan.js"
_FILES = {
    "/": ("page.html", "text/html"), "/style.css": ("style.css", "text/css"),
    **{f"/{each}": (each, "text/javascript") for each in _SCRIPTS},
}  # fmt: skip
_NAME = re.compile(r"[a-z0-9]([-.a-z0-9]{0,251}[a-z0-9])?")
_MAX_BODY = 1 << 20  # Bytes of the largest request body
_OWN_HOST = re.compile(rf"{re.escape(HOST)}:[0-9]{{1,5}}")
_ONE_USE_SECONDS = 120.0  # Seconds within which a browser must open the address for one use
_ONE_USE_EXPLAINED = "this address works once, for two minutes, in a browser of the same user: "
_OPEN_PRINTED_ADDRESS = "open the address that `kubectl tapp web` printed"


class AccessGuard:
    """Lets only the user's own browser use the page, by a cookie and a key.

    Cookie and key are new at each start of the server.
    """

    def __init__(self, port: int) -> None:
        """Chooses new random secrets for the access to the page. `port` is the port of the
        server.
        """
        self._secret, self._cookie, self._key = (secrets.token_urlsafe(32) for _ in range(3))
        self._port, self._name = port, f"tapp-{port}"
        self._one_use_secret, self._one_use_until, self._lock = "", 0.0, threading.Lock()
        # Set when a browser has opened the page, and also when the server ends.
        self.opened = threading.Event()

    @property
    def address(self) -> str:
        """The address for the user, with a secret. Until the server ends, any browser may use the
        page by this address.
        """
        return f"http://{HOST}:{self._port}/?key={self._secret}"

    def address_for_one_use(self) -> str:
        """Returns an address with a new secret, to start a browser with this address as an
        argument.

        One browser may use the address once, within `_ONE_USE_SECONDS` seconds. An earlier address
        for one use no longer works.
        """
        self._one_use_secret, self._one_use_until = (
            secrets.token_urlsafe(32),
            time.monotonic() + _ONE_USE_SECONDS,
        )
        return f"http://{HOST}:{self._port}/?once={self._one_use_secret}"

    def check(self, first: str) -> Response | None:
        """Checks the current request, and returns a response that refuses or redirects it.

        Returns None if the server may answer the request. A browser that uses one of the two
        addresses with a secret is redirected to the page, which then shows the path `first`.
        """
        if not _OWN_HOST.fullmatch(request.host):
            return _error_response(403, f"refused: this page answers only at {HOST}:{self._port}")
        if self._has_secret():
            return self._redirect_to_page(first)
        problem = self._refusal_reason()
        return _error_response(403, problem) if problem else None

    def _has_secret(self) -> bool:
        """Returns True if the current request has the user's secret, or the unused secret for one
        use.

        In the second case the secret for one use becomes invalid.
        """
        key, once = (request.args.get(each, "") for each in ("key", "once"))
        if (request.method, request.path) != ("GET", "/"):
            return False
        if _equal(key, self._secret):
            self.opened.set()
            return True
        # The client's user is checked before the secret. Another user can read the browser's
        # command line, and must not make the address invalid by using it.
        client = int(request.environ.get("REMOTE_PORT") or 0)
        if not once or not may_be_same_user(client, self._port):
            return False
        with self._lock:
            fits = _equal(once, self._one_use_secret) and time.monotonic() <= self._one_use_until
            if fits:
                self._one_use_secret = ""
                self.opened.set()
        return fits

    def _refusal_reason(self) -> str:
        """Returns why the current request is refused, or "" if the page has sent the request."""
        # The browser's port may differ from the server's port, because ssh and VS Code forward
        # ports.
        origins = [f"http://{request.host}", *([""] if request.method == "GET" else [])]
        site = request.headers.get("Sec-Fetch-Site", "none")
        if request.headers.get("Origin", "") not in origins or site not in ("same-origin", "none"):
            return "refused: the request comes from another web page"
        known = _equal(request.cookies.get(self._name, ""), self._cookie)
        if request.path.startswith("/api/"):
            known = known and _equal(request.headers.get(KEY, ""), self._key)
        if known:
            return ""
        return (_ONE_USE_EXPLAINED if "once" in request.args else "") + _OPEN_PRINTED_ADDRESS

    def _redirect_to_page(self, first: str) -> Response:
        """Returns a redirect from the address with the secret to the page, which also sets the
        cookie.

        Browsers send a strict cookie only after a navigation from the same site. If another page or
        a file has opened the address, an HTML page of this server redirects instead.
        """
        where = f"/#key={self._key}&to={first}"
        answer = Response(status=303, headers={"Location": where})
        if request.headers.get("Sec-Fetch-Site") in ("cross-site", "same-site"):
            refresh = f'<!doctype html><meta http-equiv="refresh" content="0;url={where}">'
            answer = Response(refresh, mimetype="text/html")
        answer.set_cookie(self._name, self._cookie, httponly=True, samesite="Strict")
        return answer


def _equal(one: str, other: str) -> bool:
    return secrets.compare_digest(one.encode(), other.encode())


def create_app(
    session: Session, door: AccessGuard, *, first: str = "/", read_only: bool = False
) -> Flask:
    """Returns the WSGI application (Flask) of the page.

    Args:
        session: the run of the command, whose user and cluster the page uses.
        door: checks each request.
        first: the path that the page shows first: `/`, or `/NAMESPACE/NAME` of a TApp.
        read_only: True if the page changes nothing.
    """
    app = Flask(__name__, static_folder=None)
    app.config["MAX_CONTENT_LENGTH"] = _MAX_BODY
    live, work = Followers(session), Work()
    app.extensions["live"] = live
    changes = Changes(
        session, lambda space, name, text: live.one_tapp(space, name).add_to_timeline(text)
    )

    @app.before_request
    def _checked() -> Response | None:
        return door.check(first)

    @app.after_request
    def _finished(answer: Response) -> Response:
        answer.headers.update(HEADERS)
        return answer

    app.register_error_handler(Exception, _response_to)
    doors: dict[str, Any] = {
        **dict.fromkeys(_FILES, _file),
        "/pictures.css": lambda: Response(PICTURES, mimetype="text/css"),
        "/api/settings": lambda: {"readOnly": read_only},
        "/api/tapps": lambda: _changes_since(live.all_tapps()),
        "/api/tapp": lambda: _changes_since(live.one_tapp(*_namespace_and_name(request.args))),
        "/api/why": lambda: _when_ready(
            work,
            partial(
                live.one_tapp(*_namespace_and_name(request.args)).why,
                int(request.args.get("id", -1)),
            ),
        ),
        "/api/result": lambda: work.result(request.args.get("key", "")),
    }
    for path, function in doors.items():
        app.add_url_rule(path, path, function, methods=["GET"])

    def changing() -> Any:
        asked = request.get_json()
        if read_only:
            return _error_response(
                403, "kubectl tapp web was started with --read-only, so this page changes nothing"
            )
        if not isinstance(asked, dict):
            raise CommandError("the body of a change must be a JSON object")
        if request.path == "/api/do":
            return _when_ready(work, partial(changes.do, str(asked.get("key"))))
        words = *_namespace_and_name(asked), str(asked.get("change"))
        return _when_ready(work, partial(changes.plan, *words, asked.get("values")))

    for path in ("/api/plan", "/api/do"):
        app.add_url_rule(path, path, changing, methods=["POST"])
    return app


def _namespace_and_name(asked: Mapping[str, Any]) -> tuple[str, str]:
    """Returns the namespace and the name of a TApp from the parameters of a request.

    Raises CommandError if one of them is not a valid name. This check also prevents a parameter
    that begins with a hyphen, which kubectl would take for an option.
    """
    namespace, name = (str(asked.get(each, "")) for each in ("namespace", "name"))
    for each in (namespace, name):
        if not _NAME.fullmatch(each):
            raise CommandError(f"{each!r} is not a valid name of a TApp or a namespace")
    return namespace, name


def _when_ready(work: Work, function: Callable[[], Any]) -> Any:
    """Returns the result of a function that calls kubectl, or a key with which the page asks for
    the result later.

    The key is returned only to a client that asks for an asynchronous response (RFC 7240).
    """
    prefers = request.headers.get("Prefer", "").lower()
    return work.answer(function) if "respond-async" in prefers else function()


def _changes_since(followed: Follower) -> Response:
    """Returns the response with the changes of the model since the version that the request
    names.
    """
    hidden = request.args.get("hidden") == "true"
    found = followed.since(request.args.get("since", ""), hidden=hidden)
    return Response(msgspec.json.encode(found), mimetype="application/json")


def _file() -> Response:
    name, kind = _FILES[request.path]
    file = Path(__file__).with_name("static") / name
    return Response(file.read_text(encoding="utf-8"), mimetype=kind)


def _error_response(code: int, text: str) -> Response:
    return Response(msgspec.json.encode({"error": text}), code, mimetype="application/json")


def _response_to(error: Exception) -> Response:
    """Returns a JSON response with one sentence about an error that occurred during a request."""
    if isinstance(error, HTTPException):
        return _error_response(error.code or 500, str(error))
    if isinstance(error, CommandError):
        changed = error.code == Exit.CHANGED or getattr(error, "reason", "") == "Conflict"
        return _error_response(409 if changed else 400, str(error))
    if isinstance(error, ValueError):
        return _error_response(400, str(error))
    return _error_response(500, f"internal error of kubectl-tapp: {type(error).__name__}: {error}")
