"""How the service is served. Every value has its reason beside it; HOST and PORT choose the door.

Measured on two cores with requests of 1,000 and 10,000 pods: threads only keep small requests
answered while a worker decides a large one (`hooks.service.turns`: four requests at once, and one
large one); parallelism comes from workers. No client holds a thread: connections are greenlets of
gunicorn's gevent worker (`hooks.service.worker`), which answer probes beside all that.
"""

import gc
import os
import shutil
import signal
import sys
import tempfile
from pathlib import Path
from typing import Any

from hooks.service import address

bind = address.bind()
workers = address.workers()
worker_class = "hooks.service.worker.Worker"  # gevent's
worker_connections = 768  # then the one that has waited longest is closed; files end at 1,024 often
keepalive = 95  # longer than the 90 s for which Go's client keeps an idle connection
timeout = 60  # twice Metacontroller's timeout for a hook
graceful_timeout = 25
worker_tmp_dir = "/dev/shm" if Path("/dev/shm").is_dir() else None  # noqa: S108 - heartbeat file
control_socket_disable = True  # no second door
accesslog = None  # the service logs one line per sync itself

certfile = os.environ.get("TAPP_TLS_CERT_FILE") or None
keyfile = os.environ.get("TAPP_TLS_KEY_FILE") or None
ca_certs = os.environ.get("TAPP_TLS_CLIENT_CA_FILE") or None
cert_reqs = 2 if ca_certs else 0  # ssl.CERT_REQUIRED: a client must show a certificate of that CA

_own_metrics_dir = ""
if "PROMETHEUS_MULTIPROC_DIR" not in os.environ:
    _own_metrics_dir = tempfile.mkdtemp(prefix="tapp-metrics-")
    os.environ["PROMETHEUS_MULTIPROC_DIR"] = _own_metrics_dir


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
    sys.setswitchinterval(0.001)
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 100)


def child_exit(server: Any, worker: Any) -> None:
    """Lets the metrics of a dead worker's gauges go; its counters stay in the sums."""
    # Imported here: the library looks for PROMETHEUS_MULTIPROC_DIR, set above, when it is imported.
    from prometheus_client import multiprocess  # noqa: PLC0415

    multiprocess.mark_process_dead(worker.pid)  # type: ignore[no-untyped-call]


def on_exit(server: Any) -> None:
    """Removes the metrics directory if it is ours."""
    if _own_metrics_dir:
        shutil.rmtree(_own_metrics_dir, ignore_errors=True)
