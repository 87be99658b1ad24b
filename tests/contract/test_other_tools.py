"""Tests the table of trials with other tools: each row names existing tests, and no test is
missing.
"""

from __future__ import annotations

import re
from pathlib import Path

from tests.contract.pages import ROOT, rows, section, text

PAGE = ROOT / "docs" / "other-tools.md"
TRIED = rows(section(ROOT / "tests" / "e2e" / "README.md", "Beside other tools"))
FILES = (
    "test_other_tools_injection.py",
    "test_other_tools_scaling.py",
    "test_other_tools_scheduling.py",
    "test_other_tools_security.py",
    "test_restore.py",
)
HOW = ("real", "played", "read")


def names_of_tests(path: Path) -> set[str]:
    """Returns the names of the test functions in a file."""
    return set(re.findall(r"(?m)^def (test_\w+)\(", text(path)))


def test_table_has_every_section_of_the_page() -> None:
    parts = re.findall(r"(?m)^## (.+)$", text(PAGE))
    assert list(dict.fromkeys(part for part, *_ in TRIED)) == parts


def test_each_row_has_a_method_and_an_existing_test() -> None:
    """Each row of the table has a known method and names existing tests.

    Only a row whose method is reading the source code may have no test.
    """
    there = {name for path in (ROOT / "tests").rglob("test_*.py") for name in names_of_tests(path)}
    for _, what, how, by in TRIED:
        assert how.split(" ")[0].rstrip(",") in HOW, what
        names = re.findall(r"`(test_\w+)`", by)
        assert set(names) <= there, what
        assert names or (how, by) == ("read", "-"), what


def test_each_test_of_other_tools_is_in_a_row() -> None:
    tests = {name for file in FILES for name in names_of_tests(ROOT / "tests" / "e2e" / file)}
    named = {name for *_, by in TRIED for name in re.findall(r"`(test_\w+)`", by)}
    assert tests - named == set()
