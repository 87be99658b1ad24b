"""gunicorn's gevent worker, with what this service promises of how requests arrive.

Each connection is a greenlet, so a client that is slow, or never goes on, costs a socket and the
bytes that it has sent; what bounds both is `client.py`. What takes the processor is done in threads
(`turns.py`), so that probes and other requests get through meanwhile.
"""

import resource
import ssl
from contextlib import nullcontext, suppress
from functools import partial
from typing import Any

import gevent
from gevent.pool import Pool
from gevent.server import StreamServer
from gevent.threadpool import ThreadPool
from gunicorn.http import errors
from gunicorn.http.body import LengthReader
from gunicorn.sock import ssl_wrap_socket
from gunicorn.workers.ggevent import GeventWorker

from hooks.service import turns
from hooks.service.client import LINGER, Client, Room, alone
from hooks.service.errors import RefusedError, whole_error
from hooks.service.logs import LOGGER
from hooks.service.pacing import HURRY
from hooks.service.settings import Settings

_STATUS = {
    errors.LimitRequestLine: 414,
    errors.ExpectationFailed: 417,
    errors.LimitRequestHeaders: 431,
    errors.UnsupportedTransferCoding: 501,
}
_SPARE = 64  # Connections on top of those that a worker keeps: the ones that are just being closed
_PIECE = 1 << 20
_OURS = (errors.InvalidResponseHeader, errors.InvalidResponseHeaderName)


class Worker(GeventWorker):  # type: ignore[misc]
    """The worker's loop reads and writes; threads decide."""

    def init_process(self) -> None:
        """In the worker's process, before its loop begins."""
        settings = Settings()
        self._longest = settings.max_body_bytes
        files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        most = min(self.worker_connections, files - 2 * _SPARE)
        self._room = Room(most, self._longest, settings.body_seconds, self.cfg.keepalive)
        HURRY.clear()
        super().init_process()

    def patch(self) -> None:
        """Besides what gunicorn does: threads that decide."""
        super().patch()
        turns.decide_in(ThreadPool(turns.AT_ONCE).apply)

    def server_class(self, listener: Any, **_: Any) -> StreamServer:
        """The acceptor of connections: TLS begins in `handle`, in its own time."""
        pool = Pool(self.worker_connections + _SPARE)
        server = StreamServer(listener, handle=partial(self.handle, listener), spawn=pool)
        server.max_accept = 1  # other workers may have more time
        return server

    def timeout_ctx(self) -> Any:
        """A client keeps the time itself."""
        return nullcontext()

    def handle(self, listener: Any, sock: Any, addr: Any) -> None:
        """A connection, from its beginning to its end."""
        self._room.enter()
        client = Client(sock, self._room)
        try:
            if self.cfg.is_ssl:
                client.sock = self._shaken(sock)
            super().handle(listener, client, addr)
        except ssl.SSLError as error:
            if error.reason == "HTTP_REQUEST":
                self.handle_error(None, client, addr, RefusedError(400, "this port speaks TLS"))
        except OSError:
            LOGGER.debug("no handshake")
        finally:
            client.close()
            self._room.clients -= 1

    def _shaken(self, sock: Any) -> Any:
        """The connection as TLS, its certificate read anew; OSError: not TLS, or not in time."""
        tls = ssl_wrap_socket(sock.dup(), self.cfg)
        try:
            with gevent.Timeout(self._room.seconds, OSError("too slow")), alone():
                tls.do_handshake()
        except OSError:
            tls.close()
            raise
        sock.close()
        return tls

    def handle_request(self, listener_name: Any, req: Any, client: Client, addr: Any) -> None:
        """A request whose head is here. Raises StopIteration: the connection ends with it."""
        client.headed(req)
        reader = req.body.reader
        if not isinstance(reader, LengthReader) or reader.length > self._longest:
            req.force_close()  # what nobody reads: the application refuses it
        elif not reader.length:
            client.arrived()
        super().handle_request(listener_name, req, client, addr)
        if req.should_close():
            raise StopIteration
        while req.body.read(_PIECE):
            pass
        if client.ended:
            raise StopIteration
        client.begin()

    def handle_error(self, req: Any, client: Client, addr: Any, exc: BaseException) -> None:  # noqa: ARG002
        """Answers a request that has not arrived, or that gunicorn's parser refuses: in JSON."""
        if isinstance(exc, RefusedError):
            code, message = exc.code, exc.message
        elif isinstance(exc, errors.ParseException) and not isinstance(exc, _OURS):
            code, message = _STATUS.get(type(exc), 400), f"this is no HTTP request: {exc}"
            fields = {"client": addr[0] if addr else "", "error": message}
            LOGGER.warning("bad request", extra={"fields": fields})
        else:
            code, message = 500, "internal error; the log has more"
            LOGGER.error("internal error", exc_info=exc)
        if not client.answered:
            self._count(code)
            with suppress(OSError):
                client.sendall(whole_error(code, message))

    def _count(self, code: int) -> None:
        # Imported here: the library looks at the process that imports it.
        from hooks.service.metrics import REQUESTS  # noqa: PLC0415

        REQUESTS.labels("none", code).inc()

    def handle_exit(self, sig: int, frame: Any) -> None:
        """At SIGTERM: what waits for its time goes on at once, and who asks nothing is let go."""
        super().handle_exit(sig, frame)
        gevent.spawn(self._finish)  # no handler of a signal may wait for a lock

    def handle_quit(self, sig: int, frame: Any) -> None:
        """The same at SIGINT and SIGQUIT."""
        gevent.spawn(HURRY.set)
        super().handle_quit(sig, frame)

    def _finish(self) -> None:
        HURRY.set()
        while True:
            gevent.sleep(LINGER)  # somebody may just be asking
            self._room.end()
