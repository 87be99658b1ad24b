"""The service, running on the time of the embedded cluster.

Each call of the service has this time in a header. Gunicorn imports this module instead of
`hooks.app`. Decisions that depend on time then follow the simulated time, for example that a node
has stopped reporting.
"""

import time

from flask import Flask, request

from demo.service import TIME_HEADER
from hooks.app import create_app


def application() -> Flask:
    """Returns the WSGI application of the service, with default settings and the demo's time."""
    return create_app(clock=_now)


def _now() -> float:
    """Returns the time in the request's header, or the machine's time if the header is missing.

    The time is in seconds since the epoch.
    """
    seconds = request.headers.get(TIME_HEADER)
    return float(seconds) if seconds else time.time()
