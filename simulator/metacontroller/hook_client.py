"""Clients that send a request to a hook: `HttpHook` over HTTP, `WsgiHook` in this process.

Source: Metacontroller 4.17.2, pkg/hooks.
"""

import http.client
import io
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, Protocol
from urllib.parse import urlsplit

TOO_MANY_REQUESTS = 429


class HookError(Exception):
    """The call of a hook failed, or its response cannot be used; the sync is retried later."""


@dataclass(frozen=True, slots=True)
class HttpResponse:
    """An HTTP response; the names of `headers` are in lower case."""

    status: int
    body: bytes
    headers: dict[str, str] = field(default_factory=dict)


class HookClient(Protocol):
    """A client that sends POST requests to hooks."""

    def post(self, url: str, body: bytes, seconds: float) -> HttpResponse:
        """Sends a POST request and returns the response.

        Raises HookError if no response arrives in time.

        Args:
            url: the URL of the hook.
            body: the body of the request.
            seconds: seconds after which the call fails.
        """


Wsgi = Callable[[dict[str, Any], Callable[..., Any]], Iterable[bytes]]


class WsgiHook:
    """Calls a WSGI application in this process. Of a URL, only path and query are used."""

    def __init__(self, application: Wsgi) -> None:
        self._application = application

    def post(self, url: str, body: bytes, seconds: float, **more: object) -> HttpResponse:  # noqa: ARG002
        """Calls the application and returns its response.

        `more` are additional WSGI variables. `seconds` is ignored: the call has no timeout.
        """
        parts = urlsplit(url)
        environ = {
            "REQUEST_METHOD": "POST",
            "SCRIPT_NAME": "",
            "PATH_INFO": parts.path,
            "QUERY_STRING": parts.query,
            "SERVER_NAME": parts.hostname or "hook",
            "SERVER_PORT": str(parts.port or 80),
            "SERVER_PROTOCOL": "HTTP/1.1",
            "HTTP_HOST": parts.netloc or "hook",
            "CONTENT_TYPE": "application/json",
            "CONTENT_LENGTH": str(len(body)),
            "REMOTE_ADDR": "127.0.0.1",
            "wsgi.version": (1, 0),
            "wsgi.url_scheme": "http",
            "wsgi.input": io.BytesIO(body),
            "wsgi.errors": sys.stderr,
            "wsgi.multithread": False,
            "wsgi.multiprocess": False,
            "wsgi.run_once": False,
            **more,
        }
        seen: list[tuple[str, list[tuple[str, str]]]] = []

        def start(status: str, headers: list[tuple[str, str]], _error: object = None) -> None:
            seen.append((status, headers))

        chunks = self._application(environ, start)
        try:
            content = b"".join(chunks)
        finally:
            close = getattr(chunks, "close", None)
            if close is not None:
                close()
        status, headers = seen[-1]
        return HttpResponse(int(status.split()[0]), content, {k.lower(): v for k, v in headers})


class HttpHook:
    """Calls a hook over HTTP or HTTPS.

    Args:
        base: scheme, host and port that replace those of the manifest's URL; empty to use the
            manifest's URL unchanged.
        headers: called before each request; returns headers to add to the request.
    """

    def __init__(self, base: str = "", headers: Callable[[], dict[str, str]] = dict) -> None:
        self._base = base.rstrip("/")
        self._headers = headers

    def post(self, url: str, body: bytes, seconds: float) -> HttpResponse:
        """Sends the request over a new connection and returns the response.

        Raises HookError if the connection fails or no response arrives within `seconds`.
        """
        target = urlsplit(self._base + urlsplit(url).path if self._base else url)
        connect = (
            http.client.HTTPSConnection if target.scheme == "https" else http.client.HTTPConnection
        )
        connection = connect(target.hostname or "localhost", target.port, timeout=seconds)
        try:
            headers = {"Content-Type": "application/json", **self._headers()}
            connection.request("POST", target.path or "/", body, headers)
            response = connection.getresponse()
            found = {name.lower(): value for name, value in response.getheaders()}
            return HttpResponse(response.status, response.read(), found)
        except (OSError, http.client.HTTPException) as error:
            raise HookError(f"http error: {error}") from error
        finally:
            connection.close()
