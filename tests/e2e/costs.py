"""What processes cost: CPU and memory, as Linux counts them."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterable
from pathlib import Path

TICKS = os.sysconf("SC_CLK_TCK")


def cpu_seconds(pid: int | None) -> float:
    """What a process has used so far; not a number where there is none."""
    if pid is None:
        return float("nan")
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def with_children(pid: int) -> list[int]:
    """A process and those that it has started, as gunicorn its workers."""
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return [pid, *map(int, children)]


def forget_peaks(pids: Iterable[int]) -> None:
    """From now on the peaks of memory count anew, where the kernel lets us."""
    for pid in pids:
        with contextlib.suppress(OSError):
            Path(f"/proc/{pid}/clear_refs").write_text("5")


def peak_mib(pids: Iterable[int]) -> float:
    """The largest resident memory of each process since then, summed."""
    texts = [Path(f"/proc/{pid}/status").read_text() for pid in pids]
    found = [re.search(r"VmHWM:\s+(\d+)", text) for text in texts]
    return sum(int(each[1]) for each in found if each) / 1024
