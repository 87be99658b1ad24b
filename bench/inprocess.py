"""The application in this process, as it is shipped, and REF, its measure.

REF is `orjson.loads` of the request and `orjson.dumps` of the answer, with the garbage collector
off. The application has its collector settings and its log, which goes to nowhere.
"""

import gc
import io
import logging
import os
import runpy
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import orjson

from bench.server import ROOT
from hooks.app import create_app
from hooks.service.logs import LOGGER
from hooks.service.settings import Settings

SEEDS = (1, 2, 3)
GROWTH_TARGET = 11.0
"""Per tenfold number of instances."""

Application = Callable[..., Any]


class Reference:
    """What a request and its answer cost at least."""

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


@contextmanager
def as_shipped(clock: Callable[[], float] = time.time) -> Iterator[Callable[[], Application]]:
    """Makes applications with gunicorn.conf.py's collector settings; their log goes nowhere."""
    thresholds, inherited = gc.get_threshold(), os.environ.get("PROMETHEUS_MULTIPROC_DIR")
    served = runpy.run_path(str(ROOT / "gunicorn.conf.py"))
    level = LOGGER.level
    create_app(Settings())  # makes the log, if nothing has yet

    def make() -> Application:
        app = create_app(Settings(), clock=clock)
        served["post_worker_init"](None)
        return app

    with Path(os.devnull).open("w", encoding="utf-8") as nowhere:
        shown = [item for item in LOGGER.handlers if isinstance(item, logging.StreamHandler)]
        streams = [(item, item.setStream(nowhere)) for item in shown]
        try:
            yield make
        finally:
            gc.set_threshold(*thresholds)
            gc.unfreeze()
            served["on_exit"](None)
            if inherited is None:
                os.environ.pop("PROMETHEUS_MULTIPROC_DIR", None)
            LOGGER.setLevel(level)
            for handler, stream in streams:
                handler.setStream(stream)


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
