"""Plays a stream through the service of the current directory: `play.py PLACE 3 2`.

Each file in the directory PLACE is a request. Each is played three times, and the first two
requests do not count. The command prints a JSON object with the size of a request in MB, and the
CPU milliseconds of REF and the handler. These are medians of all requests, for each the minimum of
its passes. The last figure is the maximum growth of the process, in multiples of the request. The
handler is the WSGI application with the garbage collector and the log as shipped. REF is
`orjson.loads` of the request and `orjson.dumps` of the response without a collector.
"""

import gc
import json
import logging
import os
import re
import runpy
import statistics
import sys
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import orjson

from hooks.app import create_app
from hooks.service.logs import LOGGER
from hooks.service.settings import Settings
from simulator.metacontroller.hook_client import WsgiHook
from tests.builders import NOW


def worker(served: dict[str, Any]) -> WsgiHook:
    """Returns a worker of the service that has not handled a request yet; `served` is gunicorn's
    configuration.
    """
    settings = Settings(pace_seconds=0, pace_pod_seconds=0)
    app = create_app(settings, clock=lambda: NOW).wsgi_app
    for handler in LOGGER.handlers:
        if isinstance(handler, logging.StreamHandler):
            handler.setStream(Path(os.devnull).open("w", encoding="utf-8"))  # noqa: SIM115 - to the end
    # gunicorn's worker, as far as the hook uses it.
    log = SimpleNamespace(error_log=logging.getLogger("gunicorn.error"))
    served["post_worker_init"](SimpleNamespace(log=log))
    return WsgiHook(app)


def megabytes(field: str) -> float:
    """Returns a size of this process in MB, by its name in /proc/self/status, for example
    `VmRSS`.
    """
    text = Path("/proc/self/status").read_text(encoding="ascii")
    return int(re.findall(rf"{field}:\s+(\d+) kB", text)[0]) / 1e3


def timed(hook: WsgiHook, body: bytes) -> tuple[float, float]:
    """Sends a request; returns the CPU milliseconds of the handler and of REF."""
    gc.enable()
    started = time.thread_time()
    answer = hook.post("/sync", body, 60)
    handler = time.thread_time() - started
    gc.disable()
    if answer.status != 200:
        raise SystemExit(f"answered {answer.status}: {answer.body[:200]!r}")
    tree = orjson.loads(answer.body)
    started = time.thread_time()
    orjson.loads(body)
    orjson.dumps(tree)
    return handler * 1e3, (time.thread_time() - started) * 1e3


def main(place: str, passes: int, warm: int) -> None:
    """Plays the requests in a directory `passes` times, and prints the figures; the first `warm` do
    not count.
    """
    served = runpy.run_path("gunicorn.conf.py")
    hook, files = worker(served), sorted(Path(place).iterdir())
    idle, size = megabytes("VmRSS"), files[-1].stat().st_size / 1e6
    for file in files:
        hook.post("/sync", file.read_bytes(), 60)
    grown = (megabytes("VmHWM") - idle) / size
    played = [[timed(hook, file.read_bytes()) for file in files][warm:] for _ in range(passes)]
    least = [
        [min(each) for each in zip(*calls, strict=True)] for calls in zip(*played, strict=True)
    ]
    handler, ref = (statistics.median(each) for each in zip(*least, strict=True))
    figures = {"MB": size, "REF ms": ref, "handler ms": handler, "memory / MB": grown}
    sys.stdout.write(json.dumps(figures))
    served["on_exit"](None)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
