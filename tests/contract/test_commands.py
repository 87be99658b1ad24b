"""Tests that each block of commands in the documentation is run by a test, or listed with a
reason.
"""

from __future__ import annotations

import re
from collections import Counter

import pytest

from tests.commands import (
    ALONE,
    BY_HELM,
    BY_KUBECTL,
    FROM_SOURCE,
    NOT_HERE,
    PAGES,
    RECIPES,
    ROOT,
    TUTORIAL,
    Block,
    blocks,
)

RUN = (*ALONE, *TUTORIAL, *BY_HELM, *BY_KUBECTL, *FROM_SOURCE)


def test_every_block_is_run_once_or_listed_with_a_reason() -> None:
    """Each block is in exactly one of the lists in tests/commands.py.

    A block that is not for typing needs a language at its fence: `yaml`, `json` or `text`.
    """
    accounted = Counter([*RUN, *NOT_HERE])
    assert [name for name, times in accounted.items() if times > 1] == []
    assert {*accounted} == {each.name for each in blocks()}


def test_most_blocks_are_run() -> None:
    """Fewer than half as many blocks are excluded as are run, and tests that a reason names
    exist.
    """
    assert len(NOT_HERE) < len(RUN) / 2
    for reason in NOT_HERE.values():
        for path in re.findall(r"tests/[\w/]+\.py", reason):
            assert (ROOT / path).exists(), reason


def test_every_recipe_starts_with_an_existing_example_and_shows_output() -> None:
    """Each guide in docs/how-to.md has one block of commands, which begins with `kubectl apply` of
    an example.
    """
    recipes = [each for each in blocks() if each.name in RECIPES]
    assert len(recipes) == len(
        re.findall(r"(?m)^## \d+\.", (ROOT / "docs" / "how-to.md").read_text())
    )
    for recipe in recipes:
        assert recipe.shows
        commands = [command for command, _ in recipe.steps]
        assert commands[0].startswith("kubectl apply -f examples/"), recipe.name
        for path in re.findall(r"examples/\S+\.yaml", " ".join(commands)):
            assert (ROOT / path).exists(), recipe.name


def test_commands_and_output_of_a_block_are_distinguished() -> None:
    shown = Block("", "$ a \\\n  b\none\n\ntwo\n$ c\n")
    assert shown.steps == [("a \\\n  b", "one\n\ntwo\n"), ("c", "")]
    assert not Block("", "a $ b\n").shows


@pytest.mark.parametrize("page", PAGES)
def test_every_fence_of_a_page_without_a_language_is_found(page: str) -> None:
    fences = re.findall(r"(?m)^ *```(\S*)", (ROOT / page).read_text(encoding="utf-8"))
    found = [each for each in blocks() if each.name.startswith(f"{page}: ")]
    assert len(fences) % 2 == 0
    assert len(found) == sum(not opened for opened in fences[::2])
