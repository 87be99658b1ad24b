"""What was tried beside other tools: each row by a test that exists, and each test in a row."""

from __future__ import annotations

import re
from pathlib import Path

from tests.contract.test_docs import ROOT, rows, section, text

PAGE = ROOT / "docs" / "beside.md"
TRIED = rows(section(ROOT / "tests" / "e2e" / "README.md", "Beside other tools"))
FILES = (
    "test_beside_injection.py",
    "test_beside_scaling.py",
    "test_beside_scheduling.py",
    "test_beside_security.py",
    "test_restore.py",
)
HOW = ("real", "played", "read")


def named_in(path: Path) -> set[str]:
    """The tests of a file."""
    return set(re.findall(r"(?m)^def (test_\w+)\(", text(path)))


def test_of_every_part_it_is_said_what_was_tried() -> None:
    parts = re.findall(r"(?m)^## (.+)$", text(PAGE))
    assert list(dict.fromkeys(part for part, *_ in TRIED)) == parts


def test_each_row_says_how_it_is_known_and_each_test_of_a_row_exists() -> None:
    """What was tried has a test; what was read may have none."""
    there = {name for path in (ROOT / "tests").rglob("test_*.py") for name in named_in(path)}
    for _, what, how, by in TRIED:
        assert how.split(" ")[0].rstrip(",") in HOW, what
        names = re.findall(r"`(test_\w+)`", by)
        assert set(names) <= there, what
        assert names or (how, by) == ("read", "-"), what


def test_each_test_of_these_neighbours_is_in_a_row() -> None:
    tests = {name for file in FILES for name in named_in(ROOT / "tests" / "e2e" / file)}
    named = {name for *_, by in TRIED for name in re.findall(r"`(test_\w+)`", by)}
    assert tests - named == set()
