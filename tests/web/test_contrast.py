"""Tests that texts and symbols on the page have enough contrast."""

import re
from pathlib import Path

import pytest

STYLE = Path(__file__).parents[2] / "kubectl_tapp" / "web" / "static" / "style.css"
LEAST = 4.5
"""WCAG 2.2, 1.4.3 (AA), for small text."""
KINDS = ("ok", "old", "moving", "bad", "held", "kept", "stopped", "unknown")
Colour = tuple[float, ...]


def themes() -> dict[str, dict[str, str]]:
    """Returns theme (`light` or `dark`) -> name of a color -> its text in the style sheet."""
    light, dark = re.findall(r":root \{(.*?)\}", STYLE.read_text(encoding="utf-8"), re.DOTALL)[:2]
    read = {name: dict(re.findall(r"--(\w+): ([^;]+);", each)) for name, each in
            (("light", light), ("dark", dark))}  # fmt: skip
    return {"light": read["light"], "dark": read["light"] | read["dark"]}


def colour(text: str) -> Colour:
    """Returns red, green and blue of a color such as `#e0a100`, each from 0 to 255."""
    digits = text[1:] if len(text) == 7 else "".join(2 * each for each in text[1:])
    return tuple(int(digits[at : at + 2], 16) for at in (0, 2, 4))


def luminance(of: Colour) -> float:
    """Returns the relative luminance of a color as defined by WCAG."""
    parts = [each / 255 for each in of]
    red, green, blue = (
        each / 12.92 if each <= 0.04045 else ((each + 0.055) / 1.055) ** 2.4 for each in parts
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_texts_and_signs_on_a_tile_have_enough_contrast(theme: str, kind: str) -> None:
    """Computes the contrast of symbols, texts and dimmed texts with the background of a tile in
    each state.
    """
    found = themes()[theme]
    share = float(found["tint"].rstrip("%")) / 100
    sign, card = colour(found[kind]), colour(found["card"])
    behind = tuple(a * share + b * (1 - share) for a, b in zip(sign, card, strict=True))
    for name in (kind, "text", "dim"):
        pair = sorted((luminance(behind), luminance(colour(found[name]))))
        assert (pair[1] + 0.05) / (pair[0] + 0.05) >= LEAST, name
