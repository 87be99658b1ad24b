"""A client's connection, as gunicorn reads it: a request has its time to arrive, and its room.

All clients of a worker are greenlets of one thread, so nothing here needs a lock.
"""

import socket
import ssl
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any, Final

import gevent

from hooks.service.errors import RefusedError
from hooks.service.logs import LOGGER

LINGER: Final = 2.0  # Seconds for a client to read its last answer; what it still sends is dropped
LONGEST_HEAD: Final = 64 << 10  # Bytes of a head; gunicorn's own bound: a hundred headers of 8 KB
_PIECE: Final = 64 << 10
_TURN: Final = 1 << 20  # Bytes that are read of one client before others have their turn
_SHARE: Final = 16  # One in so many that wait is closed where there is no room for another
_AT_ONCE, _MUCH = 0.001, 8 << 10
"""Seconds and bytes: who has so much here when its time is over waits for us, not we for it."""
_ESTABLISHED: Final = 1  # First byte of `tcp_info` (linux/tcp.h) while neither side has ended


_TLS: Final = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)


@contextmanager
def alone() -> Iterator[None]:
    """Keeps an error of one TLS connection from the others.

    CPython may leave it in OpenSSL's queue of the thread, where the next read or write of another
    connection takes it for its own (https://github.com/python/cpython/issues/148594; seen with
    OpenSSL 3.6). Ciphers that cannot be have CPython empty the queue.
    """
    try:
        yield
    except OSError:
        with suppress(ssl.SSLError):
            _TLS.set_ciphers("-")
        raise


class Room:
    """Bounds on the clients that a worker waits for: their number, and the bytes that they hold."""

    def __init__(self, connections: int, longest: int, seconds: float, keepalive: float) -> None:
        """At most `connections` clients, and `longest` bytes of requests that have not arrived.

        A request has so many `seconds` to arrive, and its answer as many to be read; a client that
        asks nothing is let go after `keepalive` seconds.
        """
        self.connections, self.longest = connections, longest
        self.seconds, self.keepalive = seconds, keepalive
        self.clients = self.held = 0
        self._waiting: dict[Client, None] = {}

    def enter(self) -> None:
        """One more client."""
        self.clients += 1
        if self.clients >= self.connections:
            self._make("connections", len(self._waiting) // _SHARE + 1)

    def wait_for(self, client: "Client") -> None:
        """Puts a client behind all others that are waited for."""
        self._waiting.pop(client, None)
        self._waiting[client] = None

    def leave(self, client: "Client") -> None:
        """It is waited for no longer, nor does it hold what has not arrived."""
        self._waiting.pop(client, None)

    def hold(self, size: int) -> None:
        """So many bytes more are held, or fewer where `size` is negative."""
        self.held += size
        if self.held > self.longest:
            self._make("bytes", 1)

    def end(self) -> None:
        """Tell idle clients that this is the end."""
        for client in [each for each in self._waiting if each.idle]:
            client.part()

    def _make(self, what: str, number: int) -> None:
        """Parts with those that have waited longest, half-sent requests before idle ones."""
        known = [one for one in self._waiting if not one.idle or what != "bytes"]
        known.sort(key=lambda one: (one.idle, one.ends or 0.0))
        for client in known[:number]:
            client.part(f"too many {what} of half-sent requests; try again")
        fields = {"closed": len(known[:number]), "connections": self.clients, "bytes": self.held}
        LOGGER.warning(f"too many {what}: closed what waited longest", extra={"fields": fields})


class Client:
    """The socket that gunicorn reads a request from, and writes an answer to.

    `size`: bytes that have arrived of the request that is waited for; `ends`: when its time is over
    (by `time.monotonic`), None while none has begun; `answered`: an answer has begun; `ended`: the
    rest of the request that it answers does not come.
    """

    def __init__(self, sock: Any, room: Room) -> None:
        """Waits for its first request."""
        self.sock, self._room, self._closed = sock, room, False
        self.size, self.ended = 0, False
        self._parted: str | None = None
        self.begin()

    def __getattr__(self, name: str) -> Any:
        return getattr(self.sock, name)

    def begin(self) -> None:
        """Waits for the next request."""
        self.arrived()
        self._in_head, self.answered = True, False
        self.ends: float | None = None
        self._room.wait_for(self)

    @property
    def idle(self) -> bool:
        """True if no request has begun."""
        return self.ends is None

    def _start(self) -> float:
        if self.ends is None:
            self.ends = time.monotonic() + self._room.seconds
        return self.ends

    def headed(self, request: Any) -> None:
        """The request's head is here; it may have come with the last request."""
        self._in_head, self._request = False, request
        self._start()

    def arrived(self) -> None:
        """The request is whole, and takes no more room here."""
        self._room.leave(self)
        self._room.hold(-self.size)
        self.size = 0

    def recv(self, most: int) -> bytes:
        """Some bytes of the request; none where the client asks nothing more.

        Raises RefusedError: it has not arrived in time, ended before its end, or there is no room.
        """
        left = self._room.keepalive if self.ends is None else self.ends - time.monotonic()
        data = None
        if self._parted is None:
            with gevent.Timeout(max(left, _AT_ONCE), False), alone():
                data = bytes(self.sock.recv(most))
        if self._parted is not None or not data or (left < 0 and len(data) < _MUCH):
            return self._missed(late=data != b"")
        if self.answered:
            return data
        self._start()
        if (self.size + len(data)) // _TURN > self.size // _TURN:
            gevent.sleep(0)  # what is there already is read without waiting
        self.size += len(data)
        self._room.hold(len(data))
        if self._in_head and self.size > LONGEST_HEAD:
            raise RefusedError(431, "the head is too long")
        return data

    def _missed(self, *, late: bool) -> bytes:
        """Nothing more comes."""
        if self.idle or self.answered:
            self.ended = True
            return b""
        if not self._in_head:
            self._request.force_close()
        if self._parted is not None:
            raise RefusedError(503, self._parted)
        if late:
            seconds = f"{self._room.seconds:g} s (TAPP_BODY_SECONDS)"
            raise RefusedError(408, f"the request has not arrived in {seconds}")
        raise RefusedError(400, "the request ended before its end")

    def part(self, why: str = "") -> None:
        """Ends what is waited for: its reader reads an end, and says why."""
        self._parted = why
        self.arrived()
        with suppress(OSError):
            self.sock._sock.shutdown(socket.SHUT_RD)  # TLS has a shutdown of its own

    def sendall(self, data: bytes) -> None:
        """Sends a part of the answer. Raises BrokenPipeError: the client does not read it."""
        self.answered = True
        late = BrokenPipeError(32, "the answer is not read")
        with gevent.Timeout(self._room.seconds, late), alone():
            self.sock.sendall(data)

    def has_gone(self) -> bool:
        """True if the client has closed its side, and so does not wait for the answer."""
        try:
            return bool(self.sock.getsockopt(*_STATE)[0] != _ESTABLISHED)
        except OSError:
            return True

    def close(self) -> None:
        """Lets the client read its last answer."""
        if self._closed:
            return
        self._closed = True
        self.arrived()
        with suppress(OSError), gevent.Timeout(LINGER, False), alone():
            self.sock.shutdown(socket.SHUT_WR)
            while self.sock.recv(_PIECE):
                pass
        with suppress(OSError):
            self.sock.close()


_STATE = (socket.IPPROTO_TCP, socket.TCP_INFO, 1)
