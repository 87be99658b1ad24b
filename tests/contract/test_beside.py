"""docs/beside.md says what was tried: each row by a test that exists, and each test in a row."""

from __future__ import annotations

import re
from pathlib import Path

from tests.contract.test_docs import ROOT, rows, text

PAGE = ROOT / "docs" / "beside.md"
FILES = (
    "test_beside_injection.py",
    "test_beside_scaling.py",
    "test_beside_scheduling.py",
    "test_beside_security.py",
    "test_restore.py",
)
HOW = ("real", "played", "read")
TABLES = re.findall(r"\| tried \| how \| by \|\n(?:\|.*\n)+", text(PAGE))


def named_in(path: Path) -> set[str]:
    """The tests of a file."""
    return set(re.findall(r"(?m)^def (test_\w+)\(", text(path)))


def test_every_part_says_what_was_tried() -> None:
    assert len(TABLES) == len(re.findall(r"(?m)^## ", text(PAGE)))


def test_each_row_says_how_it_is_known_and_each_test_of_a_row_exists() -> None:
    """What was tried has a test; what was read may have none."""
    there = {name for path in (ROOT / "tests").rglob("test_*.py") for name in named_in(path)}
    for table in TABLES:
        for what, how, by in rows(table):
            assert how.split(" ")[0].rstrip(",") in HOW, what
            names = re.findall(r"`(test_\w+)`", by)
            assert set(names) <= there, what
            assert names or (how, by) == ("read", "-"), what


def test_each_test_of_these_neighbours_is_in_a_row() -> None:
    tests = {name for file in FILES for name in named_in(ROOT / "tests" / "e2e" / file)}
    assert tests - set(re.findall(r"`(test_\w+)`", text(PAGE))) == set()
