"""Tests the page while kubectl is slow, fails, or is not answered at all.

No request may keep one of the browser's six connections while kubectl runs, no late response may
replace newer content, and the page has to say that it waits.
"""

import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest

from demo.web import session_of, template
from kubectl_tapp.base.errors import CommandError
from kubectl_tapp.cluster.kubectl import CallResult
from kubectl_tapp.live import following
from kubectl_tapp.live.following import Follower
from kubectl_tapp.web.work import Work
from tests.plugin.fake_kubectl import StandIn
from tests.web.page_server import cluster, on_port, tapp

if TYPE_CHECKING:
    from playwright.sync_api import Page, Request

CONNECTIONS = 6  # Connections that a browser opens to one server


@contextmanager
def hanging(standin: StandIn, word: str = "") -> Iterator[threading.Event]:
    """Lets calls of kubectl whose arguments contain `word` wait for the event that it yields.

    Watches go on. At the end of the block the calls go on, too.
    """
    go, run = threading.Event(), standin.run

    def wait(arguments: Sequence[str], stdin: str = "") -> CallResult:
        if "watch" not in str(arguments) and word in str(arguments):
            go.wait(60)
        return run(arguments, stdin)

    standin.run = wait  # type: ignore[method-assign]
    try:
        yield go
    finally:
        go.set()
        standin.run = run  # type: ignore[method-assign]


def test_slow_plans_of_six_tabs_leave_connections_to_a_seventh(page: "Page") -> None:
    """Lets a plan hang in as many tabs as the browser has connections: another tab still works."""
    standin = cluster(tapp())
    with on_port(standin, first="/default/shop") as served:
        page.goto(served.door.address)
        tabs = [page, *(page.context.new_page() for _ in range(CONNECTIONS - 1))]
        for tab in tabs[1:]:
            tab.goto(f"{served.url}/#/default/shop")
        for tab in tabs:
            tab.locator("#i5.ok").wait_for()
        other = page.context.new_page()
        with hanging(standin) as go:
            for tab in tabs:
                tab.locator("#bar").get_by_role("button", name="Pause").click()
                tab.locator("#dialog").get_by_text("Waiting for the answer").wait_for()
            other.goto(f"{served.url}/#/default/shop", timeout=30_000)
            other.locator("#i5").wait_for(timeout=30_000)
            served.patch({"replicas": 7})
            other.locator("#i6").wait_for(timeout=30_000)
            go.set()
            for tab in tabs:
                tab.locator(".plan").wait_for()


def test_slow_explanation_is_requested_once_at_a_time(page: "Page") -> None:
    """Changes an instance again and again while its explanation hangs: one request is open.

    The panel says that it waits, and then shows the newest state.
    """
    standin = cluster(tapp())
    with on_port(standin, first="/default/shop") as served:
        page.goto(served.door.address)
        page.locator("#i5.ok").wait_for()
        begun: list[Request] = []
        page.on("request", lambda request: begun.append(request) if "api/why" in request.url else 0)
        with hanging(standin, "involvedObject.name=shop-0") as go:
            page.locator("#i0").click()
            page.locator("#why").get_by_text("Waiting for the answer").wait_for()
            for number in (1, 2, 3):
                image = f"shop:1.{number}"
                served.patch({"template": template("shop", image)})
                page.locator(".run").get_by_text(image).first.wait_for()
                page.locator("#i0.ok").wait_for()
            assert len(begun) == 1
            go.set()
            page.locator("#why").get_by_text("shop:1.3, running").wait_for()


def test_explanation_survives_a_lost_connection(page: "Page") -> None:
    """Loses the connection while an explanation is refreshed: its text stays until the next one."""
    standin = cluster(tapp())
    with on_port(standin, first="/default/shop") as served:
        page.goto(served.door.address)
        page.locator("#i0.ok").click()
        page.locator("#why").get_by_text("shop:1.0, running").wait_for()
        page.route("**/api/why?*", lambda route: route.abort())
        with page.expect_event("requestfailed"):
            served.patch({"template": template("shop", "shop:1.1")})
        page.locator("#i0.ok").wait_for()
        page.locator("#why").get_by_text("shop:1.0, running").wait_for()
        page.unroute("**/api/why?*")
        page.locator("#why").get_by_text("shop:1.1, running").wait_for()


def test_late_plan_does_not_replace_the_dialog_of_another_change(page: "Page") -> None:
    """Closes a dialog that waits for its plan, and opens another one: the late plan is not shown.

    Otherwise "Do it" would carry out a change that the user gave up.
    """
    standin = cluster(tapp())
    with on_port(standin, first="/default/shop") as served:
        page.goto(served.door.address)
        page.locator("#i5.ok").wait_for()
        with hanging(standin) as go:
            page.locator("#bar").get_by_role("button", name="Pause").click()
            page.locator("#dialog").get_by_text("Waiting for the answer").wait_for()
            page.locator("#dialog").get_by_role("button", name="Cancel").click()
            page.locator("#bar").get_by_role("button", name="Replicas").click()
            field = page.locator('#dialog [name="replicas"]')
            field.fill("7")
            go.set()
            page.wait_for_timeout(2_000)
            assert field.input_value() == "7"
            assert page.locator("#dialog h2").inner_text().startswith("Replicas")
            assert page.locator(".plan").count() == 0


def test_error_of_a_change_is_shown_after_its_dialog_was_closed(page: "Page") -> None:
    """Closes the dialog of a change while it is carried out, and the change fails: the page says
    so.
    """
    standin = cluster(tapp())
    with on_port(standin, first="/default/shop") as served:
        page.goto(served.door.address)
        page.locator("#i5.ok").wait_for()
        page.locator("#bar").get_by_role("button", name="Pause").click()
        page.locator(".plan").wait_for()
        with hanging(standin) as go:
            page.get_by_role("button", name="Do it").click()
            page.locator("#dialog").get_by_text("Waiting for the answer").wait_for()
            page.keyboard.press("Escape")
            served.patch({"replicas": 7})
            go.set()
            page.locator("#chosen").get_by_text("Pause: ").wait_for()


def test_second_enter_does_not_plan_twice(page: "Page") -> None:
    standin = cluster(tapp())
    with on_port(standin, first="/default/shop") as served:
        page.goto(served.door.address)
        page.locator("#i5.ok").wait_for()
        begun: list[Request] = []
        page.on("request", lambda it: begun.append(it) if "api/plan" in it.url else 0)
        with hanging(standin) as go:
            page.locator("#bar").get_by_role("button", name="Kill").click()
            page.keyboard.type("3")
            page.keyboard.press("Enter")
            page.locator("#dialog").get_by_text("Waiting for the answer").wait_for()
            page.keyboard.press("Enter")
            go.set()
            page.locator(".plan").wait_for()
        assert len(begun) == 1


def test_page_says_that_kubectl_does_not_answer(
    page: "Page", monkeypatch: pytest.MonkeyPatch
) -> None:
    """Lets the first read of the TApp hang: the page does not call that "live"."""
    monkeypatch.setattr(following, "_LATE", 1.0)
    standin = cluster(tapp())
    with on_port(standin, first="/default/shop") as served, hanging(standin) as go:
        page.goto(served.door.address)
        link = page.locator("#link")
        link.get_by_text("kubectl has not answered for").wait_for()
        assert link.get_attribute("data-link") == "waiting"
        go.set()
        page.locator("#i5").wait_for()
        page.locator('#link[data-link="live"]').wait_for()


def test_page_of_a_restarted_server_says_which_address_to_open(page: "Page") -> None:
    """Restarts the server, which chooses new secrets: an open page names the new address.

    The page goes on by itself after the user has opened that address in another tab.
    """
    standin = cluster(tapp())
    with on_port(standin, first="/default/shop") as served:
        page.goto(served.door.address)
        page.locator("#i5").wait_for()
        port = served.port
    with on_port(standin, port, first="/default/shop") as again:
        link = page.locator('#link[data-link="lost"]')
        link.get_by_text("access refused").wait_for()
        assert "open the address that `kubectl tapp web` printed" in link.inner_text()
        again.patch({"replicas": 7})
        page.context.new_page().goto(again.door.address)
        page.locator("#i6").wait_for()
        page.locator('#link[data-link="live"]').wait_for()


def test_page_without_access_continues_when_it_gets_access(page: "Page") -> None:
    """Refuses the first request of a page once: the page says so, tries again, and loads."""
    with on_port(cluster(tapp()), first="/default/shop") as served:
        place = "**/api/settings"
        page.route(place, lambda route: route.fulfill(status=403, json={"error": "no key"}))
        page.goto(served.door.address)
        page.locator("#message").get_by_text("no key").wait_for()
        page.unroute(place)
        page.locator("#i5").wait_for()
        assert not page.locator("#message").is_visible()


def test_typing_and_keys_work_while_a_restarted_server_reads_the_cluster(page: "Page") -> None:
    """Restarts the server, and kubectl is slow: filters and keys of the page still work.

    A JavaScript error fails the test.
    """
    standin = cluster(tapp(), tapp("ranks"))
    with on_port(standin) as served:
        page.goto(served.door.address)
        page.locator("#rows tbody tr").nth(1).wait_for()
        other = page.context.new_page()
        errors: list[str] = []
        other.on("pageerror", lambda error: errors.append(str(error)))
        other.goto(f"{served.url}/#/default/shop")
        other.locator("#i5").wait_for()
        door, port = served.door, served.port
    with hanging(standin) as go, on_port(standin, port, door=door):
        for tab in (page, other):
            with tab.expect_response("**/api/tapp*"):
                pass
            tab.wait_for_timeout(500)
        page.locator("#text").fill("rank")
        assert page.locator("#rows tbody tr:visible").count() == 1
        other.keyboard.press("t")
        assert other.locator("#table tbody tr").count() == 6
        go.set()
        page.locator('#link[data-link="live"]').wait_for()
    assert errors == []


class Failing(Follower):
    """Replaces the follower of a TApp. Its first look ends with an error that nobody expects."""

    looks = 0

    def _watch_and_look(self) -> None:
        self.looks += 1
        if self.looks == 1:
            raise RuntimeError("cannot start a new thread")
        self.publish(lost="", looks=self.looks)
        self._stopped.wait(60)


def test_follower_reports_unexpected_errors_and_continues(monkeypatch: pytest.MonkeyPatch) -> None:
    """Raises an unexpected error in the thread of a follower: its pages see it, then new data."""
    monkeypatch.setattr(following, "_RESTART_PAUSE", 0.0)
    followed = Failing(session_of(cluster(tapp(replicas=1))))
    try:
        for _ in range(600):
            if followed.model.get("looks"):
                break
            time.sleep(0.1)
        changes = followed.since("")["changes"]
        assert changes == [{"lost": "", "looks": 2, "whole": True}]
        assert any("cannot start a new thread" in str(each) for each in followed._changes)
    finally:
        followed.stop()


def test_result_of_slow_work_is_returned_once() -> None:
    """Runs a function that takes long: there is a key, then the result, and no second result."""
    go, work = threading.Event(), Work()

    def function() -> Any:
        go.wait(60)
        return {"text": "done"}

    key = work.answer(function)["waiting"]
    assert work.result(key) == {"waiting": key}
    go.set()
    for _ in range(600):
        found = work.result(key)
        if found != {"waiting": key}:
            break
        time.sleep(0.1)
    assert found == {"text": "done"}
    with pytest.raises(CommandError, match="expired"):
        work.result(key)


def test_errors_of_work_are_raised() -> None:
    def fails() -> None:
        raise CommandError("there is no instance 9")

    with pytest.raises(CommandError, match="no instance 9"):
        Work().answer(fails)
