"""The figures of docs/promises.md: what a sync may cost, whatever a tenant has written."""

import json
import time
from statistics import median
from typing import Any, Final

MS_PER_KB, MS_PER_POD, MS_AT_MOST = 1.0, 1.0, 4_000.0
"""CPU for each KB of the request, for each pod asked for, and for all that stops."""
MB_PER_KB, MB_PER_POD, MB_AT_MOST = 0.06, 0.06, 160.0
"""Memory, likewise, beside the request itself."""


def ms_at_most(kb: float, pods: int) -> float:
    """CPU that a request of this size may take, in milliseconds of `unit`."""
    return MS_AT_MOST + MS_PER_KB * kb + MS_PER_POD * pods


def mb_at_most(kb: float, pods: int) -> float:
    """Memory that it may take, in MB."""
    return MB_AT_MOST + MB_PER_KB * kb + MB_PER_POD * pods


def unit() -> float:
    """CPU seconds of some work that is like a sync's: a millisecond where this was written.

    Machines differ, and how busy they are: costs are counted in this. The median of some, as a
    single one is off by a third now and then.
    """
    document = {f"k{n}": [{"a": str(n), "b": n, "c": None}] * 4 for n in range(40)}
    return median(_burst(document) for _ in range(5)) / _MILLISECONDS


def _burst(document: dict[str, Any]) -> float:
    began = time.process_time()
    for _ in range(20):
        json.loads(json.dumps(document))
    return time.process_time() - began


_MILLISECONDS: Final = 2.6
"""What that took on the machine whose figures docs/promises.md has."""
