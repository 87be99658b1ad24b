"""The figures of docs/promises.md: what a sync may cost, whatever a tenant has written."""

from typing import Final

MS_PER_KB, MS_PER_POD, MS_AT_MOST = 1.0, 1.0, 4_000.0
"""CPU for each KB of the request, for each pod asked for, and for all that stops."""
MB_PER_KB, MB_PER_POD, MB_AT_MOST = 0.06, 0.06, 160.0
"""Memory for each KB of the request, for each pod asked for, and for all that stops."""
STEPS_A_MS: Final = 0.02
"""Millions of steps (`tests/cost/steps.py`) that take about a millisecond of such a core.

Counted calls took 0.006 to 0.034; most of them, and the dearest ones, more than 0.02.
"""
NEW_PODS: Final = 512 << 10
"""TAPP_MAX_NEW_PODS_BYTES, a 64th of its default: it stops at the sizes that are tested."""


def steps_at_most(kb: float, pods: int) -> float:
    """Millions of steps that a request of this size may take."""
    return STEPS_A_MS * (MS_AT_MOST + MS_PER_KB * kb + MS_PER_POD * pods)


def mb_at_most(kb: float, pods: int) -> float:
    """Memory that it may take, in MB."""
    return MB_AT_MOST + MB_PER_KB * kb + MB_PER_POD * pods
