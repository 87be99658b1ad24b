"""How the service is served: gunicorn's gevent worker. Every value has its reason beside it.

Each connection is a greenlet of the worker's loop, so a slow client costs a socket and the bytes
that it has sent (`hooks/service/bodies.py`). Decisions run in a few threads
(`hooks/service/turns.py`), so that the loop answers probes meanwhile; parallelism comes from
workers.
"""

import gc
import os
import signal
import sys
from typing import Any

from hooks.service import address, start

start.check_settings()

bind = address.bind()
workers = address.workers()
worker_class = "gevent"
worker_connections = 768  # of a worker; a process may often open no more than 1,024 files
keepalive = 95  # longer than the 90 s for which Go's client keeps an idle connection
timeout = 60  # twice Metacontroller's timeout for a hook
graceful_timeout = 25
worker_tmp_dir = start.heartbeat_directory()
control_socket_disable = True  # no second door
accesslog = None  # the service logs one line per sync itself

certfile = os.environ.get("TAPP_TLS_CERT_FILE") or None
keyfile = os.environ.get("TAPP_TLS_KEY_FILE") or None
ca_certs = os.environ.get("TAPP_TLS_CLIENT_CA_FILE") or None
cert_reqs = 2 if ca_certs else 0  # ssl.CERT_REQUIRED: a client must show a certificate of that CA

_metrics = start.metrics_directory()


def on_starting(server: Any) -> None:
    """Imports the service before there are workers: what they are copies of, they share."""
    import hooks.app  # noqa: F401, PLC0415 - after PROMETHEUS_MULTIPROC_DIR is set, above

    gc.collect()
    gc.freeze()  # the collector would write into each shared page


def post_fork(server: Any, worker: Any) -> None:
    """A worker that is to end before it can listen to that has nothing in hand: it ends at once.

    Else it would have the handler of the process that started it, and go on for `graceful_timeout`.
    """
    signal.signal(signal.SIGTERM, signal.SIG_DFL)


def post_worker_init(worker: Any) -> None:
    """Takes what was made since out of the garbage collector's sight, and calls it less often.

    The worker's loop gets its turn beside threads that decide after one millisecond, not five: it
    takes several of them to answer a probe, and a thousand to receive 100 MB.
    """
    from hooks.service.pacing import HURRY  # noqa: PLC0415 - as in `on_starting`

    HURRY.clear()
    sys.setswitchinterval(0.001)
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 100)


def ssl_context(config: Any, load: Any) -> Any:
    """Gives the worker the TLS side of its connections, if there is a certificate."""
    from hooks.service.tls import Handshakes  # noqa: PLC0415 - the worker has patched `ssl` by now

    return Handshakes(load)


def pre_request(worker: Any, request: Any) -> None:
    """Lets the application close a connection: gunicorn ignores `Connection: close` in answers."""
    request.body.force_close = request.force_close


def worker_exit(server: Any, worker: Any) -> None:
    """Keeps the end of a worker silent."""
    start.forget_log_handlers()


def child_exit(server: Any, worker: Any) -> None:
    """Lets the metrics of a dead worker's gauges go; its counters stay in the sums."""
    # Imported here: the library looks for PROMETHEUS_MULTIPROC_DIR, set above, when it is imported.
    from prometheus_client import multiprocess  # noqa: PLC0415

    multiprocess.mark_process_dead(worker.pid)  # type: ignore[no-untyped-call]


def on_exit(server: Any) -> None:
    """Removes the metrics directory if it is ours."""
    start.remove_metrics(_metrics)
