"""The service on the embedded cluster's time: each call says what time it is.

This module is the service's: gunicorn imports it, and the demo does not. It is `hooks.app` with
another clock, which a service needs where something has to last: a drain, the silence of a node.
"""

import time

from flask import Flask, request

from demo.service import TIME_HEADER
from hooks.app import create_app


def application() -> Flask:
    """The WSGI application, with the default settings."""
    return create_app(clock=_now)


def _now() -> float:
    """Seconds since the epoch, as the call says; the machine's where it does not."""
    seconds = request.headers.get(TIME_HEADER)
    return float(seconds) if seconds else time.time()
