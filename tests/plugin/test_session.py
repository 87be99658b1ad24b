"""Tests the recorded terminal sessions in the documentation."""

import re
import xml.etree.ElementTree as ET
from pathlib import Path

from tests.plugin.session import PICTURES, record

ROOT = Path(__file__).parents[2]


def lines(picture: Path) -> list[str]:
    """Returns the lines of text in an SVG picture of a terminal, from top to bottom."""
    rows: dict[float, list[tuple[float, str]]] = {}
    for element in ET.fromstring(picture.read_text()).iter("{http://www.w3.org/2000/svg}text"):
        if "x" in element.attrib and element.text and "clip-path" in element.attrib:
            place = float(element.attrib["y"])
            rows.setdefault(place, []).append((float(element.attrib["x"]), element.text))
    texts = ["".join(text for _, text in sorted(rows[place])) for place in sorted(rows)]
    return [text.replace("\xa0", " ").rstrip() for text in texts]


def test_session_in_the_documentation_still_has_the_same_output(tmp_path: Path) -> None:
    """Records the sessions again, and compares the commands and the last line with the pictures in
    the docs.
    """
    typed = record(tmp_path)
    page = (ROOT / "docs" / "kubectl-tapp.md").read_text()
    for name, commands in typed.items():
        kept, now = (where / f"kubectl-tapp-{name}.svg" for where in (PICTURES, tmp_path))
        shown = [line[2:] for line in lines(kept) if line.startswith("$ ")]
        assert shown == commands, "run: make session"
        assert lines(now)[-1] == lines(kept)[-1], "run: make session"
        assert f"img/kubectl-tapp-{name}.svg" in page


def test_pictures_load_nothing() -> None:
    for picture in PICTURES.glob("kubectl-tapp-*.svg"):
        links = re.findall(r"(?:https?:)?//[^\s\"<]+", picture.read_text())
        assert {link for link in links if "textualize" not in link} == {
            "http://www.w3.org/2000/svg"
        }
        assert "<script" not in picture.read_text()


def test_session_has_no_internal_errors() -> None:
    for picture in PICTURES.glob("kubectl-tapp-*.svg"):
        assert not any("fault of" in line for line in lines(picture))
