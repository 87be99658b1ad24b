"""The benchmark: requests differ in what their streams say, and the figures are shown."""

import json
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from itertools import pairwise
from pathlib import Path

import pytest

from tests.bench import __main__ as bench
from tests.bench.__main__ import ROOT, first, one_changed, rolling

STREAMS: dict[str, tuple[Callable[[], list[bytes]], int]] = {
    "one changed": (partial(one_changed, 20), 1),
    "many templates": (partial(one_changed, 20, templates=9), 1),
    "a value each": (partial(one_changed, 20, values=True), 1),
    "first request": (partial(first, 20), 20),
    "middle of a roll": (partial(rolling, 100), 2),
}


@pytest.mark.parametrize(("bodies", "changed"), STREAMS.values(), ids=STREAMS)
def test_so_many_pods_differ_from_the_request_before(
    bodies: Callable[[], list[bytes]], changed: int
) -> None:
    """Else a figure would not be of what its row names."""
    found = [json.loads(body)["children"]["Pod.v1"] for body in bodies()]
    for before, after in pairwise(found[1:]):
        assert sum(before[name] != pod for name, pod in after.items()) == changed


def test_what_is_measured_is_a_table() -> None:
    """A row for each stream, with figures above nothing."""
    command = [sys.executable, "-m", "tests.bench", "--sizes", "10", "--passes", "1"]
    shown = subprocess.run(command, check=True, cwd=ROOT, stdout=subprocess.PIPE, text=True).stdout
    head, _, *rows = [line.strip("| ").split(" | ") for line in shown.split("\n\n")[0].splitlines()]
    assert head == ["what", "pods", "MB", "REF ms", "handler ms", "memory / MB", "/ REF", "target"]
    assert [row[0] for row in rows] == ["one pod changed", "first request"]
    assert all(float(each) > 0 for row in rows for each in row[1:7])


def test_another_commits_files_are_those_of_its_archive(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the working tree has beside them is not measured, and a commit has to be there."""
    tree, there = tmp_path / "tree", tmp_path / "there"
    for place in (tree, there):
        place.mkdir()
    (tree / "a").write_text("committed")
    git = ["git", "-C", str(tree), "-c", "user.name=a", "-c", "user.email=a@example.com"]
    for words in (["init", "-q"], ["add", "."], ["commit", "-q", "-m", "a"]):
        subprocess.run([*git, *words], check=True)
    (tree / "a").write_text("changed")
    monkeypatch.setattr(bench, "ROOT", tree)
    bench.export("HEAD", there)
    assert (there / "a").read_text() == "committed"
    with pytest.raises(SystemExit, match="no commit 'none'"):
        bench.export("none", there)
