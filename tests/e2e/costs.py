"""Reads the CPU and memory of processes from Linux."""

from __future__ import annotations

import contextlib
import os
import re
import threading
from collections.abc import Iterable
from pathlib import Path

TICKS = os.sysconf("SC_CLK_TCK")


def cpu_seconds(pid: int | None) -> float:
    """Returns the CPU seconds of a process so far; NaN if `pid` is None."""
    if pid is None:
        return float("nan")
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def with_children(pid: int) -> list[int]:
    """Returns a process and its child processes, such as gunicorn's workers."""
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return [pid, *map(int, children)]


def held_mib(pids: Iterable[int]) -> float:
    """Returns the memory of processes in MiB (Pss: shared pages count once, as in a container)."""
    kib = 0
    for pid in pids:
        with contextlib.suppress(OSError):  # the process has ended
            text = Path(f"/proc/{pid}/smaps_rollup").read_text()
            kib += sum(map(int, re.findall(r"^Pss:\s+(\d+)", text, re.MULTILINE)))
    return kib / 1024


class Peak:
    """The maximum memory of processes together, measured twice a second."""

    def __init__(self, pids: list[int]) -> None:
        self._pids, self._most, self._over = pids, 0.0, threading.Event()
        self._thread = threading.Thread(target=self._look, name="peak", daemon=True)
        self._thread.start()

    def _look(self) -> None:
        while not self._over.wait(0.5):
            self._most = max(self._most, held_mib(self._pids))

    def end(self) -> float:
        """Stops measuring and returns the maximum in MiB."""
        self._over.set()
        self._thread.join()
        return self._most
