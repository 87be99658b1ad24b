"""Tests that keyboard users keep the focus during refreshes, in Chromium and in Firefox."""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

import pytest

from demo.web import template
from tests.web.firefox import FIREFOX, Firefox, started
from tests.web.page_server import Served, cluster, on_port, tapp

if TYPE_CHECKING:
    from playwright.sync_api import Page

SECONDS = 120.0
IN_USE = "document.activeElement"


class Browser(Protocol):
    """The functions of a browser that these tests use."""

    def goto(self, url: str) -> object: ...

    def evaluate(self, expression: str) -> Any: ...

    def press(self, key: str) -> None: ...


@dataclass
class Chromium:
    """Adapts a page of Playwright to `Browser`."""

    page: "Page"

    def goto(self, url: str) -> None:
        self.page.goto(url)

    def evaluate(self, expression: str) -> Any:
        return self.page.evaluate(expression)

    def press(self, key: str) -> None:
        self.page.keyboard.press(key)


@pytest.fixture(scope="session")
def firefox(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Firefox]:
    """Yields a Firefox for all tests of a process; skips the tests if Firefox is not installed."""
    if FIREFOX is None:
        pytest.skip("there is no Firefox here: `apt-get install firefox-esr` brings it")
    with started(tmp_path_factory.mktemp("firefox")) as found:
        yield found


@pytest.fixture(params=["chromium", "firefox"])
def keyboard(request: pytest.FixtureRequest) -> Browser:
    """Returns a page in each of the browsers in turn."""
    if request.param == "chromium":
        return Chromium(request.getfixturevalue("page"))
    found: Firefox = request.getfixturevalue("firefox")
    return found


def until(browser: Browser, expression: str) -> None:
    """Waits until a JavaScript expression is true in the page; fails after two minutes."""
    end = time.monotonic() + SECONDS
    while time.monotonic() < end:
        if browser.evaluate(f"Boolean({expression})"):
            return
        time.sleep(0.1)
    where = browser.evaluate(f"{IN_USE}.outerHTML.slice(0, 300)")
    raise AssertionError(f"{expression} does not come about; the focus is on {where}")


def tab_to(browser: Browser, selector: str) -> None:
    """Presses Tab until the element with this CSS selector has the focus."""
    until(browser, f"document.querySelector('{selector}')")
    for _ in range(80):
        if browser.evaluate(f"{IN_USE}.matches('{selector}')"):
            return
        browser.press("Tab")
    raise AssertionError(f"Tab does not lead to {selector}")


def link(name: str) -> str:
    """Returns the CSS selector of a TApp's link in the list."""
    return f'#rows a[href="#/default/{name}"]'


def _delete(name: str) -> Callable[[Served], None]:
    def delete(served: Served) -> None:
        with served.standin.lock:
            served.standin.world.delete("TApp", name)

    return delete


def _add(name: str) -> Callable[[Served], None]:
    def add(served: Served) -> None:
        with served.standin.lock:
            served.standin.world.apply(tapp(name))

    return add


def _edit(name: str = "shop", **spec: Any) -> Callable[[Served], None]:
    return lambda served: served.patch(spec, name)


@dataclass(frozen=True)
class Case:
    """A refresh of the page while an element has the focus.

    Attributes:
        at: selector of the element to which the user moves with Tab.
        event: the change in the cluster.
        seen: JavaScript expression that is true when the page shows the change.
        first: path of the page.
        keys: keys to press before the user moves to `at`, and keys to press there.
        heir: selector of the element that has the focus afterwards; empty if it is the same one.
        spec: fields of the TApp's spec at the beginning.
    """

    at: str
    event: Callable[[Served], None]
    seen: str
    first: str = "/default/shop"
    keys: tuple[tuple[str, ...], tuple[str, ...]] = ((), ())
    heir: str = ""
    spec: dict[str, Any] = field(default_factory=dict)


def _text(selector: str, text: str) -> str:
    return f"document.querySelector('{selector}')?.textContent.includes('{text}')"


def _gone(selector: str) -> str:
    return f"!document.querySelector('{selector}')"


TO_TABLE = (("t",), ())
CASES = {
    "list: its row changes": Case(
        link("ranks"), _edit("ranks", replicas=7), _text("#rows", "7/7"), "/"
    ),
    "list: another row changes": Case(link("ranks"), _edit(replicas=7), _text("#rows", "7/7"), "/"),
    "list: its row moves down": Case(
        link("ranks"), _add("apples"), f"document.querySelector('{link('apples')}')", "/"
    ),
    "list: a row above goes": Case(link("shop"), _delete("ranks"), _gone(link("ranks")), "/"),
    "list: its row goes": Case(
        link("ranks"), _delete("ranks"), _gone(link("ranks")), "/", heir=link("shop")
    ),
    "list: its row goes, and was the last": Case(
        link("shop"), _delete("shop"), _gone(link("shop")), "/", heir=link("ranks")
    ),
    "table: its row changes": Case(
        '#table [data-key="3"] button', _edit(template=template("shop", "shop:1.1")),
        "[...document.querySelectorAll('#i3')].some((it) => it.dataset.letter === '0')",
        keys=TO_TABLE,
    ),
    "table: rows come": Case(
        '#table [data-key="5"] button', _edit(replicas=8), _text("#table", "7"), keys=TO_TABLE
    ),
    "table: its row goes": Case(
        '#table [data-key="5"] button', _edit(replicas=5), _gone('#table [data-key="5"]'),
        keys=TO_TABLE, heir='#table [data-key="4"] button',
    ),
    "grid: its tile changes": Case(
        "#i0", _edit(template=template("shop", "shop:1.1")), "document.querySelectorAll('.run')[1]"
    ),
    "grid: a line of the partition comes before it": Case(
        "#i5", _edit(template=template("shop", "shop:1.1"), updateStrategy={"partition": 2}),
        "document.querySelector('#grid .line')", keys=((), ("End",)),
    ),
    "grid: its tile goes": Case(
        "#i5", _edit(replicas=5), _gone("#i5"), keys=((), ("End",)), heir='#i4[tabindex="0"]'
    ),
    "why: what it says changes": Case(
        "#why .close", _edit(template=template("shop", "shop:1.1")),
        _text("#why", "shop:1.1"), keys=(("why",), ()),
    ),
    "why: its instance goes": Case(
        "#why .close", _edit(replicas=5), _text("#why", "no instance 5"), keys=(("why", "End"), ())
    ),
    "toolbar": Case('#bar [tabindex="0"]', _edit(replicas=7), "document.querySelector('#i6')"),
    "timeline": Case("details:first-of-type summary", _edit(replicas=7), _text("#log", "6:")),
}  # fmt: skip


def _before(browser: Browser, keys: tuple[str, ...]) -> None:
    """Presses keys before the user moves to the element.

    If the first key is "why", the other keys select a tile, and its explanation is opened.
    """
    if keys[:1] == ("why",):
        tab_to(browser, "#i0")
        for key in keys[1:]:
            browser.press(key)
        browser.press("Enter")
        return
    for key in keys:
        browser.press(key)


@pytest.mark.parametrize("name", CASES)
def test_focus_stays_on_its_element_during_a_refresh(keyboard: Browser, name: str) -> None:
    """Changes the cluster while an element has the focus: the element keeps it during the refresh.

    If the element is removed, its neighbor gets the focus.
    """
    case = CASES[name]
    with on_port(cluster(tapp(**case.spec), tapp("ranks")), first=case.first) as served:
        keyboard.goto(served.door.address)
        until(keyboard, f"document.querySelector('{link('ranks')}, #i5')")
        _before(keyboard, case.keys[0])
        tab_to(keyboard, case.at.replace("#i5", "#i0") if case.keys[1] else case.at)
        for key in case.keys[1]:
            keyboard.press(key)
        assert keyboard.evaluate(f"{IN_USE}.matches('{case.at}')")
        keyboard.evaluate(f"window.kept = {IN_USE}")
        case.event(served)
        until(keyboard, case.seen)
        if case.heir:
            until(keyboard, f"{IN_USE}.matches('{case.heir}')")
        else:
            assert keyboard.evaluate(f"{IN_USE} === window.kept")


def test_neighbor_gets_the_focus_of_a_row_that_a_filter_hides(page: "Page") -> None:
    """Shows only complete TApps, and starts a rollout of the focused one: its neighbor gets the
    focus.
    """
    browser = Chromium(page)
    with on_port(cluster(tapp(), tapp("ranks"))) as served:
        page.goto(served.door.address)
        page.locator("#state").select_option("ok")
        tab_to(browser, link("ranks"))
        served.patch({"template": template("ranks", "shop:broken")}, "ranks")
        until(browser, f"document.querySelector('{link('ranks')}').closest('tr').hidden")
        until(browser, f"{IN_USE}.matches('{link('shop')}')")


def test_restart_of_the_server_keeps_focus_selection_and_scroll_position(page: "Page") -> None:
    """Restarts the server: focus, selected text, selected tiles and scroll position stay.

    The page receives all data again, and keeps its elements.
    """
    standin = cluster(tapp(replicas=90), tapp("ranks"))
    browser = Chromium(page)
    with on_port(standin, first="/default/shop") as served:
        page.goto(served.door.address)
        tab_to(browser, "#i0")
        for key in ("ArrowRight", "Space"):
            page.keyboard.press(key)
        page.locator("#history-box summary").click()
        page.locator("#history tbody tr").wait_for()
        page.locator("#i1").focus()
        page.evaluate("""() => {
            window.kept = document.activeElement;
            getSelection().selectAllChildren(document.querySelector("#history td"));
            window.chosen = String(getSelection());
            scrollTo(0, 40);
            window.scrolled = scrollY;
        }""")
        door, port = served.door, served.port
    page.locator('#link[data-link="lost"]').wait_for()
    standin.world.patch("TApp", "shop", {"spec": {"replicas": 91}})
    with on_port(standin, port, door=door):
        page.locator("#i90").wait_for()
        assert browser.evaluate(f"{IN_USE} === window.kept")
        assert browser.evaluate("String(getSelection()) === window.chosen && window.chosen !== ''")
        assert browser.evaluate("document.getElementById('history-box').open")
        assert browser.evaluate("scrollY === window.scrolled")
        assert page.locator("#i1").get_attribute("aria-selected") == "true"


def test_focus_moves_with_the_table_and_with_links(page: "Page") -> None:
    """Switches between grid, table and list while an element has the focus, which is hidden then.

    The same instance, the heading or a row of the list gets the focus.
    """
    browser = Chromium(page)
    with on_port(cluster(tapp(), tapp("ranks"))) as served:
        page.goto(served.door.address)
        tab_to(browser, link("shop"))
        page.keyboard.press("Enter")
        until(browser, f"{IN_USE}.id === 'name'")
        page.locator("#i3").focus()
        page.keyboard.press("t")
        until(browser, f"{IN_USE}.matches('#table [data-key=\"3\"] button')")
        page.keyboard.press("t")
        until(browser, f"{IN_USE}.id === 'i3'")
        page.go_back()
        until(browser, f"{IN_USE}.matches('{link('shop')}')")


def test_focus_stays_in_a_refused_form(page: "Page") -> None:
    """Sends a form with an invalid field: the field keeps the focus, so that it can be corrected
    without a click.
    """
    browser = Chromium(page)
    with on_port(cluster(tapp()), first="/default/shop") as served:
        page.goto(served.door.address)
        page.locator("#bar").get_by_role("button", name="Kill").click()
        page.keyboard.type("9")
        page.keyboard.press("Enter")
        page.locator("#dialog .error").get_by_text("9").wait_for()
        assert browser.evaluate(f"{IN_USE}.name") == "ids"
