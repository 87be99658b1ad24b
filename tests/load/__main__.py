"""Runs all load tests: `python -m tests.load [--seconds 300] [--connections 64]`.

Prints a JSON line with figures for each part. The exit code is 1 if a response was wrong, lost or
failed.
"""

import argparse
import json
import sys
from collections.abc import Callable
from typing import Any

from tests.load.faults import dawdlers, drain, probes_under_load, too_large
from tests.load.neighbors import beside, worst
from tests.load.storm import rolls, storm


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.load", description=__doc__)
    parser.add_argument("--seconds", type=float, default=300, help="of the storm")
    parser.add_argument("--connections", type=int, default=64)
    options = parser.parse_args()
    seconds, connections = min(options.seconds, 3600), min(options.connections, 256)
    parts: dict[str, Callable[[], dict[str, Any]]] = {
        "probes under load": probes_under_load,
        "slow and half-open clients": lambda: dawdlers(1000, 32, 20),
        "beside a slow tenant": lambda: beside(worst(), 40),
        "too large": too_large,
        "drain": drain,
        "rolls": lambda: rolls(16, 5),
        "storm": lambda: storm(connections, seconds),
    }
    bad = 0
    for name, part in parts.items():
        figures = part()
        sys.stdout.write(json.dumps({"part": name, **figures}) + "\n")
        sys.stdout.flush()
        bad += any(figures.get(key) for key in ("wrong", "lost", "failed", "syncs failed"))
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
