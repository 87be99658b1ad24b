"""A connection, and what has arrived of its next request; nothing here ever waits."""

import re
import socket
import ssl
import time
from collections import deque
from contextlib import suppress
from typing import Any, Final

import msgspec
from gunicorn import http
from gunicorn.http.errors import NoMoreData
from gunicorn.http.unreader import Unreader
from gunicorn.sock import ssl_wrap_socket
from gunicorn.workers.gthread import TConn

LONGEST_HEAD: Final = 64 << 10
"""Bytes of a request's head."""
LONGEST_SAID: Final = 500
"""Characters of a text in an error's answer: it may quote the request."""
PATIENCE: Final = 4
"""How often nearly nothing may come before a connection is looked at once a second only."""
_SMALL = 1 << 10
_PIECE = 1 << 20
_TURN = 4 << 20
"""Bytes that are read of one connection before others have their turn."""
_LINGER = 2.0
"""Seconds in which a client may read its last answer."""
_PROBES = (b"GET /healthz ", b"GET /readyz ")
_AT_ONCE = 0.1
"""Seconds in which a probe's few bytes can be sent, unless its client never reads."""
_EXPECTS = re.compile(rb"\r\nexpect:[ \t]*100-continue[ \t]*\r\n", re.IGNORECASE)
_LENGTH = re.compile(rb"\r\ncontent-length:[ \t]*(\d{1,18})[ \t]*\r\n", re.IGNORECASE)


def refusal(code: int, reason: str, message: str) -> bytes:
    """A whole answer, head and JSON, after which the connection is closed."""
    body = msgspec.json.encode({"error": message[:LONGEST_SAID]})
    head = f"HTTP/1.1 {code} {reason}\r\nConnection: close\r\nContent-Type: application/json\r\n"
    return f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body


class _Arrived(Unreader):  # type: ignore[misc]
    """What has arrived; gunicorn's parser reads it, and never waits for more."""

    def __init__(self) -> None:
        super().__init__()
        self.pieces: deque[bytes] = deque()

    def chunk(self, size_hint: int | None = None) -> bytes:  # noqa: ARG002 - gunicorn's signature
        """The next piece."""
        if not self.pieces:
            raise NoMoreData
        return self.pieces.popleft()

    def rest(self) -> bytes:
        """What nobody has read; it is left out then."""
        left = b"".join([self.take_buffered(), *self.pieces])
        self.pieces.clear()
        return left


class Connection(TConn):  # type: ignore[misc]
    """A connection, and what has arrived of its next request.

    Attributes:
        size: bytes that have arrived of it.
        reads: how often nearly nothing came.
        probe: whether it is a probe's.
        overlong: whether its head does not end.
        shaken: whether its TLS handshake is over, if it has one.
        closing: whether it was answered for the last time, and only waits for its client to read.
        watched: whether the loop is told when something arrives.
        fd: its file descriptor.
    """

    sock: Any

    def __init__(self, *args: Any, longest: int, seconds: float) -> None:
        """`longest` is the longest body that is waited for, `seconds` how long a request may take.

        Its handshake may take as long.
        """
        super().__init__(*args)
        self._longest, self._seconds = longest, seconds
        self.shaken = not self.cfg.is_ssl
        self._arrived = _Arrived()
        self.parser = http.get_parser(self.cfg, (), self.client)
        self.parser.unreader = self._arrived
        self.initialized = self.data_ready = True
        self.fd = self.sock.fileno()
        self.closing = self.watched = False
        self.timeout = time.monotonic() + (self.cfg.keepalive if self.shaken else seconds)
        self.begin()

    def begin(self) -> None:
        """Begins the next request, with what has arrived of it behind the last one."""
        self._head, self._missing = bytearray(), -1
        self.size = self.reads = 0
        self.probe = self.overlong = False
        left = self._arrived.rest()
        if left:
            self._take(left)

    @property
    def idle(self) -> bool:
        """Whether no request has begun."""
        return not self.size and self.shaken and not self.closing

    @property
    def whole(self) -> bool:
        """Whether the request has arrived, or enough to refuse it."""
        return self._missing == 0

    @property
    def dribbles(self) -> bool:
        """Whether it is not worth an event what it sends."""
        return self.reads > PATIENCE

    @property
    def has_more(self) -> bool:
        """Whether bytes are here that no event will tell of: TLS has decrypted them already."""
        return isinstance(self.sock, ssl.SSLSocket) and self.sock.pending() > 0

    def receive(self) -> bool:
        """Takes what is there, without waiting; False if the client has gone.

        Raises:
            OSError: the connection is broken, or its handshake failed.
        """
        before = self.size
        with suppress(BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError):
            if not self.shaken:
                self._shake_hands()
            while not self.whole and self.size - before < _TURN:
                data = self.sock.recv(_PIECE if self.size > LONGEST_HEAD else LONGEST_HEAD)
                if not data:
                    return False
                self._take(data)
        self.reads += self.size - before < _SMALL
        return True

    def _shake_hands(self) -> None:
        if not isinstance(self.sock, ssl.SSLSocket):
            self.sock = ssl_wrap_socket(self.sock, self.cfg)
            self.sock.setblocking(False)
        self.sock.do_handshake()
        self.shaken, self.reads = True, 0
        self.set_timeout()

    def _take(self, data: bytes) -> None:
        if not self.size:
            self.timeout = time.monotonic() + self._seconds
        self.size += len(data)
        if self._missing >= 0:
            self._arrived.pieces.append(data)
            self._missing = max(0, self._missing - len(data))
            return
        searched = max(0, len(self._head) - 3)
        self._head += data
        end = self._head.find(b"\r\n\r\n", searched)
        if end < 0 and len(self._head) <= LONGEST_HEAD:
            return
        head, self._head = bytes(self._head), bytearray()
        self.overlong = end < 0
        self.probe = head.startswith(_PROBES)
        found = _LENGTH.search(head, 0, end + 2) if end >= 0 else None
        length = int(found[1]) if found is not None else 0
        # What is too long is not waited for: the application refuses it unread.
        behind = len(head) - end - 4
        self._missing = 0 if length > self._longest else max(0, length - behind)
        if self._missing and _EXPECTS.search(head, 0, end + 2):
            with suppress(OSError):  # curl waits a second for it where the body is large
                self.sock.send(b"HTTP/1.1 100 Continue\r\n\r\n")
            # Otherwise gunicorn would say it once more, when the body is here.
            head = _EXPECTS.sub(b"\r\n", head[: end + 2], 1) + head[end + 2 :]
        self._arrived.pieces.append(head)

    def init(self) -> None:
        """Called in its thread: from here on it is the client's turn, to read."""
        self.sock.settimeout(_AT_ONCE if self.probe else self._seconds)

    def say(self, answer: bytes, *, plain: bool = False) -> None:
        """Sends an error, as far as that takes no time; `plain` to a client that speaks no TLS."""
        with suppress(OSError):
            self.sock.setblocking(False)
            if plain:
                socket.socket.send(self.sock, answer)
            elif self.shaken:
                self.sock.send(answer)

    def linger(self) -> None:
        """No more is said: the client reads its answer, and what it still sends is dropped.

        Raises:
            OSError: it has gone.
        """
        self._arrived.rest()
        self._head = bytearray()
        self.closing, self.shaken, self.size, self.reads = True, True, 0, 0
        self.timeout = time.monotonic() + _LINGER
        self.sock.setblocking(False)
        self.sock.shutdown(socket.SHUT_WR)

    def drop(self) -> bool:
        """Drops what has arrived; False if the client has gone.

        Raises:
            OSError: the connection is broken.
        """
        with suppress(BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError):
            for _ in range(_TURN // LONGEST_HEAD):
                if not self.sock.recv(LONGEST_HEAD):
                    return False
        return True
