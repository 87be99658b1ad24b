"""`python -m bench`: how fast the service is, compared with parsing and writing the same JSON.

First requests as a cluster sends them, in this process (`bench/stream.py`), then over HTTP as
shipped, with what a worker needs of memory (`bench/over_http.py`).
Ratios can be compared between commits on one machine, milliseconds hardly.
"""

import argparse
import json
import os
import platform
import sys
from pathlib import Path
from typing import Any

from bench import over_http, stream
from bench.tables import shown

PARTS = {
    "stream": "Requests of one TApp as a cluster sends them, in process",
    "http": "One connection to gunicorn as shipped, with two workers",
    "memory": "Memory of a worker (resident MiB), one sync at a time",
}
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
    figures: dict[str, Any] = {"machine": machine(), "best": arguments.best}
    for part in [arguments.only] if arguments.only else PARTS:
        print(f"\n{PARTS[part]}\n", flush=True)
        figures[part] = measured(part, arguments)
        print(shown(figures[part]))
    print(f"\n{figures['machine']}")
    if arguments.json:
        arguments.json.parent.mkdir(parents=True, exist_ok=True)
        arguments.json.write_text(json.dumps(figures, indent=1) + "\n")


def measured(part: str, arguments: argparse.Namespace) -> list[dict[str, Any]]:
    """The rows of a part."""
    rounds, sizes = arguments.rounds, arguments.sizes
    if part == "stream":
        return list(stream.measure(rounds, sizes, best=arguments.best, say=say))
    if part == "http":
        return list(over_http.measure(rounds, sizes, say))
    return list(over_http.memory(max(sizes), say))


def say(what: str) -> None:
    """Tells a person who waits what is being done."""
    if sys.stderr.isatty():
        print(what, file=sys.stderr)


def machine() -> dict[str, Any]:
    """The machine and the versions that the figures were taken on."""
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
