"""A proxy between Metacontroller and the service that counts, records and breaks calls."""

from __future__ import annotations

import http.client
import re
import threading
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit

_NAMESPACE = re.compile(rb'"namespace": ?"([^"]+)"')


@dataclass(frozen=True)
class Call:
    """A request with its response; the status is 0 if there was no response."""

    path: str
    request: bytes
    status: int
    answer: bytes

    @cached_property
    def namespaces(self) -> frozenset[bytes]:
        """The namespaces in the request.

        The namespaces are cached, because waiting tests read them 20 times a second.
        """
        return frozenset(_NAMESPACE.findall(self.request))


@dataclass
class Fault:
    """A fault that the next `times` calls get in place of the service's response."""

    times: int
    status: int = 500
    hang: float = 0.0
    after_deciding: bool = False
    """Sends the request to the service first, and discards the response."""
    until: threading.Event | None = None
    """Sends the request to the service first, and returns the response when this event is set."""


class HookProxy:
    """An HTTP server on loopback that forwards all calls to the service."""

    def __init__(self, target: str, keep: int = 1000) -> None:
        self.calls: deque[Call] = deque(maxlen=keep)
        self.count = self.begun = self._asked = 0
        self.target = target
        """The URL of the service. A test may change it for a while."""
        self.others: list[str] = []
        """URLs of further replicas; the proxy calls all of them in turn, like a Service."""
        self._faults: list[Fault] = []
        self._lock = threading.Lock()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = True
        self._thread = threading.Thread(
            target=self._server.serve_forever, name="proxy", daemon=True
        )
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"

    def start(self) -> HookProxy:
        """Starts serving."""
        self._thread.start()
        return self

    def stop(self) -> None:
        """Stops serving."""
        self._server.shutdown()
        self._server.server_close()

    @contextmanager
    def led_to(self, target: str) -> Iterator[None]:
        """Sends calls to another service within the context."""
        usual, self.target = self.target, target
        try:
            yield
        finally:
            self.target = usual

    def fail(self, times: int = 1, status: int = 500, *, after_deciding: bool = False) -> None:
        """Answers the next calls with this status."""
        with self._lock:
            self._faults.append(Fault(times, status, after_deciding=after_deciding))

    def hang(self, times: int, seconds: float) -> None:
        """Delays the next calls, and then closes their connections without a response."""
        with self._lock:
            self._faults.append(Fault(times, 0, hang=seconds))

    def hold(self) -> threading.Event:
        """Lets the service decide the next call, and delays the response until the returned event
        is set.
        """
        until = threading.Event()
        with self._lock:
            self._faults.append(Fault(1, until=until))
        return until

    def heal(self) -> None:
        """Removes all faults."""
        with self._lock:
            self._faults.clear()

    def reset(self) -> None:
        """Removes recorded calls and counts."""
        with self._lock:
            self.calls.clear()
            self.count = self.begun = 0

    def _fault(self) -> Fault | None:
        with self._lock:
            for fault in self._faults:
                if fault.times > 0:
                    fault.times -= 1
                    return fault
        return None

    def _record(self, call: Call) -> None:
        with self._lock:
            self.calls.append(call)
            self.count += 1

    def _ask(self, path: str, headers: dict[str, str], body: bytes) -> tuple[int, bytes]:
        with self._lock:
            self._asked += 1
            places = [self.target, *self.others]
            target = urlsplit(places[self._asked % len(places)])
        connection = http.client.HTTPConnection(target.hostname or "", target.port, timeout=120)
        try:
            connection.request("POST", path, body, headers)
            response = connection.getresponse()
            return response.status, response.read()
        finally:
            connection.close()

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        proxy = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                headers = {
                    key: self.headers[key]
                    for key in ("Content-Type", "Authorization", "If-None-Match")
                    if key in self.headers
                }
                with proxy._lock:
                    proxy.begun += 1
                status, answer = proxy.answer(self.path, headers, body)
                proxy._record(Call(self.path, body, status, answer))
                if status == 0:
                    self.close_connection = True
                    return
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer)

            def log_message(self, *_: object) -> None:
                """Logs nothing, because calls are recorded."""

        return Handler

    def answer(self, path: str, headers: dict[str, str], body: bytes) -> tuple[int, bytes]:
        """Returns the response of the service or of a fault. Status 0 closes the connection."""
        fault = self._fault()
        if fault is not None and fault.until is not None:
            decided = self._ask(path, headers, body)
            fault.until.wait(120)
            return decided
        if fault is not None:
            if fault.after_deciding:
                self._ask(path, headers, body)
            time.sleep(fault.hang)
            return fault.status, b'{"error":"injected"}'
        try:
            return self._ask(path, headers, body)
        except (OSError, http.client.HTTPException):
            return 0, b""  # for the caller, the proxy is down if the service is down
