"""The bodies of requests: their size, the time that they may take, and the memory of all together.

gunicorn's gevent worker gives each connection a greenlet, so a slow client holds up no other one.
The two waits of a request for its client are bounded here: `Bodies.received` for the body, and
`Bodies.bound` for the answer to be read. Outside a worker, as in tests, there is nothing to wait
for, and no timeout is started.
"""

import errno
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from io import BytesIO
from typing import Any, Final

import gevent
from flask import Request, Response
from gunicorn.http.errors import ParseException

from hooks.service.errors import RefusedError

JSON: Final = "application/json"
_LINGER: Final = 2.0
"""Seconds in which an unread body is received and dropped after its answer. A connection that is
closed while bytes arrive is reset, and the client may lose the answer that says why."""
_PIECE: Final = 1 << 20  # gunicorn receives no more at a time
_READ: Final = "tapp.body_read"  # In the request's environment, once its body has been received
_SOCKET: Final = "gunicorn.socket"  # In the environment of a request that a worker serves


class Bodies:
    """The bodies that one worker receives or holds until they are answered."""

    def __init__(self, limit: int, seconds: float) -> None:
        """Allows `limit` bytes for a body, and for all bodies together.

        A body has `seconds` to arrive, and its answer as many to be read.
        """
        self._limit, self._seconds, self._held = limit, seconds, 0

    @contextmanager
    def received(self, request: Request) -> Iterator[bytes]:
        """Receives the body of a request, and counts its bytes until the end of the block.

        Raises RefusedError if the body is no JSON by its headers, too large, late or cut off, or if
        the bodies of all requests are too large together.
        """
        length, received = self._length_of(request), BytesIO()
        late = f"the request has not arrived in {self._seconds:g} s (TAPP_BODY_SECONDS)"
        served = _SOCKET in request.environ
        try:
            with gevent.Timeout(self._seconds if served else None, RefusedError(408, late)):
                while (left := length - received.tell()) > 0:
                    piece = _read(request.environ["wsgi.input"], min(left, _PIECE))
                    if not piece:
                        raise RefusedError(400, "the request ended before its Content-Length")
                    received.write(piece)
                    self._hold(len(piece))
                    if served and left > _PIECE:
                        gevent.sleep(0)  # others have their turn, however fast this client sends
            request.environ[_READ] = True
            yield received.getvalue()
        finally:
            self._held -= received.tell()

    def bound(self, request: Request, response: Response) -> None:
        """Gives the client its time to read the answer, and closes connections with unread bodies.

        The rest of an unread body is dropped, so gunicorn cannot find the next request behind it.
        """
        if _SOCKET not in request.environ:
            return
        # An OSError, because gunicorn closes the connection after one, and logs nothing.
        unread = BrokenPipeError(errno.EPIPE, "the client does not read its answer")
        timeout = gevent.Timeout.start_new(self._seconds, unread)
        response.call_on_close(timeout.close)
        sent = request.content_length or "HTTP_TRANSFER_ENCODING" in request.environ
        if sent and _READ not in request.environ:
            body = request.environ["wsgi.input"]
            body.force_close()  # `pre_request` in gunicorn.conf.py
            response.call_on_close(partial(_drop, body))

    def _length_of(self, request: Request) -> int:
        environ = request.environ
        if environ.get("CONTENT_TYPE") != JSON and request.mimetype not in (JSON, ""):
            kind = request.mimetype
            raise RefusedError(415, f"send the request as Content-Type: {JSON}, not {kind}")
        if environ.get("HTTP_CONTENT_ENCODING", "identity") != "identity":
            raise RefusedError(415, "send the request without Content-Encoding")
        if "HTTP_TRANSFER_ENCODING" in environ:
            raise RefusedError(411, "send the request with a Content-Length, not in chunks")
        length = request.content_length or 0
        if length > self._limit:
            text = f"the request is larger than {self._limit} bytes (TAPP_MAX_BODY_BYTES)"
            raise RefusedError(413, text)
        return length

    def _hold(self, size: int) -> None:
        self._held += size
        if self._held > self._limit:
            text = f"requests of more than {self._limit} bytes (TAPP_MAX_BODY_BYTES) are in flight"
            raise RefusedError(503, f"{text}; try again")


def _read(body: Any, size: int) -> bytes:
    try:
        piece: bytes = body.read(size)
    except OSError:
        return b""  # the connection is broken
    return piece


def _drop(body: Any) -> None:
    with suppress(ParseException), gevent.Timeout(_LINGER, False):
        while _read(body, _PIECE):
            gevent.sleep(0)
