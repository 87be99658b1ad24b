"""Measures important syncs relative to parsing and writing the same JSON: `make bench`.

A stream is a series of requests of one TApp, as a cluster sends them. A stream runs through the
service in a new process (`play.py` says what is measured), and with `--against COMMIT` through that
commit, too. REF is the time that parsing the request and writing the response take. Ratios to REF
are comparable between machines and commits, milliseconds are not.
"""

# ruff: noqa: T201 - a command that prints

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from tests.builders import as_sent, crashing, running, with_meta
from tests.typical_requests import Life

Row = dict[str, Any]
ROOT = Path(__file__).parents[2]
SIZES = [10, 100, 1_000]
TYPICAL = 1_000
WARM = 2
"""The number of syncs at the beginning of a stream that do not count."""
CHANGES: tuple[Callable[[Any], Any], ...] = (
    partial(running, ready=False), running, crashing, running,
)  # fmt: skip
"""The changes of a pod, in turn: not ready, ready again, its container crashes, a new one runs."""


class Stream(NamedTuple):
    """A series of syncs of one TApp.

    Attributes:
        what: the difference between one sync and the next, as text.
        pods: the number of instances.
        bodies: returns the requests.
        target: the largest accepted ratio of the handler's time to REF; None for no limit.
    """

    what: str
    pods: int
    bodies: Callable[[], list[bytes]]
    target: float | None = None


def streams(sizes: list[int]) -> Iterator[Stream]:
    """Yields the streams for TApps of these sizes, and further streams for the usual size."""
    for n in sizes:
        yield Stream("one pod changed", n, partial(one_changed, n), {TYPICAL: 0.4}.get(n))
        yield Stream("first request", n, partial(first, n), {TYPICAL: 2.5}.get(n))
    if TYPICAL in sizes:
        yield Stream("middle of a roll", TYPICAL, partial(rolling, TYPICAL), 0.7)
        many, each = (partial(one_changed, TYPICAL, templates=300),
                      partial(one_changed, TYPICAL, values=True))  # fmt: skip
        yield Stream("one pod changed, 300 templates", TYPICAL, many, 0.45)
        yield Stream("one pod changed, a value each", TYPICAL, each, 0.52)


def one_changed(n: int, **ways: Any) -> list[bytes]:
    """Returns requests of a TApp with `n` instances that need no action; one pod differs in each.

    `ways` are arguments of `Life`.
    """
    life, bodies = Life(n, **ways).settle(), []
    for turn in range(WARM + len(CHANGES)):
        bodies.append(as_sent(life.request()))
        life.sync()
        changed = CHANGES[turn % len(CHANGES)](life.pod(n // 2))
        life.modify(n // 2, lambda _: with_meta(changed, resourceVersion=f"300{turn}"))  # noqa: B023 - at once
    return bodies


def first(n: int) -> list[bytes]:
    """Returns requests of different TApps with `n` instances that need no action, so that all pods
    are new.
    """
    return [as_sent(Life(n).settle().request()) for _ in range(WARM + 1)]


def rolling(n: int) -> list[bytes]:
    """Returns requests of a rollout of `n` instances: half of them are updated, 2% of all between
    two syncs.
    """
    life, bodies = Life(n).settle().half_rolled(), []
    life.change(updateStrategy={"maxUnavailable": "2%"})
    for _ in range(WARM + len(CHANGES)):
        life.sync()
        life.kubelet()
        bodies.append(as_sent(life.request()))
    return bodies


def measured(place: Path, tree: Path, passes: int) -> Row:
    """Measures the requests in the directory `place` with the service in the directory `tree`.

    Each request is sent `passes` times. The process has the malloc settings of the image.
    """
    command = [sys.executable, "-P", str(Path(__file__).with_name("play.py")), str(place)]
    malloc = dict(re.findall(r"(MALLOC_\w+)=(\S+)", (ROOT / "Dockerfile").read_text()))
    done = subprocess.run(
        [*command, str(passes), str(WARM)],
        cwd=tree, env={**os.environ, **malloc, "PYTHONPATH": str(tree)},
        check=False, stdout=subprocess.PIPE,
    )  # fmt: skip
    if done.returncode:
        raise SystemExit(f"the benchmark does not run with {tree}")
    figures: Row = json.loads(done.stdout)
    return {**figures, "/ REF": figures["handler ms"] / figures["REF ms"]}


def export(commit: str, place: Path) -> None:
    """Writes the files of a commit into the directory `place`."""
    archive = ["git", "-C", str(ROOT), "archive", commit]
    packed = subprocess.run(archive, check=False, stdout=subprocess.PIPE)
    if packed.returncode:
        raise SystemExit(f"there is no commit {commit!r} to compare with")
    subprocess.run(["tar", "-x", "-C", place], input=packed.stdout, check=True)


def shown(row: Row) -> str:
    """Returns a line of the table for the figures of one stream."""
    form = {float: ",.2f", int: ","}
    return f"| {' | '.join(format(each, form.get(type(each), '')) for each in row.values())} |"


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.bench", description=__doc__)
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES, help="instances")
    parser.add_argument("--passes", type=int, default=3, help="the least of so many counts")
    parser.add_argument("--against", metavar="COMMIT", help="play them through that commit, too")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="tapp-bench-") as directory:
        other = Path(directory) / "tree"
        if options.against:
            other.mkdir()
            export(options.against, other)
        for number, stream in enumerate(streams(options.sizes)):
            place = Path(directory) / str(number)
            place.mkdir()
            for turn, body in enumerate(stream.bodies()):
                (place / str(turn)).write_bytes(body)
            row: Row = {"what": stream.what, "pods": stream.pods}
            row |= measured(place, ROOT, options.passes)
            if options.against:
                row["before"] = measured(place, other, options.passes)["/ REF"]
            else:
                row["target"] = f"<= {stream.target}" if stream.target else ""
            if not number:
                print(f"| {' | '.join(row)} |\n|{'---|' * len(row)}")
            print(shown(row), flush=True)
    print(f"\n{os.cpu_count()} CPUs, load {os.getloadavg()[0]:.0f}")


if __name__ == "__main__":
    main()
