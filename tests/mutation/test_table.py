"""The table of patches fits the code; the check itself is `python -m tests.mutation`."""

import ast
from pathlib import Path

import pytest

from tests.mutation.table import MUTATIONS, Mutation

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda mutation: mutation.breaks)
def test_each_patch_still_applies(mutation: Mutation) -> None:
    text = (ROOT / mutation.file).read_text()
    assert text.count(mutation.old) == 1
    assert mutation.old != mutation.new
    ast.parse(text.replace(mutation.old, mutation.new))


def test_there_are_enough_of_them() -> None:
    assert len(MUTATIONS) >= 25
    assert len({(item.file, item.old, item.new) for item in MUTATIONS}) == len(MUTATIONS)
