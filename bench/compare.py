"""`python -m bench.compare`: what a change did to the figures.

Either two files that `python -m bench --json` wrote, or a commit: that one is checked out into a
temporary directory and measured by this benchmark, with the same installed packages, before and
after the working tree. Everything is compared as a ratio, taken in the same minute.
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

from bench.inprocess import ROOT
from bench.tables import Row, shown

NOISE = 0.10
"""Changes below this share say little on a machine that does other things, too."""
RATIOS = {"stream": "/ REF", "http": "/ REF", "memory": "/ body"}
"""Part of the figures -> its column that is compared."""

Values = dict[tuple[Any, ...], float]


def main() -> None:
    """Reads the command line and runs."""
    parser = argparse.ArgumentParser(prog="python -m bench.compare", description=__doc__)
    parser.add_argument("base", help="a commit, or a JSON file")
    parser.add_argument("other", nargs="?", help="a JSON file (default: measure the working tree)")
    parser.add_argument("--sizes", nargs="+", default=["10", "100", "1000"], help="instances")
    parser.add_argument("--only", choices=RATIOS, default="stream")
    parser.add_argument("--passes", type=int, default=2, help="the best of so many runs counts")
    arguments = parser.parse_args()
    if arguments.other:
        base, other = (_read(Path(name)) for name in (arguments.base, arguments.other))
    else:
        options = ["--best", "--only", arguments.only, "--sizes", *arguments.sizes]
        base, other = _measured(arguments.base, options, arguments.passes)
    print(f"Less is better; below {NOISE:.0%} it may be noise\n\n{shown(changes(base, other))}")


def values(figures: dict[str, list[Row]]) -> Values:
    """The figures that are compared, by part, situation, pods and templates."""
    return {
        (part, row["what"], row["pods"], row.get("templates", 1)): row[ratio]
        for part, ratio in RATIOS.items()
        for row in figures.get(part, [])
    }


def changes(base: Values, other: Values) -> list[Row]:
    """The figures that both have, side by side."""
    titles = ("part", "what", "pods", "templates")
    return [
        {
            **dict(zip(titles, key, strict=True)),
            "base": base[key],
            "this": other[key],
            "change": f"{other[key] / base[key] - 1:+.0%}",
        }
        for key in base
        if key in other
    ]


def _read(file: Path) -> Values:
    return values(json.loads(file.read_text()))


def _measured(commit: str, options: list[str], passes: int) -> tuple[Values, Values]:
    """The best figures of the commit and of the working tree, measured in turns."""
    base: list[Values] = []
    other: list[Values] = []
    with _checkout(commit) as tree, tempfile.TemporaryDirectory() as place:
        file = Path(place) / "figures.json"
        command = [sys.executable, "-m", "bench", *options, "--json", str(file)]
        for _ in range(passes):
            for where, runs in ((tree, base), (ROOT, other)):
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
        for part in ("bench", "demo"):  # the benchmark, and what it starts the service with
            shutil.rmtree(tree / part, ignore_errors=True)
            shutil.copytree(ROOT / part, tree / part)
        yield tree


if __name__ == "__main__":
    main()
