"""Receives the bodies of requests, and limits their size, their time and their total memory.

gunicorn's gevent worker runs each connection in a greenlet of its own, so a slow client delays no
other client. A request waits for its client twice, and both waits end after a timeout:
`Bodies.received` waits for the body, and `Bodies.bound` limits how long the client may take to read
the response. Outside a gunicorn worker, as in tests, no timeout is started.
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
"""Seconds in which the rest of an unread body is received and dropped after an error response. If
the connection were closed while bytes arrive, the kernel would reset it, and the client might never
read the response."""
_PIECE: Final = 1 << 20  # The most bytes that gunicorn receives at a time
_READ: Final = "tapp.body_read"  # Key in the WSGI environment once the body has been received
_SOCKET: Final = "gunicorn.socket"  # Key in the WSGI environment if a gunicorn worker serves


class Bodies:
    """The request bodies in the memory of one worker, and the limit of their size.

    A body counts from its first byte until its response is made.
    """

    def __init__(self, limit: int, seconds: float) -> None:
        """Sets the limits of size and time.

        Args:
            limit: the most bytes of one body, and of all bodies of the worker together.
            seconds: the time in which a body has to arrive, and in which a client has to read its
                response.
        """
        self._limit, self._seconds, self._held = limit, seconds, 0

    @contextmanager
    def received(self, request: Request) -> Iterator[bytes]:
        """Receives the body of a request, and counts its bytes until the `with` block ends.

        Raises RefusedError if the headers announce something other than JSON, if the body is too
        large, too late or incomplete, or if all bodies of the worker together are too large.
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
                        gevent.sleep(0)  # lets other greenlets run, however fast this client sends
            request.environ[_READ] = True
            yield received.getvalue()
        finally:
            self._held -= received.tell()

    def bound(self, request: Request, response: Response) -> None:
        """Limits the time in which the client may read the response.

        Also closes the connection after the response if the body of the request is unread: gunicorn
        could not find the beginning of the next request after it.
        """
        if _SOCKET not in request.environ:
            return
        # gunicorn closes the connection after an OSError and logs nothing.
        unread = BrokenPipeError(errno.EPIPE, "the client has not read the response in time")
        timeout = gevent.Timeout.start_new(self._seconds, unread)
        response.call_on_close(timeout.close)
        sent = request.content_length or "HTTP_TRANSFER_ENCODING" in request.environ
        if sent and _READ not in request.environ:
            body = request.environ["wsgi.input"]
            body.force_close()  # `pre_request` in gunicorn.conf.py
            response.call_on_close(partial(_drop, body))

    def _length_of(self, request: Request) -> int:
        """Returns the length of a request's body in bytes, according to its headers.

        Raises RefusedError if the body is no plain JSON, is sent in chunks, or is too large.
        """
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
        """Counts received bytes; `size` is their number.

        Raises RefusedError if all bodies of the worker together are too large.
        """
        self._held += size
        if self._held > self._limit:
            text = f"requests of more than {self._limit} bytes (TAPP_MAX_BODY_BYTES) are in flight"
            raise RefusedError(503, f"{text}; try again")


def _read(body: Any, size: int) -> bytes:
    """Returns at most `size` bytes of a body; none if the body or the connection has ended."""
    try:
        piece: bytes = body.read(size)
    except OSError:
        return b""  # the connection is broken, so no more bytes can arrive
    return piece


def _drop(body: Any) -> None:
    """Receives and drops the rest of a body, for at most `_LINGER` seconds."""
    with suppress(ParseException), gevent.Timeout(_LINGER, False):
        while _read(body, _PIECE):
            gevent.sleep(0)
