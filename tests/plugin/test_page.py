"""The page of a plan: well formed, without a script or a link, and what users wrote is escaped."""

from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from kubectl_tapp.forecast.forecast import Forecast
from kubectl_tapp.show.page import page
from kubectl_tapp.show.page_timeline import MAX_ROWS, grouped_rows
from tests.plugin.pages import HOSTILE, eventful, foreseen
from tests.plugin.standin import StandIn, kubectl_tapp
from tests.scenarios.apps import tapp
from tests.scenarios.life import Life

VOID = ("meta",)


class _Strict(HTMLParser):
    """Holds that every element is closed, and none loads or runs anything."""

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


def test_nothing_is_loaded_and_nothing_runs(everything: Forecast) -> None:
    found = read(everything)
    assert not found.seen & {"script", "link", "img", "iframe", "object", "form"}
    assert "url(" not in page(everything)
    assert "@import" not in page(everything)


def test_what_users_wrote_is_text(everything: Forecast) -> None:
    assert "<script>" not in page(everything)
    assert "<script>alert(1)</script>" in read(everything).text
    hostile = foreseen(tapp(replicas=1), tapp(replicas=1, templates={"0": HOSTILE}))
    assert "alert(1)" in read(hostile).text
    assert "<script>" not in page(hostile)


def test_it_says_everything_that_the_plan_says(everything: Forecast) -> None:
    text = read(everything).text
    for said in (*everything.stuck, *everything.notes, "spec.containers[web].env", "forces new"):
        assert said in text
    for outcome in ("waiting", "deleted", "created", "recreated", "in place"):
        assert outcome in text


def test_the_pictures_are_xml_with_a_name(everything: Forecast) -> None:
    text = page(everything)
    pictures = text.split("<svg")[1:]
    assert len(pictures) == 2
    for picture in pictures:
        root = ET.fromstring(f"<svg{picture.partition('</svg>')[0]}</svg>")
        assert root.get("role") == "img"
        assert root.get("aria-label")


def test_instances_that_do_the_same_share_a_row() -> None:
    strategy = {"updateStrategy": {"maxUnavailable": "10%"}}
    found = foreseen(tapp(replicas=60, **strategy), tapp("web:2", replicas=60, **strategy))
    assert [len(ids) for ids, _ in grouped_rows(found)] == [6] * 10
    assert len(grouped_rows(found)) < MAX_ROWS


def test_an_edit_that_is_refused_has_a_page_of_its_own(tmp_path: Path) -> None:
    web = StandIn(Life().apply(tapp(replicas=1)).world)
    web.failing["--dry-run=server"] = 'Error from server (Invalid): "a" <b> is not allowed'
    file = tmp_path / "plan.html"
    assert kubectl_tapp(web, "plan", "web", "--replicas", "2", "--html", str(file)).code == 1
    assert "&lt;b&gt; is not allowed" in file.read_text()


def test_a_file_that_cannot_be_written_is_one_sentence(tmp_path: Path) -> None:
    web = StandIn(Life().apply(tapp(replicas=1)).world)
    said = kubectl_tapp(web, "plan", "web", "--replicas", "2", "--html", str(tmp_path))
    assert said.code == 1
    assert said.err.startswith(f"error: {tmp_path} cannot be written")
