"""Tests that a refresh of the page loses nothing that a person is doing, and repeats no text.

Screen readers read a live region again after each write to it, also if the text is the same.
"""

from itertools import pairwise
from typing import TYPE_CHECKING, Any

from demo.web import template
from tests.web.page_server import Served, cluster, on_port, tapp, until

if TYPE_CHECKING:
    from playwright.sync_api import Page

LIVE = "[role=status], [role=alert], [aria-live]"
OBSERVE = """live => {
    window.spoken = [];
    for (const each of document.querySelectorAll(live)) {
        new MutationObserver(() => spoken.push([each.id, each.textContent]))
            .observe(each, {subtree: true, childList: true, characterData: true});
    }
}"""
SELECT = """where => {
    getSelection().selectAllChildren(document.querySelector(where));
    window.chosen = String(getSelection());
    return chosen;
}"""


def spoken(page: "Page", region: str) -> list[str]:
    """Returns the texts that a live region had after each write, without the empty ones."""
    found: list[list[str]] = page.evaluate("window.spoken")
    return [text for id, text in found if id == region and text]


def responses(page: "Page", number: int) -> None:
    """Waits until the page has drawn `number` more changes of its model."""
    seen: list[Any] = []

    def note(answer: Any) -> None:
        if "/api/tapp" in answer.url and '"changes":[]' not in answer.text():
            seen.append(answer)

    page.on("requestfinished", lambda request: note(request.response()))
    until(page, lambda: len(seen) >= number)


def stuck(served: Served, page: "Page") -> None:
    """Starts a rollout that gets stuck, and waits until the page says so."""
    served.patch({"template": template("shop", "shop:broken")})
    page.locator("#stuck").get_by_text("The rollout is stuck").wait_for()


def test_stuck_rollout_is_announced_once_for_each_cause(page: "Page") -> None:
    """Lets the kubelet pull an image again and again: each sentence is announced once.

    The state of the container alternates, and so do the texts on the page.
    """
    with on_port(cluster(tapp()), first="/default/shop") as served:
        page.goto(served.door.address)
        page.locator("#i5.ok").wait_for()
        page.evaluate(OBSERVE, LIVE)
        stuck(served, page)
        responses(page, 8)
        alarms = spoken(page, "alarm")
        assert any("The rollout is stuck" in each for each in alarms)
        assert len(alarms) == len(set(alarms))
        headlines = spoken(page, "headline")
        assert all(one != other for one, other in pairwise(headlines))


def test_explanation_is_announced_once(page: "Page") -> None:
    """Opens the explanation of a broken instance: its message is announced, and not its history."""
    with on_port(cluster(tapp()), first="/default/shop") as served:
        page.goto(served.door.address)
        page.locator("#i5.ok").wait_for()
        stuck(served, page)
        page.evaluate(OBSERVE, LIVE)
        page.locator(".tile.bad").first.click()
        page.locator("#why").get_by_text("History").wait_for()
        responses(page, 6)
        told = spoken(page, "news")
        assert told[0].startswith("Why shop-")
        assert len(told) == len(set(told))
        assert not any("→" in each for each in told)
        inside = "it => it.closest('[role=status], [role=alert], [aria-live]') === null"
        assert page.locator("#why li").first.evaluate(inside)


def test_list_announces_no_count_that_is_the_same(page: "Page") -> None:
    with on_port(cluster(tapp(), tapp("ranks"))) as served:
        page.goto(served.door.address)
        page.locator("#rows tbody tr").nth(1).wait_for()
        page.evaluate(OBSERVE, LIVE)
        served.patch({"template": template("shop", "shop:broken")})
        page.locator("#rows .badge.bad").wait_for()
        assert page.locator("#count").inner_text() == "2 of 2 TApps, 12 instances"
        assert spoken(page, "count") == []


def test_menu_of_namespaces_is_not_touched_by_a_refresh(page: "Page") -> None:
    """Changes TApps while the menu may be open: browsers close a menu whose options are written."""
    with on_port(cluster(tapp(), tapp("ranks"))) as served:
        page.goto(served.door.address)
        page.locator("#rows tbody tr").nth(1).wait_for()
        page.evaluate("""() => {
            window.written = 0;
            new MutationObserver((all) => { written += all.length; }).observe(
                document.getElementById("namespace"),
                {subtree: true, childList: true, characterData: true, attributes: true});
        }""")
        served.patch({"replicas": 7})
        page.locator("#rows").get_by_text("7/7").first.wait_for()
        assert page.evaluate("window.written") == 0


def test_filter_stays_if_its_namespace_has_no_tapp_any_more(page: "Page") -> None:
    """Deletes the only TApp of the chosen namespace, and creates it again: the filter stays."""
    standin = cluster(tapp())
    standin.world.namespace("games")
    standin.world.apply(tapp("rooms", "games"))
    standin.world.settle()
    with on_port(standin) as served:
        page.goto(served.door.address)
        page.locator("#rows tbody tr").nth(1).wait_for()
        page.locator("#namespace").select_option("games")
        with served.standin.lock:
            standin.world.delete("TApp", "rooms", "games")
        page.locator("#count").get_by_text("0 of 1 TApps").wait_for()
        assert page.locator("#namespace").input_value() == "games"
        with served.standin.lock:
            standin.world.apply(tapp("rooms", "games"))
        page.locator("#rows tbody tr:visible").get_by_text("rooms").wait_for()
        assert page.locator("#rows tbody tr:visible").count() == 1
        page.locator("#namespace").select_option("")
        assert page.locator("#rows tbody tr:visible").count() == 2


def test_selected_text_stays_selected_while_other_words_change(page: "Page") -> None:
    """Selects the beginning of the headline, and scales the TApp: only the numbers change."""
    with on_port(cluster(tapp()), first="/default/shop") as served:
        page.goto(served.door.address)
        page.locator("#i5.ok").wait_for()
        begin = page.evaluate("""() => {
            const text = document.getElementById("headline").firstChild;
            getSelection().setBaseAndExtent(text, 0, text, 12);
            return String(getSelection());
        }""")
        served.patch({"replicas": 7})
        page.locator("#headline").get_by_text("7 of 7").wait_for()
        assert len(begin) == 12
        assert page.evaluate("String(getSelection())") == begin


def test_selected_line_of_the_history_stays_while_lines_come(page: "Page") -> None:
    """Selects a line in the history of an instance, and new lines come before it."""
    with on_port(cluster(tapp()), first="/default/shop") as served:
        page.goto(served.door.address)
        page.locator("#i5.ok").wait_for()
        served.patch({"template": template("shop", "shop:1.1")})
        page.locator(".run").get_by_text("shop:1.1").first.wait_for()
        page.locator("#i0.ok").click()
        page.locator("#why li").get_by_text("shop:1.1").last.wait_for()
        line = page.evaluate(SELECT, "#why ul:last-of-type li:last-child")
        before = page.locator("#why ul:last-of-type li").count()
        served.patch({"template": template("shop", "shop:1.2")})
        until(page, lambda: page.locator("#why ul:last-of-type li").count() > before)
        assert line
        assert page.evaluate("String(getSelection())") == line


def test_reason_of_a_button_without_an_effect_stays_during_a_refresh(page: "Page") -> None:
    """Presses a button of an instance that has no effect: its reason stays while it is true."""
    with on_port(cluster(tapp()), first="/default/shop") as served:
        page.goto(served.door.address)
        page.locator("#i0.ok").click()
        page.locator("#why").get_by_role("button", name="Start", exact=True).click(force=True)
        said = page.locator("#why .chosen")
        said.get_by_text("Start has no effect now").wait_for()
        served.patch({"template": template("shop", "shop:1.1")})
        page.locator("#why").get_by_text("shop:1.1, running").wait_for()
        assert "Start has no effect now" in said.inner_text()
        served.patch({"statuses": {"0": "Killed"}})
        until(page, lambda: said.inner_text() == "")


def test_typed_text_and_focus_stay_in_a_dialog_during_a_rollout(page: "Page") -> None:
    """Types into a form during a rollout and a restart of the server: text, caret, focus stay."""
    standin = cluster(tapp())
    with on_port(standin, first="/default/shop") as served:
        page.goto(served.door.address)
        page.locator("#i5.ok").wait_for()
        page.locator("#bar").get_by_role("button", name="Hold").click()
        page.locator('#dialog [name="ids"]').fill("3")
        page.locator('#dialog [name="reason"]').fill("a long reason")
        page.keyboard.press("ArrowLeft")
        served.patch({"replicas": 7, "template": template("shop", "shop:1.1")})
        page.locator("#i6.ok").wait_for()
        door, port = served.door, served.port
    page.locator('#link[data-link="lost"]').wait_for()
    with on_port(standin, port, door=door):
        page.locator('#link[data-link="live"]').wait_for()
        page.keyboard.type("X")
        assert page.locator('#dialog [name="reason"]').input_value() == "a long reasoXn"
        assert page.locator('#dialog [name="ids"]').input_value() == "3"


def test_dialog_is_closed_when_its_tapp_is_left(page: "Page") -> None:
    """Goes back to the list while a dialog is open: it would be about a TApp that is not shown."""
    with on_port(cluster(tapp(), tapp("ranks"))) as served:
        page.goto(served.door.address)
        page.locator('#rows a[href="#/default/shop"]').click()
        page.locator("#bar").get_by_role("button", name="Kill").click()
        page.locator("#dialog form").wait_for()
        page.go_back()
        page.locator("#rows tbody tr").nth(1).wait_for()
        assert not page.locator("#dialog").is_visible()


def test_timeline_and_details_stay_where_the_user_scrolled(page: "Page") -> None:
    """Scrolls the timeline, and new entries come above: the visible ones stay in their place."""
    with on_port(cluster(tapp(replicas=40)), first="/default/shop") as served:
        page.goto(served.door.address)
        page.locator("#i39.ok").wait_for()
        for number in range(12):
            served.patch({"statuses": {str(number): "Killed"}})
            page.locator(f"#i{number}.stopped").wait_for()
        page.locator("#history-box summary").click()
        top = page.evaluate("""() => {
            const log = document.getElementById("log");
            log.style.maxHeight = "6rem";
            log.scrollIntoView();
            log.scrollTop = 80;
            window.first = [...log.children].find((it) => it.offsetTop - log.offsetTop >= 80);
            window.place = () => first.offsetTop - log.offsetTop - log.scrollTop;
            return place();
        }""")
        served.patch({"statuses": {"20": "Killed"}})
        page.locator("#log").get_by_text("20:").first.wait_for()
        page.wait_for_timeout(200)
        assert abs(page.evaluate("place()") - top) < 2
        assert page.evaluate("document.getElementById('history-box').open")
