"""Fixtures of the browser tests, which need Chromium and are skipped without it."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

try:
    from playwright.sync_api import Browser, Page, sync_playwright
except ImportError:  # Playwright has no wheel for this machine
    sync_playwright = None

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")


@pytest.fixture(scope="session")
def browser() -> "Iterator[Browser]":
    """Yields one browser for all tests of a process."""
    if sync_playwright is None:
        pytest.skip("there is no Playwright here: `make install` brings it")
    if CHROMIUM is None:
        pytest.skip("there is no Chromium here: `apt-get install chromium` brings it")
    with sync_playwright() as playwright:
        found = playwright.chromium.launch(
            executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"]
        )
        yield found
        found.close()


@pytest.fixture
def page(browser: "Browser", tmp_path: Path, request: pytest.FixtureRequest) -> "Iterator[Page]":
    """Yields a new browser page with no cookies; an error in the page's scripts fails the test.

    Animations are off, because drawing them only takes time.
    """
    context = browser.new_context(
        viewport={"width": 1280, "height": 860},
        color_scheme="light",
        timezone_id="Asia/Tokyo",
        reduced_motion="reduce",
    )
    found = context.new_page()
    errors: list[str] = []
    found.on("pageerror", lambda error: errors.append(str(error)))
    found.set_default_timeout(120_000)
    failed = request.session.testsfailed
    yield found
    if request.session.testsfailed > failed:
        found.screenshot(path=tmp_path / "last.png")
    context.close()
    assert errors == []
