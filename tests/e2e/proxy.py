"""Stands between Metacontroller and the hook: counts and records calls, and breaks them."""

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
    """One request and what was answered; status 0 where nothing was."""

    path: str
    request: bytes
    status: int
    answer: bytes

    @cached_property
    def namespaces(self) -> frozenset[bytes]:
        """Namespaces in it: read once, as tests that wait ask for them 20 times a second."""
        return frozenset(_NAMESPACE.findall(self.request))


@dataclass
class Fault:
    """Faults that the next `times` calls meet instead of an answer of the hook."""

    times: int
    status: int = 500
    hang: float = 0.0
    after_deciding: bool = False
    """Ask the hook first, and lose its answer."""
    until: threading.Event | None = None
    """Ask the hook first, and give its answer when this is set."""


class HookProxy:
    """An HTTP server on loopback that passes every call on to the hook."""

    def __init__(self, target: str, keep: int = 1000) -> None:
        self.calls: deque[Call] = deque(maxlen=keep)
        self.count = self.begun = self._asked = 0
        self.target = target
        """The hook that calls go to; a test may send them elsewhere for a while."""
        self.others: list[str] = []
        """More of them, which calls go to in turn, as through a Service."""
        self._faults: list[Fault] = []
        self._lock = threading.Lock()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = True
        self._thread = threading.Thread(
            target=self._server.serve_forever, name="proxy", daemon=True
        )
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"

    def start(self) -> HookProxy:
        """Begins to serve."""
        self._thread.start()
        return self

    def stop(self) -> None:
        """Stops serving."""
        self._server.shutdown()
        self._server.server_close()

    @contextmanager
    def led_to(self, target: str) -> Iterator[None]:
        """For a while, calls go to another hook."""
        usual, self.target = self.target, target
        try:
            yield
        finally:
            self.target = usual

    def fail(self, times: int = 1, status: int = 500, *, after_deciding: bool = False) -> None:
        """Answers the next calls with a status of its own."""
        with self._lock:
            self._faults.append(Fault(times, status, after_deciding=after_deciding))

    def hang(self, times: int, seconds: float) -> None:
        """Lets the next calls wait, then ends their connection without an answer."""
        with self._lock:
            self._faults.append(Fault(times, 0, hang=seconds))

    def hold(self) -> threading.Event:
        """Lets the next call wait for its answer, decided at once, until the event is set."""
        until = threading.Event()
        with self._lock:
            self._faults.append(Fault(1, until=until))
        return until

    def heal(self) -> None:
        """Forgets all faults."""
        with self._lock:
            self._faults.clear()

    def reset(self) -> None:
        """Forgets what was recorded and counted."""
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
                """Calls are recorded, not logged."""

        return Handler

    def answer(self, path: str, headers: dict[str, str], body: bytes) -> tuple[int, bytes]:
        """The hook's answer, or what a fault makes of it; status 0 ends the connection."""
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
            return 0, b""  # the hook is away: so is the proxy, as far as the caller can tell
