"""Runs the process that counts the steps and memory of calls.

`python -m tests.cost.counting_process` reads pickled calls from standard input. The process forks
for each call, so that no call affects another one, and writes the pickled cost of the call to
standard output. Steps are defined in `steps.py`.
"""

import contextlib
import gc
import os
import pickle
import sys
import tracemalloc
from pathlib import Path
from typing import Any, BinaryIO, Final, NamedTuple

from tests.cost import steps

GIVEN_UP: Final = 150e6
"""Number of steps after which a call is aborted."""


class Counted(NamedTuple):
    """The cost of a call of the service.

    Attributes:
        steps: the number of steps that the service took.
        peak: the maximum memory of the process in KB, beyond its memory before the call.
        held: bytes that are still allocated after the call and that the memo does not count; 0 if
            this was not measured.
        code: the status code of the response; 0 if the call was aborted.
        answer: the size of the response in bytes.
    """

    steps: float
    peak: int
    held: float
    code: int
    answer: int


def _counted(service: Any, path: str, body: bytes, trace: bool) -> Counted:
    from hooks.service import metrics  # noqa: PLC0415 - `install` comes first

    service.call("/sync", b"{}")
    metrics.MEMO_BYTES.set(0)  # another service of this process may have set it
    gc.collect()
    memo_before = _memo_bytes(service)
    Path("/proc/self/clear_refs").write_text("5")
    before = _status("VmRSS")
    if trace:
        tracemalloc.start()
    began = steps.Count.total()
    steps.Count.most = steps.Count.more + GIVEN_UP
    code, answer = 0, b""
    with contextlib.suppress(steps.TooManyStepsError):
        code, _, answer = service.call(path, body)
    found, steps.Count.most = steps.Count.total() - began, float("inf")
    size, peak, held = len(answer), _status("VmHWM") - before, 0.0
    if trace:
        answer = b""
        gc.collect()
        held = tracemalloc.get_traced_memory()[0] - (_memo_bytes(service) - memo_before)
    return Counted(found, peak, held, code, size)


def _status(key: str) -> int:
    """Returns a value of /proc/self/status for this process, for example `VmRSS`, in KB."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith(f"{key}:")).split()[1])


def _memo_bytes(service: Any) -> float:
    """Returns the bytes that the service's metric reports for the memo."""
    _, _, text = service.call("/metrics", b"", REQUEST_METHOD="GET")
    lines = text.decode().splitlines()
    values = [line.split()[-1] for line in lines if line.startswith("tapp_hook_memo_bytes")]
    return float(values[0]) if values else 0.0


def main(calls: BinaryIO, results: BinaryIO) -> None:
    """Reads calls from `calls` until its end, and writes the cost of each call to `results`.

    Writes None for a call whose process has died.
    """
    steps.install()
    from tests.fuzz.oracle import Service  # noqa: PLC0415 - imports what is counted

    services: dict[str, Any] = {}
    while True:
        try:
            path, body, trace, settings = pickle.load(calls)
        except EOFError:
            return
        key = repr(settings)
        if key not in services:
            services[key] = Service(**settings)
        if child := os.fork():
            _, status = os.waitpid(child, 0)
            if status:
                pickle.dump(None, results)
                results.flush()
            continue
        code = 1
        try:
            pickle.dump(tuple(_counted(services[key], path, body, trace)), results)
            results.flush()
            code = 0
        finally:
            os._exit(code)


if __name__ == "__main__":
    main(sys.stdin.buffer, sys.stdout.buffer)
