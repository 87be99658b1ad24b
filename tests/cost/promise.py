"""Defines the limits of docs/guarantees.md for the cost of a sync, which hold for any content of a
TApp.
"""

from typing import Final

MS_PER_KB, MS_PER_POD, MS_AT_MOST = 1.0, 1.0, 4_000.0
"""CPU milliseconds that a sync may take for each KB of the request, for each requested pod, and in
addition once.
"""
MB_PER_KB, MB_PER_POD, MB_AT_MOST = 0.06, 0.06, 160.0
"""MB of memory that a sync may take for each KB of the request, for each requested pod, and in
addition once.
"""
STEPS_A_MS: Final = 0.02
"""Millions of steps (`tests/cost/steps.py`) that count as one millisecond of a core.

Measured calls took 0.006 to 0.034 million steps in a millisecond. Most calls, and the most
expensive ones, took more than 0.02.
"""
NEW_PODS: Final = 512 << 10
"""TAPP_MAX_NEW_PODS_BYTES, set to a 64th of its default so that the tested sizes reach this limit.
"""


def steps_at_most(kb: float, pods: int) -> float:
    """Returns how many million steps a sync may take with a request of `kb` KB for `pods` pods."""
    return STEPS_A_MS * (MS_AT_MOST + MS_PER_KB * kb + MS_PER_POD * pods)


def mb_at_most(kb: float, pods: int) -> float:
    """Returns how many MB of memory a sync may take with a request of `kb` KB for `pods` pods."""
    return MB_AT_MOST + MB_PER_KB * kb + MB_PER_POD * pods
