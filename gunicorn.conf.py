"""The configuration of gunicorn, which runs the service in its gevent workers.

Each connection is a greenlet of the worker's event loop, so a slow client costs a socket and the
bytes that it has sent (`hooks/service/bodies.py`). Decisions run in a few threads
(`hooks/service/turns.py`), so that the event loop answers probes meanwhile. Several workers use
several CPUs.
"""

import gc
import os
import signal
import sys
from typing import Any

from hooks.service import address, start

address.strip_variables()
start.check_settings()

bind = address.bind()
workers = address.workers()
worker_class = "gevent"
worker_connections = 768  # below 1,024, the usual limit of open files of a process
keepalive = 95  # longer than the 90 s for which Go's HTTP client keeps an idle connection
timeout = 60  # twice the timeout with which Metacontroller calls the hooks
graceful_timeout = 25
worker_tmp_dir = start.heartbeat_directory()
control_socket_disable = True  # nothing uses gunicorn's control socket
accesslog = None  # the service logs one line per sync itself

certfile = os.environ.get("TAPP_TLS_CERT_FILE") or None
keyfile = os.environ.get("TAPP_TLS_KEY_FILE") or None
ca_certs = os.environ.get("TAPP_TLS_CLIENT_CA_FILE") or None
cert_reqs = 2 if ca_certs else 0  # ssl.CERT_REQUIRED: a client must show a certificate of that CA

_metrics = start.metrics_directory()


def on_starting(server: Any) -> None:
    """Imports the service before gunicorn forks the workers, so that they share its memory."""
    import hooks.app  # noqa: F401, PLC0415 - needs PROMETHEUS_MULTIPROC_DIR, which is set above

    gc.collect()
    gc.freeze()  # the garbage collector would write into each shared page and so copy the page


def post_fork(server: Any, worker: Any) -> None:
    """Lets SIGTERM end a new worker that has not installed its own signal handlers yet.

    Such a worker inherits the handler of gunicorn's main process and would ignore SIGTERM until
    `graceful_timeout` has passed. It serves no request yet, so it may end at once.
    """
    signal.signal(signal.SIGTERM, signal.SIG_DFL)


def post_worker_init(worker: Any) -> None:
    """Prepares a worker: turns pacing on, and tunes log, garbage collector and thread switches.

    Python lets another thread run after one millisecond instead of five. Beside threads that
    decide, the event loop needs several such switches to answer a probe, and a thousand to receive
    100 MB.
    """
    from hooks.service.pacing import HURRY  # noqa: PLC0415 - the metrics need `on_starting` first

    HURRY.clear()
    worker.log.error_log.addFilter(start.ends_no_connection)
    sys.setswitchinterval(0.001)
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 100)


def ssl_context(config: Any, load: Any) -> Any:
    """Returns the object that does the TLS handshakes; gunicorn calls this if `certfile` is set."""
    from hooks.service.tls import Handshakes  # noqa: PLC0415 - gevent has to patch `ssl` first

    return Handshakes(load)


def pre_request(worker: Any, request: Any) -> None:
    """Gives the application a function that closes the connection after the response.

    gunicorn ignores the header `Connection: close` of responses.
    """
    request.body.force_close = request.force_close


def worker_exit(server: Any, worker: Any) -> None:
    """Lets the worker end without tracebacks in the log."""
    start.forget_log_handlers()


def child_exit(server: Any, worker: Any) -> None:
    """Removes the gauges of a worker that has ended; its counters stay in the sums."""
    # The library reads PROMETHEUS_MULTIPROC_DIR, which is set above, when it is imported.
    from prometheus_client import multiprocess  # noqa: PLC0415

    multiprocess.mark_process_dead(worker.pid)  # type: ignore[no-untyped-call]


def on_exit(server: Any) -> None:
    """Removes the metrics directory if the service has created it."""
    start.remove_metrics(_metrics)
