"""The gunicorn worker: a request is read to its end before it takes a thread.

Threads decide, and nothing else. The worker's own loop collects what arrives on all connections,
without ever waiting for one of them, so a client that is slow, or never goes on, costs a socket and
the bytes that it has sent. A request has so many seconds to arrive (`Settings.body_seconds`); too
many connections, or too much that has arrived of requests that are not whole, close the one that
has waited longest. Probes are answered by threads of their own.
"""

import errno
import selectors
import socket
import ssl
import time
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from typing import Any

from gunicorn.http import errors
from gunicorn.workers.gthread import STOP_KEEPALIVE_LINGER, ThreadWorker

from hooks.service.connection import LONGEST_SAID, Connection, refusal
from hooks.service.logs import LOGGER
from hooks.service.pacing import HURRY
from hooks.service.settings import Settings

_PROBERS = 4
"""Threads for probes."""
_MOST_QUEUED = 256
"""Requests that a worker has taken to decide; the callers of more are to try again."""
_SHARE = 16
"""One in so many of those that wait is closed where there is no room for another connection."""
_SWEEP = 1.0
"""Seconds between two looks at what has waited for too long."""
_STATUS = {
    errors.LimitRequestLine: (414, "URI Too Long"),
    errors.ExpectationFailed: (417, "Expectation Failed"),
    errors.LimitRequestHeaders: (431, "Request Header Fields Too Large"),
    errors.UnsupportedTransferCoding: (501, "Not Implemented"),
}


class PatientWorker(ThreadWorker):  # type: ignore[misc]
    """gunicorn's threaded worker; what it has in hand is whole requests.

    All connections are handled in the worker's loop, so nothing here needs a lock; a thread has a
    connection from `_decide` until `finish_request`.
    """

    def init_process(self) -> None:
        """In the worker's process, before its loop begins."""
        # Imported here: the library looks at the process that imports it.
        from hooks.service import metrics  # noqa: PLC0415

        settings = Settings()
        self._seconds, self._longest = settings.body_seconds, settings.max_body_bytes
        self._requests = metrics.REQUESTS
        self._waiting: dict[Connection, None] = {}
        self._held = self._queued = 0
        self._sweep_at = 0.0
        self._probers = ThreadPoolExecutor(_PROBERS)
        HURRY.clear()
        super().init_process()

    def handle_exit(self, sig: int, frame: Any) -> None:
        """At SIGTERM: what waits for its time goes on at once."""
        super().handle_exit(sig, frame)
        HURRY.set()

    def handle_quit(self, sig: int, frame: Any) -> None:
        """The same at SIGINT and SIGQUIT."""
        HURRY.set()
        super().handle_quit(sig, frame)

    def accept(self, listener: socket.socket) -> None:
        """Takes one connection, if need be in place of the one that has waited longest."""
        try:
            client, address = listener.accept()
        except OSError as error:
            if error.errno in (errno.EMFILE, errno.ENFILE):
                self._make_room("files")
            elif error.errno not in (errno.EAGAIN, errno.ECONNABORTED):
                raise
            return
        self.nr_conns += 1
        connection = Connection(
            *(self.cfg, client, address, listener.getsockname()),
            longest=self._longest,
            seconds=self._seconds,
        )
        if self.nr_conns >= self.worker_connections:
            self._make_room("connections")
        self._wait(connection)

    def _wait(self, connection: Connection) -> None:
        """The loop looks at it when something arrives, or its time is over."""
        if connection not in self._waiting:
            self._waiting[connection] = None
            self._held += connection.size
        watch = not connection.dribbles
        if watch and not connection.watched:
            self.poller.register(
                connection.fd, selectors.EVENT_READ, partial(self._readable, connection)
            )
        elif connection.watched and not watch:
            self.poller.unregister(connection.fd)
        connection.watched = watch

    def _leave(self, connection: Connection) -> None:
        """The loop has no more to do with it."""
        del self._waiting[connection]
        self._held -= connection.size
        if connection.watched:
            self.poller.unregister(connection.fd)
        connection.watched = False

    def _readable(self, connection: Connection, _fd: int) -> None:
        if connection in self._waiting:  # and not closed by an event of the same turn
            self._look(connection)

    def _look(self, connection: Connection) -> None:
        """Takes what has arrived."""
        before = connection.size
        try:
            here = connection.drop() if connection.closing else connection.receive()
        except OSError as error:
            if isinstance(error, ssl.SSLError) and error.reason == "HTTP_REQUEST":
                self._refuse(connection, 400, "Bad Request", "this port speaks TLS", plain=True)
            else:
                self._close(connection)
            return
        self._held += connection.size - before
        if connection.overlong:
            self._refuse(connection, 431, "Request Header Fields Too Large", "the head is too long")
        elif connection.whole:
            self._decide(connection)
        elif not here and connection.size:
            self._refuse(connection, 400, "Bad Request", "the request ended before its end")
        elif not here:
            self._close(connection)
        else:
            self._wait(connection)
            if connection.has_more:
                self.method_queue.defer(self._readable, connection, connection.fd)
            while self._held > self._longest:
                self._make_room("bytes")

    def _decide(self, connection: Connection) -> None:
        """Gives a whole request to a thread."""
        if self._queued >= _MOST_QUEUED and not connection.probe:
            self._refuse(
                connection, 503, "Service Unavailable", "too many requests wait; try again"
            )
            return
        self._leave(connection)
        self._queued += not connection.probe
        pool = self._probers if connection.probe else self.tpool
        future = pool.submit(self.handle, connection)
        future.add_done_callback(
            lambda done: self.method_queue.defer(self.finish_request, connection, done)
        )

    def finish_request(self, connection: Connection, done: "Future[Any]") -> None:
        """Back in the loop, after the answer: the next request, or the end of the connection."""
        self._queued -= not connection.probe
        try:
            if done.result():
                connection.sock.setblocking(False)
                connection.set_timeout()
                connection.begin()
                if not self.alive:
                    self._cap(connection, time.monotonic() + STOP_KEEPALIVE_LINGER)
            else:
                connection.linger()
        except Exception:  # noqa: BLE001 - as gunicorn does
            self._wait(connection)
            self._close(connection)
            return
        self._wait(connection)
        if connection.whole or connection.has_more:
            self._look(connection)

    def murder_pending(self) -> None:
        """Once a second: what has waited for too long goes, what dribbles is looked at."""
        now = time.monotonic()
        if now < self._sweep_at:
            return
        self._sweep_at, late = now + _SWEEP, 0
        for connection in list(self._waiting):
            if connection.timeout > now:
                if not connection.watched:
                    self._look(connection)
            elif connection.size:
                late += 1
                message = f"the request has not arrived in {self._seconds:g} s (TAPP_BODY_SECONDS)"
                self._refuse(connection, 408, "Request Timeout", message)
            else:
                self._close(connection)
        if late:
            LOGGER.warning("requests that did not arrive", extra={"fields": {"requests": late}})

    def _cap_keepalive(self, deadline: float) -> None:
        """The worker ends: who has asked nothing until then is not waited for."""
        for connection in self._waiting:
            self._cap(connection, deadline)

    def _cap(self, connection: Connection, deadline: float) -> None:
        if connection.idle:
            connection.timeout = min(connection.timeout, deadline)

    def _make_room(self, what: str) -> None:
        """Closes those that have waited longest, half-sent requests before idle connections."""
        bytes_short = what == "bytes"
        known = [item for item in self._waiting if item.size or not bytes_short]
        known.sort(key=lambda item: (item.idle, item.timeout))
        going = known[: 1 if bytes_short else len(known) // _SHARE + 1]
        for connection in going:
            self._count(503)
            if connection.size:
                message = f"too many {what} of half-sent requests; try again"
                connection.say(refusal(503, "Service Unavailable", message))
            self._close(connection)
        fields = {"closed": len(going), "connections": self.nr_conns, "bytes": self._held}
        LOGGER.warning(f"too many {what}: closed what waited longest", extra={"fields": fields})

    def _refuse(
        self, connection: Connection, code: int, reason: str, message: str, *, plain: bool = False
    ) -> None:
        """Answers what the application never sees; `plain` as in `Connection.say`."""
        self._count(code)
        connection.say(refusal(code, reason, message), plain=plain)
        self._held -= connection.size
        try:
            connection.linger()
        except OSError:
            self._close(connection)
        else:
            self._wait(connection)

    def _count(self, code: int) -> None:
        self._requests.labels("none", code).inc()

    def _close(self, connection: Connection) -> None:
        self._leave(connection)
        self.nr_conns -= 1
        connection.close()

    def handle_error(self, req: Any, client: Any, addr: Any, exc: Exception) -> None:  # noqa: ARG002
        """Answers a request that gunicorn's parser refuses, in JSON as all else."""
        ours = (errors.InvalidResponseHeader, errors.InvalidResponseHeaderName)
        if isinstance(exc, errors.ParseException) and not isinstance(exc, ours):
            code, reason = _STATUS.get(type(exc), (400, "Bad Request"))
            message = f"this is no HTTP request: {exc}"[:LONGEST_SAID]
            fields = {"client": addr[0] if addr else "", "error": message}
            LOGGER.warning("bad request", extra={"fields": fields})
        else:
            code, reason = 500, "Internal Server Error"
            message = "internal error; the log has more"
            LOGGER.error("internal error", exc_info=exc)
        self._count(code)
        with suppress(OSError):
            client.sendall(refusal(code, reason, message))
