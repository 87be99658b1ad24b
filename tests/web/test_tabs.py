"""Tests many tabs of a browser, which has only six connections to a server, and requests without a
response.
"""

import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import pytest

from demo.web import session_of
from kubectl_tapp.cluster.kubectl import CallResult
from kubectl_tapp.live import following
from kubectl_tapp.live.following import Follower
from tests.web.page_server import cluster, on_port, tapp, until

if TYPE_CHECKING:
    from playwright.sync_api import Page, Request, Route

TABS = 8
HIDE = """hidden => {
    Object.defineProperty(document, "hidden", {configurable: true, get: () => hidden});
    Object.defineProperty(document, "visibilityState", {
        configurable: true, get: () => hidden ? "hidden" : "visible"});
    document.dispatchEvent(new Event("visibilitychange"));
}"""
LIMIT = 90_000


def test_more_tabs_than_connections_load_follow_and_plan(page: "Page") -> None:
    """Opens eight tabs with a TApp and one with the list: all show plans and changes."""
    with on_port(cluster(tapp()), first="/default/shop") as served:
        page.goto(served.door.address)
        page.locator("#i5").wait_for(timeout=LIMIT)
        tabs = [page, *(page.context.new_page() for _ in range(TABS - 1))]
        for tab in tabs[1:]:
            tab.goto(f"{served.url}/#/default/shop")
        listed = page.context.new_page()
        listed.goto(f"{served.url}/#/")
        for tab in tabs:
            tab.locator("#i5").wait_for(timeout=LIMIT)
        listed.locator("#rows tbody tr").wait_for(timeout=LIMIT)
        for number, tab in enumerate(tabs):
            tab.locator("#bar").get_by_role("button", name="Kill").click()
            tab.locator('#dialog [name="ids"]').fill(str(number % 6))
            tab.get_by_role("button", name="Show the plan").click()
        for tab in tabs:
            tab.locator(".plan").get_by_text("1 deleted").first.wait_for(timeout=LIMIT)
        served.patch({"replicas": 7})
        for tab in tabs:
            tab.locator("#i6").wait_for(timeout=LIMIT)
        listed.locator("#rows").get_by_text("7/7").first.wait_for(timeout=LIMIT)


def test_hidden_tab_sends_few_requests_and_misses_nothing(page: "Page") -> None:
    """Hides a tab while the TApp changes: it sends almost no requests, and shows the change
    afterwards.

    The follower on the server keeps running, so the timeline is complete.
    """
    with on_port(cluster(tapp()), first="/default/shop") as served:
        page.goto(served.door.address)
        page.locator("#i5.ok").wait_for()
        asked: list[str] = []
        page.on("request", lambda request: asked.append(request.url))
        page.evaluate(HIDE, True)
        until(page, lambda: any("hidden=true" in each for each in asked))
        served.patch({"replicas": 7})
        count = len(asked)
        shown, of_shown = page.context.new_page(), list[str]()
        shown.on("request", lambda request: of_shown.append(request.url))
        shown.goto(f"{served.url}/#/default/shop")
        until(shown, lambda: sum("hidden=false" in each for each in of_shown) >= 6)
        assert len(asked) <= count + 1
        page.evaluate(HIDE, False)
        page.locator("#i6").wait_for()
        page.locator("#log").get_by_text("none →").wait_for()


def test_all_requests_get_their_response_at_once(page: "Page") -> None:
    """Loads the page: after that, no request is waiting for a response.

    A request that waits would keep one of the browser's connections from another tab.
    """
    with on_port(cluster(tapp()), first="/default/shop") as served:
        going: list[Request] = []

        def ends(request: "Request") -> None:
            going.remove(request)

        def begins(request: "Request") -> None:
            going.append(request)

        page.on("request", begins)
        page.on("requestfinished", ends)
        page.on("requestfailed", ends)
        page.goto(served.door.address)
        page.locator("#i5.ok").wait_for()
        until(page, lambda: not going)


def _unanswered(_: "Route") -> None:
    """Handles a request of the page by sending no response."""


def test_plan_without_a_response_times_out_with_an_error(page: "Page") -> None:
    """Sends a form that gets no response: the page says so after 10 seconds, and gives up after 40.

    The user can send the form again.
    """
    with on_port(cluster(tapp()), first="/default/shop") as served:
        page.clock.install()
        page.goto(served.door.address)
        page.locator("#i5").wait_for()
        page.route("**/api/plan", _unanswered)
        page.locator("#bar").get_by_role("button", name="Pause").click()
        said = page.locator("#dialog [role=alert]")
        page.clock.fast_forward(11_000)
        said.get_by_text("has not answered for 10 seconds. Still waiting").wait_for()
        page.clock.fast_forward(31_000)
        said.get_by_text("timed out").wait_for()
        assert "Nothing was written" in said.inner_text()
        page.unroute("**/api/plan")
        page.get_by_role("button", name="Show the plan").click()
        page.locator(".plan .headline").wait_for()


def test_change_without_a_response_is_reported_as_possibly_done(page: "Page") -> None:
    """Carries out a change that gets no response: the page says that it may have been made.

    Users have to check the TApp before they repeat the change.
    """
    with on_port(cluster(tapp()), first="/default/shop") as served:
        page.clock.install()
        page.goto(served.door.address)
        page.locator("#i5").wait_for()
        page.route("**/api/do", _unanswered)
        page.locator("#bar").get_by_role("button", name="Pause").click()
        page.get_by_role("button", name="Do it").click()
        page.clock.fast_forward(41_000)
        page.locator("#dialog [role=alert]").get_by_text("may still have been made").wait_for()
        page.get_by_role("button", name="Plan again").wait_for()


@pytest.mark.parametrize(
    ("place", "said"),
    [("**/api/tapp?*", "connection lost"), ("**/api/settings", "not connected")],
    ids=["the model", "the settings"],
)
def test_page_without_a_response_says_so_and_continues(page: "Page", place: str, said: str) -> None:
    """Gives the page no response for a while: it says that the connection is lost, and recovers.

    A server that hangs, or a machine that has slept, sends no response.
    """
    with on_port(cluster(tapp()), first="/default/shop") as served:
        page.clock.install()
        page.route(place, _unanswered)
        with page.expect_request(place):
            page.goto(served.door.address)
        page.clock.fast_forward(11_000)
        link = page.locator('#link[data-link="lost"]')
        link.get_by_text("timed out").wait_for()
        assert link.inner_text().startswith(said)
        page.unroute(place)
        page.clock.fast_forward(3_000)
        page.locator("#i5").wait_for()
        page.locator('#link[data-link="live"]').wait_for()


def test_slow_plan_does_not_block_other_tabs(page: "Page") -> None:
    standin = cluster(tapp())
    go, run = threading.Event(), standin.run
    with on_port(standin, first="/default/shop") as served:
        page.goto(served.door.address)
        page.locator("#i5.ok").wait_for()
        other = page.context.new_page()
        other.goto(f"{served.url}/#/default/shop")
        other.locator("#i5").wait_for()

        def hang(arguments: Sequence[str], stdin: str = "") -> CallResult:
            if "watch" not in str(arguments):
                go.wait(60)
            return run(arguments, stdin)

        standin.run = hang  # type: ignore[method-assign]
        page.locator("#bar").get_by_role("button", name="Pause").click()
        page.locator("#dialog").get_by_text("Waiting for the answer").wait_for()
        served.patch({"replicas": 7})
        other.locator("#i6").wait_for(timeout=LIMIT)
        go.set()
        page.locator(".plan").wait_for()


class Still(Follower):
    """Replaces the follower of a TApp, but starts no watches: the tests publish its data."""

    def _watch_and_look(self) -> None:
        self._stopped.wait(60)


def test_reader_gets_all_changes_after_its_version() -> None:
    """Publishes data and reads it by version: a reader gets each change after the version that it
    has.

    A reader without a version, or with an unknown version, gets all data.
    """
    session = session_of(cluster(tapp(replicas=1)))
    followed, other = Still(session), Still(session)
    try:
        followed.publish(a=1, rows={"x": 1, "y": 2})
        first = followed.since("")
        assert first["changes"] == [{"a": 1, "rows": {"x": 1, "y": 2}, "whole": True}]
        assert followed.since(first["version"])["changes"] == []
        followed.publish(a=2)
        followed.publish(rows={"x": 3})
        second = followed.since(first["version"])
        assert second["changes"] == [{"a": 2}, {"rows": {"x": 3, "y": None}}]
        assert other.since(second["version"])["changes"] == [{"whole": True}]
        for number in range(following._MAX_CHANGES):
            followed.publish(a=number)
        assert len(followed.since(second["version"])["changes"]) == following._MAX_CHANGES
        followed.publish(a="more")
        assert followed.since(second["version"])["changes"][0]["whole"] is True
    finally:
        followed.stop()
        other.stop()


@pytest.mark.parametrize("hidden", [False, True])
def test_follower_ends_some_time_after_its_last_reader(
    monkeypatch: pytest.MonkeyPatch, hidden: Any
) -> None:
    """Lets time pass after the last read: the follower of a visible page ends before that of a
    hidden page.

    Browsers run hidden pages only once a minute.
    """
    followed = Still(session_of(cluster(tapp(replicas=1))))
    try:
        followed.since("", hidden=hidden)
        now = following.time.monotonic()
        monkeypatch.setattr(following.time, "monotonic", lambda: now + 100)
        assert followed.is_read is hidden
        monkeypatch.setattr(following.time, "monotonic", lambda: now + 200)
        assert not followed.is_read
    finally:
        monkeypatch.undo()
        followed.stop()
