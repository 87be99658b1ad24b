"""The page looks as it did: light, dark, narrow; 6 and 1,000 instances; a roll that is stuck."""

import json
from typing import TYPE_CHECKING

import pytest

pytest.importorskip("playwright", reason="Playwright has no wheel for this machine")

from tests.web.pictures import LOOKS, README, SCENES, looks, taken

if TYPE_CHECKING:
    from playwright.sync_api import Browser

MEAN, MOST = 8, 90
"""The distance from the noted colours that is allowed, of 255: of all cells, and of one."""


@pytest.mark.parametrize("name", SCENES)
def test_a_picture_looks_as_before(browser: "Browser", name: str) -> None:
    """From afar: `python -m tests.web.pictures` takes them anew where the page changed."""
    now = looks(browser, taken(browser, name))
    before = json.loads(LOOKS.read_text(encoding="utf-8"))[name]
    apart = [
        max(abs(one - other) for one, other in zip(*cells, strict=True))
        for cells in zip(now, before, strict=True)
    ]
    assert sum(apart) / len(apart) <= MEAN
    assert max(apart) <= MOST


def test_the_pictures_differ() -> None:
    """Or a blank page would look as before, too."""
    known = json.loads(LOOKS.read_text(encoding="utf-8"))
    assert set(known) == set(SCENES)
    assert len({json.dumps(each) for each in known.values()}) == len(known)
    dark, light = (known[each][0][0] for each in ("six-dark", "six-light"))
    assert light - dark > 128


def test_the_picture_of_the_readme_is_small() -> None:
    """A user waits for the page."""
    assert README.stat().st_size < 150_000
