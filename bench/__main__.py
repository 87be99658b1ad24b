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
    figures: dict[str, Any] = {"machine": machine()}

    def say(what: str) -> None:
        if sys.stderr.isatty():
            print(what, file=sys.stderr)

    parts = (arguments.only,) if arguments.only else PARTS
    figures |= {"best": arguments.best}
    if "stream" in parts:
        figures["stream"] = list(
            stream.measure(arguments.rounds, arguments.sizes, best=arguments.best, say=say)
        )
        console.print(tables.stream(figures["stream"]))
    if "http" in parts:
        figures["overHttp"] = list(over_http.measure(arguments.sizes, say))
        console.print(tables.over_http(figures["overHttp"]))
        largest = max(arguments.sizes)
        figures["healthz"] = over_http.probes(largest, say)
        console.print(tables.probes(figures["healthz"]))
        figures["memory"] = over_http.memory(largest, say)
        console.print(tables.memory(figures["memory"]))
    if "pod-status" in parts:
        figures["podStatus"] = pod_status.measure(arguments.rounds, say)
        console.print(tables.pod_status(figures["podStatus"]))
    console.print(figures["machine"])
    if arguments.json:
        arguments.json.parent.mkdir(parents=True, exist_ok=True)
        arguments.json.write_text(json.dumps(figures, indent=1) + "\n")


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
