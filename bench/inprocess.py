"""The application in this process, as it is shipped, and REF, its measure.

REF is `orjson.loads` of the request and `orjson.dumps` of the answer, with the garbage collector
off. The application has its collector settings and its log, which goes to nowhere.
"""

import atexit
import gc
import io
import logging
import os
import runpy
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import orjson

from hooks.app import create_app
from hooks.service.logs import LOGGER
from hooks.service.settings import Settings

ROOT = Path(__file__).parents[1]

Application = Callable[..., Any]


class Reference:
    """The least cost of a request and its answer."""

    def __init__(self, body: bytes, answer: bytes) -> None:
        """Takes the answer apart beforehand; only its encoding is measured."""
        self._body = body
        self._tree = orjson.loads(answer)

    def ref(self) -> None:
        """Parses and writes everything; what was parsed is freed on the way out."""
        orjson.loads(self._body)
        orjson.dumps(self._tree)


@contextmanager
def collector_off() -> Iterator[None]:
    """The garbage collector is off, and what is there already is none of its business."""
    gc.collect()
    gc.freeze()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
        gc.unfreeze()


@cache
def _settings_of_gunicorn() -> dict[str, Any]:
    """gunicorn.conf.py's; from then on the service's log goes nowhere in this process."""
    served = runpy.run_path(str(ROOT / "gunicorn.conf.py"))
    atexit.register(served["on_exit"], None)
    create_app(Settings())  # makes the log
    nowhere = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115 - to the end
    for handler in LOGGER.handlers:
        if isinstance(handler, logging.StreamHandler):
            handler.setStream(nowhere)
    return served


def as_shipped(clock: Callable[[], float]) -> Application:
    """An application that has not answered anything yet, with gunicorn.conf.py's collector."""
    served = _settings_of_gunicorn()
    app = create_app(Settings(), clock=clock)
    served["post_worker_init"](None)
    return app


def quiet(clock: Callable[[], float] = time.time) -> Application:
    """The application, which logs errors alone."""
    return create_app(Settings(log_level="ERROR"), clock=clock).wsgi_app


def call(app: Application, path: str, body: bytes) -> bytes:
    """One request through the WSGI application, without a test client's overhead."""
    environ = {
        "REQUEST_METHOD": "POST",
        "PATH_INFO": path,
        "SERVER_NAME": "bench",
        "SERVER_PORT": "80",
        "SERVER_PROTOCOL": "HTTP/1.1",
        "CONTENT_TYPE": "application/json",
        "CONTENT_LENGTH": str(len(body)),
        "wsgi.input": io.BytesIO(body),
        "wsgi.url_scheme": "http",
        "wsgi.errors": io.StringIO(),
    }
    codes: list[str] = []
    answer = b"".join(app(environ, lambda status, _headers: codes.append(status)))
    if codes != ["200 OK"]:
        raise SystemExit(f"{path} answered {codes}: {answer[:200]!r}")
    return answer
