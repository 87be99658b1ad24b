"""Reads the pages of the documentation: their sections, tables and quoted words."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
INSTALL = ROOT / "docs" / "install.md"
SIZE = ROOT / "docs" / "sizing.md"
WATCH = ROOT / "docs" / "monitoring.md"
MEND = ROOT / "docs" / "troubleshooting.md"
DESIGN = ROOT / "docs" / "design.md"
PROMISES = ROOT / "docs" / "guarantees.md"
PROTOCOL = ROOT / "docs" / "endpoints.md"
WORD = re.compile(r"[A-Z][a-z]+(?:[A-Z][a-z]+)*")
"""Matches a word in CamelCase, such as the type of a condition or a reason."""


def text(page: Path) -> str:
    """Returns the text of a page."""
    return page.read_text(encoding="utf-8")


def section(page: Path, title: str) -> str:
    """Returns the text of a page's section, up to the next heading of the same or a higher level.

    Fails if the page has no heading with this title.
    """
    found = re.search(rf"^(#+) {re.escape(title)}\n", text(page), re.MULTILINE)
    assert found, f"{page.name} has no section {title!r}"
    rest = text(page)[found.end() :]
    return re.split(rf"^#{{1,{len(found[1])}}} ", rest, maxsplit=1, flags=re.MULTILINE)[0]


def rows(markdown: str) -> list[list[str]]:
    """Returns the cells of each row of all tables in a Markdown text, without the heads."""
    lines = [line for line in markdown.splitlines() if line.startswith("|")]
    rulers = {index for index, line in enumerate(lines) if set(line) <= set("|- ")}
    heads = {index - 1 for index in rulers}
    body = [line for index, line in enumerate(lines) if index not in rulers | heads]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in body]


def quoted(markdown: str) -> set[str]:
    """Returns all texts that stand in backticks."""
    return set(re.findall(r"`([^`\n]+)`", markdown))
