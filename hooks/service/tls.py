"""TLS for gunicorn's gevent worker, which uses `Handshakes` in place of an `ssl.SSLContext`."""

import ssl
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, Final

import gevent
from gevent.ssl import SSLSocket

from hooks.service.logs import LOGGER

SECONDS: Final = 10.0  # Timeout of a handshake; gevent alone would wait for a silent client forever
_ANY: Final = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)


@contextmanager
def isolated() -> Iterator[None]:
    """Keeps an error of one TLS connection from breaking other connections.

    OpenSSL has one queue of errors for each thread, and all connections of a worker share a thread.
    CPython may leave an error in the queue, and the next read or write of another connection then
    fails with that error (https://github.com/python/cpython/issues/148594; seen with Python 3.14).
    """
    try:
        yield
    except OSError:
        with suppress(ssl.SSLError):
            _ANY.set_ciphers("-")  # The call always fails, and CPython then empties the queue.
        raise


class Connection(SSLSocket):  # type: ignore[misc]
    """A TLS connection whose errors do not affect other connections."""

    def do_handshake(self) -> None:
        """Does the handshake as `ssl.SSLSocket` does, but leaves no error to other connections."""
        with isolated():
            super().do_handshake()

    def read(self, *arguments: Any) -> Any:
        """Reads as `ssl.SSLSocket` does."""
        with isolated():
            return super().read(*arguments)

    def send(self, *arguments: Any, **options: Any) -> Any:
        """Sends as `ssl.SSLSocket` does."""
        with isolated():
            return super().send(*arguments, **options)


class Handshakes:
    """Does the TLS handshake of each accepted connection.

    Each handshake reads the certificate files again, so a renewed certificate needs no restart.
    """

    def __init__(self, load: Callable[[], ssl.SSLContext]) -> None:
        """Stores the function that loads the certificate.

        `load` reads the certificate and the key into a new context, and raises OSError if that
        fails.
        """
        self._load = load

    def wrap_socket(self, sock: Any, **options: Any) -> ssl.SSLSocket:
        """Does the handshake on an accepted connection, and returns the TLS connection.

        Raises GreenletExit, which closes the connection, if the certificate cannot be read, or if
        the handshake fails or takes longer than `SECONDS`.

        Args:
            sock: the accepted connection.
            options: arguments for `ssl.SSLContext.wrap_socket`.
        """
        try:
            context = self._load()
        except OSError as error:
            LOGGER.warning(
                "connection refused: the TLS certificate cannot be read",
                extra={"fields": {"error": str(error)}},
            )
            raise gevent.GreenletExit from None
        context.sslsocket_class = Connection
        try:
            with gevent.Timeout(SECONDS, OSError("the handshake takes too long")):
                return context.wrap_socket(sock, **options)
        except OSError:
            # For any other exception gevent prints a traceback, so every port scan would print one.
            raise gevent.GreenletExit from None
