"""What processes cost: CPU and memory, as Linux counts them."""

from __future__ import annotations

import contextlib
import os
import re
import threading
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


def held_mib(pids: Iterable[int]) -> float:
    """What processes hold together now; what they share counts once, as in a container."""
    kib = 0
    for pid in pids:
        with contextlib.suppress(OSError):  # it has ended
            text = Path(f"/proc/{pid}/smaps_rollup").read_text()
            kib += sum(map(int, re.findall(r"^Pss:\s+(\d+)", text, re.MULTILINE)))
    return kib / 1024


class Peak:
    """The most that processes hold together, looked at twice a second."""

    def __init__(self, pids: list[int]) -> None:
        self._pids, self._most, self._over = pids, 0.0, threading.Event()
        self._thread = threading.Thread(target=self._look, name="peak", daemon=True)
        self._thread.start()

    def _look(self) -> None:
        while not self._over.wait(0.5):
            self._most = max(self._most, held_mib(self._pids))

    def end(self) -> float:
        """How much it was, in MiB; nobody looks any more."""
        self._over.set()
        self._thread.join()
        return self._most
