"""TLS for gunicorn's gevent worker, which takes `Handshakes` for an `ssl.SSLContext`."""

import ssl
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, Final

import gevent
from gevent.ssl import SSLSocket

from hooks.service.logs import LOGGER

SECONDS: Final = 10.0  # For a handshake; gevent alone would wait for a silent client for ever
_ANY: Final = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)


@contextmanager
def alone() -> Iterator[None]:
    """Keeps an error of one TLS connection from the others.

    CPython may leave an error in OpenSSL's queue of the thread, where the next read or write of
    another connection takes it for its own (https://github.com/python/cpython/issues/148594; seen
    with Python 3.14). All connections of a worker have the same thread.
    """
    try:
        yield
    except OSError:
        with suppress(ssl.SSLError):
            _ANY.set_ciphers("-")  # Fails, and then CPython empties the queue.
        raise


class Connection(SSLSocket):  # type: ignore[misc]
    """A TLS connection whose errors stay its own."""

    def do_handshake(self) -> None:
        """See `ssl.SSLSocket`."""
        with alone():
            super().do_handshake()

    def read(self, *arguments: Any) -> Any:
        """See `ssl.SSLSocket`."""
        with alone():
            return super().read(*arguments)

    def send(self, *arguments: Any, **options: Any) -> Any:
        """See `ssl.SSLSocket`."""
        with alone():
            return super().send(*arguments, **options)


class Handshakes:
    """Gives accepted connections TLS, with the certificate that the files hold at that moment."""

    def __init__(self, load: Callable[[], ssl.SSLContext]) -> None:
        """`load` reads the certificate and the key."""
        self._load = load

    def wrap_socket(self, sock: Any, **options: Any) -> ssl.SSLSocket:
        """Returns the connection after its handshake.

        Raises GreenletExit, which ends the connection, if the handshake fails or takes too long.
        """
        try:
            context = self._load()
        except OSError as error:
            LOGGER.warning(
                "the certificate cannot be used", extra={"fields": {"error": str(error)}}
            )
            raise gevent.GreenletExit from None
        context.sslsocket_class = Connection
        try:
            with gevent.Timeout(SECONDS, OSError("the handshake takes too long")):
                return context.wrap_socket(sock, **options)
        except OSError:
            # gevent prints a traceback for any other error, so every port scan would cause one.
            raise gevent.GreenletExit from None
