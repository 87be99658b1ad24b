"""Tests pictures of the page: light, dark and narrow, with 6 and 1,000 instances, and a stuck
rollout.
"""

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
def test_picture_has_the_recorded_colors(browser: "Browser", name: str) -> None:
    """Takes the picture of each scene, and compares the mean colors of its grid with the recorded
    ones.

    `python -m tests.web.pictures` records them after a change of the page.
    """
    now = looks(browser, taken(browser, name))
    before = json.loads(LOOKS.read_text(encoding="utf-8"))[name]
    apart = [
        max(abs(one - other) for one, other in zip(*cells, strict=True))
        for cells in zip(now, before, strict=True)
    ]
    assert sum(apart) / len(apart) <= MEAN
    assert max(apart) <= MOST


def test_pictures_of_different_scenes_differ() -> None:
    """Compares the recorded colors of different scenes; otherwise a blank page would be accepted,
    too.
    """
    known = json.loads(LOOKS.read_text(encoding="utf-8"))
    assert set(known) == set(SCENES)
    assert len({json.dumps(each) for each in known.values()}) == len(known)
    dark, light = (known[each][0][0] for each in ("six-dark", "six-light"))
    assert light - dark > 128


def test_picture_of_the_readme_is_small() -> None:
    assert README.stat().st_size < 250_000
