"""The service with the time of the embedded cluster, which each call gives in a header.

Gunicorn imports this module instead of `hooks.app`. Rules that depend on time, such as a node that
stops reporting, then follow the simulated time.
"""

import time

from flask import Flask, request

from demo.service import TIME_HEADER
from hooks.app import create_app


def application() -> Flask:
    """Returns the WSGI application of the service, with default settings and the time of the
    demo.
    """
    return create_app(clock=_now)


def _now() -> float:
    """Returns the time in seconds since the epoch: that in the request, or else the machine's."""
    seconds = request.headers.get(TIME_HEADER)
    return float(seconds) if seconds else time.time()
