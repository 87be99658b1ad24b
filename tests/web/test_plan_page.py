"""Tests the page of a plan in a real browser: complete, without messages, in both color schemes."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import pytest

from kubectl_tapp.show.page import page as written
from tests.plugin.pages import eventful

if TYPE_CHECKING:
    from playwright.sync_api import Browser

BACKGROUND = "getComputedStyle(document.body).backgroundColor"
FILLS = "new Set([...document.querySelectorAll('svg *')].map(e => getComputedStyle(e).fill)).size"


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_page_of_a_plan_is_shown_without_scripts_and_errors(
    browser: Browser, tmp_path: Path, scheme: Literal["light", "dark"]
) -> None:
    """Opens the page of a plan with every outcome: it has two colored pictures, no scripts, and
    causes no errors.
    """
    file = tmp_path / "plan.html"
    file.write_text(written(eventful()), encoding="utf-8")
    context = browser.new_context(color_scheme=scheme)
    found, said = context.new_page(), list[str]()
    found.on("console", lambda message: said.append(message.text))
    found.on("pageerror", lambda error: said.append(str(error)))
    found.goto(file.as_uri())
    assert found.locator("svg").count() == 2
    assert found.locator("script").count() == 0
    shade = sum(map(int, re.findall(r"\d+", found.evaluate(BACKGROUND))[:3]))
    assert (shade < 3 * 128) == (scheme == "dark")
    assert found.evaluate(FILLS) > 5, "the timeline has no colours"
    context.close()
    assert said == []
