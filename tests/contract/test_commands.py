"""Each block of commands in the documentation is run by a test, or it is said why it cannot be."""

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


def test_every_block_is_run_once_or_it_is_said_why_not() -> None:
    """A block that is not for typing needs a language behind its fence: `yaml`, `json`, `text`."""
    accounted = Counter([*RUN, *NOT_HERE])
    assert [name for name, times in accounted.items() if times > 1] == []
    assert {*accounted} == {each.name for each in blocks()}


def test_what_is_not_run_is_little() -> None:
    """The list is for what takes another machine, and not for what is laborious."""
    assert len(NOT_HERE) < len(RUN) / 2
    for reason in NOT_HERE.values():
        for path in re.findall(r"tests/[\w/]+\.py", reason):
            assert (ROOT / path).exists(), reason


def test_every_recipe_is_short_and_applies_files_that_are_there() -> None:
    """Ten tasks; each begins with a file of examples/, and shows what is printed."""
    recipes = [each for each in blocks() if each.name in RECIPES]
    assert len(recipes) == 10
    for recipe in recipes:
        assert recipe.shows
        commands = [command for command, _ in recipe.steps]
        assert commands[0].startswith("kubectl apply -f examples/"), recipe.name
        for path in re.findall(r"examples/\S+\.yaml", " ".join(commands)):
            assert (ROOT / path).exists(), recipe.name


def test_what_is_typed_and_what_is_printed_are_told_apart() -> None:
    shown = Block("", "$ a \\\n  b\none\n\ntwo\n$ c\n")
    assert shown.steps == [("a \\\n  b", "one\n\ntwo\n"), ("c", "")]
    assert not Block("", "a $ b\n").shows


@pytest.mark.parametrize("page", PAGES)
def test_every_fence_of_a_page_is_seen(page: str) -> None:
    """As many as there are openings without a language."""
    fences = re.findall(r"(?m)^ *```(\S*)", (ROOT / page).read_text(encoding="utf-8"))
    found = [each for each in blocks() if each.name.startswith(f"{page}: ")]
    assert len(fences) % 2 == 0
    assert len(found) == sum(not opened for opened in fences[::2])
