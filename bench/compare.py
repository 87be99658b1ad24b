"""`python -m bench.compare`: what a change did to the figures.

Either two files that `python -m bench --json` wrote, or a commit: that one is checked out into a
temporary directory and measured by this benchmark, with the same installed packages, before and
after the working tree. Everything is compared as a ratio to REF, taken in the same minute.
"""

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from bench.tables import RATIOS

ROOT = Path(__file__).parents[1]
NOISE = 0.10
"""Changes below this share say little on a machine that does other things, too."""

Figures = dict[str, Any]
Values = dict[tuple[str, ...], float]


def main() -> None:
    """Reads the command line and runs."""
    parser = argparse.ArgumentParser(prog="python -m bench.compare", description=__doc__)
    parser.add_argument("base", help="a commit, or a JSON file")
    parser.add_argument("other", nargs="?", help="a JSON file (default: measure the working tree)")
    parser.add_argument("--sizes", nargs="+", default=["10", "100", "1000"], help="instances")
    parser.add_argument("--only", choices=("stream", "http"), default="stream")
    parser.add_argument("--passes", type=int, default=2, help="the best of so many runs counts")
    arguments = parser.parse_args()
    if arguments.other:
        base, other = (_read(Path(name)) for name in (arguments.base, arguments.other))
    else:
        options = ["--best", "--only", arguments.only, "--sizes", *arguments.sizes]
        base, other = _measured(arguments.base, options, arguments.passes)
    Console(width=None if sys.stdout.isatty() else 120, highlight=False).print(changes(base, other))


def values(figures: Figures) -> Values:
    """What is compared, by what it is: ratios, and the service's memory."""
    found: Values = {}
    for row in figures.get("stream", []):
        what = f"{row['stream']}, {row['templates']} templates"
        name, _ = RATIOS[row["against"]]
        measure = "bytes a pod" if row["against"] == "bytes" else row["against"]
        found["stream", f"{row['pods']:,}", what, measure] = row[name]
    for row in figures.get("overHttp", []):
        key = ("HTTP", f"{row['instances']:,}", f"{row['connections']} connections")
        found[*key, "p50 / REF"] = row["p50ToRef"]
    for row in figures.get("memory", []):
        key = ("memory", f"{row['instances']:,}", row["situation"])
        found[*key, "(peak - idle) / body"] = row["peakOverIdleToBody"]
    if "podStatus" in figures:
        row = figures["podStatus"]
        found["HTTP", "1", "/pod-status", "time / echo"] = row["timeToEcho"]
    return found


def changes(base: Values, other: Values) -> Table:
    """What both have, side by side."""
    table = Table(title="Changes (less is better)")
    for name in ("part", "instances", "what", "measure"):
        table.add_column(name)
    for name in ("base", "this", "change"):
        table.add_column(name, justify="right")
    for key in [key for key in base if key in other]:
        share = other[key] / base[key] - 1 if base[key] else 0.0
        change = f"{share:+.0%}"
        if abs(share) >= NOISE:
            change = f"[bold red]{change}[/]" if share > 0 else f"[green]{change}[/]"
        table.add_row(*key, f"{base[key]:.3f}", f"{other[key]:.3f}", change)
    return table


def _read(file: Path) -> Values:
    return values(json.loads(file.read_text()))


def _measured(commit: str, options: list[str], passes: int) -> tuple[Values, Values]:
    """The best figures of the commit and of the working tree, measured in turns."""
    base: list[Values] = []
    other: list[Values] = []
    with _checkout(commit) as tree, tempfile.TemporaryDirectory() as place:
        for turn in range(passes):
            for where, runs in ((tree, base), (ROOT, other)):
                file = Path(place) / f"{turn}-{where.name}.json"
                command = [sys.executable, "-m", "bench", *options, "--json", str(file)]
                done = subprocess.run(command, cwd=where, check=False, stdout=subprocess.DEVNULL)  # noqa: S603
                if done.returncode:
                    what = "the working tree" if where == ROOT else f"commit {commit!r}"
                    raise SystemExit(f"the benchmark does not run with {what}")
                runs.append(_read(file))
    return _best(base), _best(other)


def _best(runs: list[Values]) -> Values:
    return {key: min(run[key] for run in runs) for key in runs[0]}


@contextmanager
def _checkout(commit: str) -> Iterator[Path]:
    """The commit's tree with this benchmark in it."""
    with tempfile.TemporaryDirectory(prefix="tapp-bench-") as place:
        tree, packed = Path(place) / "tree", Path(place) / "tree.tar"
        archive = ["git", "-C", str(ROOT), "archive", f"--output={packed}", commit]
        if subprocess.run(archive, check=False).returncode:  # noqa: S603 - the user's own commit
            raise SystemExit(f"there is no commit {commit!r} to compare with")
        shutil.unpack_archive(packed, tree)
        shutil.rmtree(tree / "bench", ignore_errors=True)
        shutil.copytree(ROOT / "bench", tree / "bench")
        yield tree


if __name__ == "__main__":
    main()
