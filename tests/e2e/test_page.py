"""The page of a plan in a real browser: it is drawn, in both colour schemes, and says nothing.

It needs Debian's `chromium` on PATH; without it these tests are skipped.
"""

from __future__ import annotations

import shutil
import struct
import subprocess
import zlib
from pathlib import Path

import pytest

from kubectl_tapp.show.page import page
from tests.plugin.pages import eventful

BROWSERS = ("chromium", "chromium-browser", "google-chrome")
SCHEMES = {"light": (), "dark": ("--blink-settings=preferredColorScheme=0",)}
WIDTH, HEIGHT = 800, 1000

pytestmark = pytest.mark.e2e


@pytest.fixture(scope="module")
def browser() -> str:
    """A browser."""
    found = next(filter(None, map(shutil.which, BROWSERS)), None)
    if found is None:
        pytest.skip("no chromium on PATH")
    return found


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page of an edit with every fate."""
    path = tmp_path_factory.mktemp("page") / "plan.html"
    path.write_text(page(eventful()), encoding="utf-8")
    return path


def run(browser: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """The browser without a window."""
    always = ("--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars")
    command = [browser, *always, f"--window-size={WIDTH},{HEIGHT}", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=90, check=True)


def test_the_browser_reads_it_as_it_was_meant(browser: str, file: Path) -> None:
    """What the browser made of it still holds the whole page, and no script of a user's."""
    found = run(browser, "--enable-logging=stderr", "--dump-dom", file.as_uri())
    assert found.stdout.count("<svg") == 2
    assert found.stdout.rstrip().endswith("</html>")
    assert "<script" not in found.stdout
    assert "CONSOLE" not in found.stderr


@pytest.mark.parametrize("scheme", SCHEMES)
def test_it_is_drawn_in_both_colour_schemes(
    browser: str, file: Path, tmp_path: Path, scheme: str
) -> None:
    picture = tmp_path / "plan.png"
    run(browser, *SCHEMES[scheme], f"--screenshot={picture}", file.as_uri())
    pixels = rows_of(picture)
    background = pixels[HEIGHT - 1][:3]
    assert (sum(background) < 3 * 128) == (scheme == "dark")
    colours = {row[x : x + 3] for row in pixels[::4] for x in range(0, 3 * WIDTH, 12)}
    assert len(colours) > 12, "the timeline has no colours"


def rows_of(file: Path) -> list[bytes]:
    """The rows of a PNG of 8-bit RGB or RGBA, as RGB."""
    data, at, packed, channels = file.read_bytes(), 8, b"", 3
    while at < len(data):
        (size,) = struct.unpack(">I", data[at : at + 4])
        kind, body = data[at + 4 : at + 8], data[at + 8 : at + 8 + size]
        if kind == b"IHDR":
            width, height, _, colour = struct.unpack(">IIBB", body[:10])
            assert (width, height) == (WIDTH, HEIGHT)
            channels = {2: 3, 6: 4}[colour]
        elif kind == b"IDAT":
            packed += body
        at += 12 + size
    return [_rgb(row, channels) for row in _unfiltered(zlib.decompress(packed), channels)]


def _rgb(row: bytes, channels: int) -> bytes:
    if channels == 3:
        return row
    return bytes(value for number, value in enumerate(row) if number % 4 != 3)


def _unfiltered(raw: bytes, channels: int) -> list[bytes]:
    """PNG's filters taken back (the PNG specification, 9)."""
    size = WIDTH * channels
    rows, before = [], bytes(size)
    for start in range(0, len(raw), size + 1):
        how, row = raw[start], bytearray(raw[start + 1 : start + 1 + size])
        for x in range(size):
            left = row[x - channels] if x >= channels else 0
            corner = before[x - channels] if x >= channels else 0
            above = before[x]
            add = (0, left, above, (left + above) // 2, _paeth(left, above, corner))[how]
            row[x] = (row[x] + add) & 255
        before = bytes(row)
        rows.append(before)
    return rows


def _paeth(left: int, above: int, corner: int) -> int:
    guess = left + above - corner
    return min((left, above, corner), key=lambda each: abs(guess - each))
