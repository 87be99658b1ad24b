"""`python -m bench`: how fast the service is, compared with parsing and writing the same JSON.

First requests as a cluster sends them, in this process (`bench/stream.py`), then over HTTP as
shipped (`bench/over_http.py`), then the hook of pods (`bench/pod_status.py`).
Ratios can be compared between machines and commits, milliseconds cannot.
"""

import argparse
import json
import os
import platform
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from rich.console import Console

from bench import over_http, pod_status, stream, tables

PARTS = ("stream", "http", "pod-status")
SIZES = [10, 100, 1_000, 10_000]


def main() -> None:
    """Reads the command line and runs."""
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("--rounds", type=int, default=7, help="rounds per measurement (default 7)")
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES, help="instances")
    parser.add_argument("--only", choices=PARTS, help="one of the three parts")
    parser.add_argument(
        "--best",
        action="store_true",
        help="in process, minima of CPU time instead of medians: for a busy machine",
    )
    parser.add_argument("--json", type=Path, help="also write the figures to this file")
    arguments = parser.parse_args()
    console = Console(width=None if sys.stdout.isatty() else 150, highlight=False)
    figures: dict[str, Any] = {"machine": machine(), "best": arguments.best}

    def say(what: str) -> None:
        if sys.stderr.isatty():
            print(what, file=sys.stderr)

    for part, found in measured(arguments, say):
        figures[part] = found
        console.print(tables.table(part, found))
    console.print(figures["machine"])
    if arguments.json:
        arguments.json.parent.mkdir(parents=True, exist_ok=True)
        arguments.json.write_text(json.dumps(figures, indent=1) + "\n")


def measured(arguments: argparse.Namespace, say: Callable[[str], None]) -> Iterator[Any]:
    """(Key, figures) of all that is asked for, one after the other."""
    rounds, sizes = arguments.rounds, arguments.sizes
    parts = (arguments.only,) if arguments.only else PARTS
    if "stream" in parts:
        yield "stream", list(stream.measure(rounds, sizes, best=arguments.best, say=say))
    if "http" in parts:
        yield "overHttp", list(over_http.measure(sizes, say))
        yield "healthz", over_http.probes(max(sizes), say)
        yield "memory", over_http.memory(max(sizes), say)
    if "pod-status" in parts:
        yield "podStatus", pod_status.measure(rounds, say)


def machine() -> dict[str, Any]:
    """What the figures were taken on."""
    models = [
        line.partition(":")[2].strip()
        for line in Path("/proc/cpuinfo").read_text().splitlines()
        if line.startswith("model name")
    ]
    return {
        "cpus": os.cpu_count(),
        "model": models[0] if models else platform.machine(),
        "python": platform.python_version(),
        "load": round(os.getloadavg()[0], 1),
    }


if __name__ == "__main__":
    main()
