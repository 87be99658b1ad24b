"""Tests that the page of a plan is well formed, has no scripts and links, and escapes texts of
users.
"""

from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from kubectl_tapp.forecast.forecast import Forecast
from kubectl_tapp.show.page import page
from kubectl_tapp.show.page_timeline import MAX_ROWS, grouped_rows
from tests.plugin.fake_kubectl import StandIn, kubectl_tapp
from tests.plugin.pages import HOSTILE, eventful, foreseen
from tests.scenarios.apps import tapp
from tests.scenarios.life import Life

VOID = ("meta",)


class _Strict(HTMLParser):
    """Parses a page, and checks that every element is closed and that none loads or runs anything.

    Attributes:
        open: the elements that are open.
        seen: the names of all elements so far.
        text: the text of the page, without its styles.
    """

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: set[str] = set()
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.add(tag)
        assert not [name for name, _ in attrs if name.startswith("on")]
        assert not [name for name, _ in attrs if name in ("src", "href", "action", "style")]
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, _attrs: list[tuple[str, str | None]]) -> None:
        self.seen.add(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] != "style":
            self.text += data


def read(forecast: Forecast) -> _Strict:
    parser = _Strict()
    parser.feed(page(forecast))
    assert parser.open == []
    return parser


@pytest.fixture(scope="module")
def everything() -> Forecast:
    return eventful()


def test_page_loads_and_runs_nothing(everything: Forecast) -> None:
    found = read(everything)
    assert not found.seen & {"script", "link", "img", "iframe", "object", "form"}
    assert "url(" not in page(everything)
    assert "@import" not in page(everything)


def test_texts_of_users_are_escaped(everything: Forecast) -> None:
    assert "<script>" not in page(everything)
    assert "<script>alert(1)</script>" in read(everything).text
    hostile = foreseen(tapp(replicas=1), tapp(replicas=1, templates={"0": HOSTILE}))
    assert "alert(1)" in read(hostile).text
    assert "<script>" not in page(hostile)


def test_page_has_everything_that_the_plan_has(everything: Forecast) -> None:
    text = read(everything).text
    for said in (
        *everything.stuck,
        *everything.notes,
        "spec.containers[web].env",
        "replaces the pods",
    ):
        assert said in text
    for outcome in ("waiting", "deleted", "created", "recreated", "in place"):
        assert outcome in text


def test_pictures_are_valid_xml_with_a_name(everything: Forecast) -> None:
    text = page(everything)
    pictures = text.split("<svg")[1:]
    assert len(pictures) == 2
    for picture in pictures:
        root = ET.fromstring(f"<svg{picture.partition('</svg>')[0]}</svg>")
        assert root.get("role") == "img"
        assert root.get("aria-label")


def test_instances_with_the_same_plan_share_a_row() -> None:
    strategy = {"updateStrategy": {"maxUnavailable": "10%"}}
    found = foreseen(tapp(replicas=60, **strategy), tapp("web:2", replicas=60, **strategy))
    assert [len(ids) for ids, _ in grouped_rows(found)] == [6] * 10
    assert len(grouped_rows(found)) < MAX_ROWS


def test_refused_edit_has_its_own_page(tmp_path: Path) -> None:
    web = StandIn(Life().apply(tapp(replicas=1)).world)
    web.failing["--dry-run=server"] = 'Error from server (Invalid): "a" <b> is not allowed'
    file = tmp_path / "plan.html"
    assert kubectl_tapp(web, "plan", "web", "--replicas", "2", "--html", str(file)).code == 1
    assert "&lt;b&gt; is not allowed" in file.read_text()


def test_unwritable_file_is_one_error(tmp_path: Path) -> None:
    web = StandIn(Life().apply(tapp(replicas=1)).world)
    said = kubectl_tapp(web, "plan", "web", "--replicas", "2", "--html", str(tmp_path))
    assert said.code == 1
    assert said.err.startswith(f"error: {tmp_path} cannot be written")
