"""Measures the memory of one request: `python -m tests.unit.hooks.measure_memory WHAT`.

The request comes from standard input. With `held`, this is the memory that a request leaves in a
memo, and with `synced` the memory that its sync leaves. With `typed` and `loads` it is the peak
while the request is read with or without types. Each call is a process of its own, because threads
and objects that other tests have left in a process would count, too.
"""

import gc
import subprocess
import sys
import tracemalloc
from pathlib import Path

import orjson

from hooks.service.settings import Settings
from hooks.sync import sync
from hooks.wire.memo import Memo
from hooks.wire.request import Request
from tapp.declared.model import TApp
from tests.builders import NOW

ROOT = Path(__file__).parents[3]
READERS = {"typed": lambda body: Request(body, TApp, Memo(0)), "loads": orjson.loads}


def measured(what: str, body: bytes) -> list[int]:
    """Runs this module in a new process and returns the numbers that it prints; `what` is WHAT."""
    command = [sys.executable, "-m", "tests.unit.hooks.measure_memory", what]
    done = subprocess.run(command, input=body, capture_output=True, check=True, cwd=ROOT)
    return [int(each) for each in done.stdout.split()]


def held(body: bytes, *, synced: bool) -> list[int]:
    """Returns two numbers of bytes that stay in a memo after a request: the measured one, and the
    memo's estimate.

    If `synced` is True, the request is also decided, as in a sync.
    """
    options = Settings().options

    def use(memo: Memo) -> None:
        request = Request(body, TApp, memo)
        if synced:
            sync(request, options, NOW)

    use(Memo(0))
    memo = Memo(1 << 30)
    gc.collect()
    tracemalloc.start()
    before, _ = tracemalloc.get_traced_memory()
    use(memo)
    gc.collect()
    after, _ = tracemalloc.get_traced_memory()
    return [after - before, memo.size]


def peak(what: str, body: bytes) -> list[int]:
    """Returns the largest number of bytes that are in use at a time while `body` is read, in a
    list.

    `what` is a key of `READERS`.
    """
    READERS[what](body)  # the caches are filled from now on
    gc.collect()
    gc.disable()
    tracemalloc.start()
    READERS[what](body)
    return [tracemalloc.get_traced_memory()[1]]


if __name__ == "__main__":
    what, text = sys.argv[1], sys.stdin.buffer.read()
    print(*(peak(what, text) if what in READERS else held(text, synced=what == "synced")))  # noqa: T201
