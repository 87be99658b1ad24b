"""What one call costs: CPU and peak memory of a process that does nothing else."""

import contextlib
import gc
import json
import os
import signal
import time
import tracemalloc
from collections.abc import Callable
from functools import cache
from pathlib import Path
from types import FrameType
from typing import Any, Final, NamedTuple

from hooks.service import metrics
from tests.cost.promise import unit
from tests.cost.worlds import Asked
from tests.fuzz.oracle import Service

Making = Callable[[], Asked]
NEW_PODS: Final = 4 << 20
"""TAPP_MAX_NEW_PODS_BYTES, an eighth of its default: it stops at the sizes that are tested."""
GIVEN_UP: Final = 12.0
"""CPU seconds after which a call is not waited for."""


class Cost(NamedTuple):
    """What a call cost.

    Attributes:
        kb: KB of the request.
        pods: pods that it asked for.
        ms: CPU, in milliseconds of a certain machine (`unit`).
        peak: MB that the process took at most, beyond the request.
        held: MB that are still held afterwards, beyond what the memo says.
        code: status code; 0 where it was given up.
        answer: KB of the answer.
    """

    kb: float
    pods: int
    ms: float
    peak: float
    held: float = 0.0
    code: int = 0
    answer: float = 0.0


@cache
def _service() -> Service:
    return Service(max_new_pods_bytes=NEW_PODS)


def cost_of(making: Making, *, trace: bool = False) -> Cost:
    """The cost of one call, in a process of its own.

    Args:
        making: makes the request, which costs nothing here.
        trace: whether to look at what is held afterwards, which costs CPU and memory itself.
    """
    _service()
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        os.close(reading)
        try:
            _report(writing, _measured(making, trace))
        finally:
            os._exit(1)
    os.close(writing)
    with os.fdopen(reading) as pipe:
        told = pipe.read()
    os.waitpid(child, 0)
    if not told:
        raise RuntimeError("the process that was measured has died")
    return Cost(*json.loads(told))


def _report(pipe: int, cost: Cost) -> None:
    os.write(pipe, json.dumps(cost).encode())
    os._exit(0)


class _GivenUpError(BaseException):
    """The call takes too long; no handler of ours catches this."""


def _give_up(_signal: int, _frame: FrameType | None) -> None:
    raise _GivenUpError


def _measured(making: Making, trace: bool) -> Cost:
    asked = making()
    service = _service()
    service.call("/sync", b"{}")
    metrics.MEMO_BYTES.set(0)  # another service of this process may have set it
    units = unit()
    gc.collect()
    if trace:
        tracemalloc.start()
    Path("/proc/self/clear_refs").write_text("5")
    before, said = _status("VmRSS"), _said(service)
    began, code, answer = time.process_time(), 0, b""
    signal.signal(signal.SIGPROF, _give_up)
    signal.setitimer(signal.ITIMER_PROF, GIVEN_UP)
    with contextlib.suppress(_GivenUpError):
        code, _, answer = service.call(asked.path, asked.body)
    signal.setitimer(signal.ITIMER_PROF, 0)
    took, peak = time.process_time() - began, _status("VmHWM") - before
    size, held = len(answer), 0.0
    if trace:
        answer = b""
        gc.collect()
        held = tracemalloc.get_traced_memory()[0] - (_said(service) - said)
    kb = len(asked.body) / 1024
    return Cost(kb, asked.pods, took / units, peak / 1e3, held / 1e6, code, size / 1024)


def _status(key: str) -> int:
    """KB, of this process."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith(f"{key}:")).split()[1])


def _said(service: Service) -> float:
    _, _, text = service.call("/metrics", b"", REQUEST_METHOD="GET")
    values: list[Any] = [
        line.split()[-1]
        for line in text.decode().splitlines()
        if line.startswith("tapp_hook_memo_bytes")
    ]
    return float(values[0]) if values else 0.0
