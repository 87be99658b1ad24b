"""Tests the page in a real browser on the simulated cluster: its content and its updates."""

import http.client
import os
import signal
import subprocess
import sys
import threading
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import pytest

from demo import web
from demo.web import template
from kubectl_tapp.cluster.session import Session
from kubectl_tapp.main import run
from tests.plugin.fake_kubectl import kubectl_tapp
from tests.web.page_server import cluster, on_port, serving, tapp, until

if TYPE_CHECKING:
    from playwright.sync_api import Page

MARKUP = '<img src=x onerror="document.title=1">'


def test_rollout_is_shown_while_it_runs_and_when_it_is_stuck(page: "Page") -> None:
    """Starts a rollout to a missing image: tiles, budget, steps, reasons and timeline change
    without a reload.
    """
    with on_port(cluster(tapp()), first="/default/shop") as served:
        page.goto(served.door.address)
        page.locator("#i5").wait_for()
        assert "key=" not in page.url
        assert page.locator(".tile.ok").count() == 6
        assert page.locator("#budget .may").inner_text() == "1 may become unavailable"
        served.patch({"template": template("shop", "shop:broken")})
        page.locator("#i0.moving").wait_for()
        page.locator("#moving").get_by_text("0").wait_for()
        page.locator("#i0.bad").wait_for(timeout=120_000)
        assert page.locator("#i0").get_attribute("aria-label").startswith("instance 0: blocked")
        assert page.locator("#i0 i").inner_text() == "✕"
        page.locator("#stuck").get_by_text("The rollout is stuck").wait_for(timeout=120_000)
        assert page.locator("#budget .gone").inner_text() == "instance 0 is unavailable"
        page.locator("#i0").click()
        why = page.locator("#why")
        why.get_by_text("shop:broken").first.wait_for()
        why.get_by_text("History").wait_for()
        assert "Running 1/1 shop:1.0 →" in page.locator("#log").inner_text()
        assert page.locator(".run").count() == 2


def test_list_has_a_row_for_each_tapp_and_filters(page: "Page") -> None:
    """Filters the list of TApps by text, namespace and state."""
    standin = cluster(tapp(), tapp("ranks", replicas=300))
    standin.world.namespace("games")
    standin.world.apply(tapp("rooms", "games", statuses={"1": "Killed"}))
    standin.world.settle()
    with on_port(standin) as served:
        page.goto(served.door.address)
        page.locator("#rows tbody tr").nth(2).wait_for()
        assert page.locator("#count").inner_text() == "3 of 3 TApps, 312 instances"
        strip = page.locator("#rows canvas").nth(2).get_attribute("aria-label")
        assert strip == "5 up to date, 1 stopped"
        page.locator("#namespace").select_option("games")
        assert page.locator("#rows tbody tr:visible").count() == 1
        page.locator("#namespace").select_option("")
        page.locator("#text").fill("rank")
        assert page.locator("#rows tbody tr:visible").count() == 1
        page.locator("#text").fill("")
        page.locator("#state").select_option("bad")
        assert page.locator("#rows tbody tr:visible").count() == 0
        served.patch({"template": template("shop", "shop:broken")})
        page.locator("#rows tbody tr:visible").wait_for(timeout=120_000)
        page.locator("#rows tbody tr:visible a").click()
        page.locator("#i5").wait_for()


def test_partition_is_a_line_in_the_grid(page: "Page") -> None:
    spec = {"updateStrategy": {"partition": 4}}
    with on_port(cluster(tapp(**spec)), first="/default/shop") as served:
        served.patch({"template": template("shop", "shop:1.1")})
        page.goto(served.door.address)
        page.locator(".tile.kept").nth(3).wait_for(timeout=120_000)
        line = page.locator("#grid .line")
        line.wait_for()
        assert line.inner_text() == "partition: 4 below this line are kept at their revision"
        before = line.evaluate("it => it.previousElementSibling.dataset.id")
        assert before == "1"


def test_table_can_be_opened_with_a_key(page: "Page") -> None:
    """Presses the key `t`: a table with a row for each instance takes the place of the grid.

    Users of screen readers need the table. Its times are in the user's time zone.
    """
    with on_port(cluster(tapp()), first="/default/shop") as served:
        page.goto(served.door.address)
        page.locator("#i5").wait_for()
        page.keyboard.press("t")
        assert page.locator("#table tbody tr").count() == 6
        assert page.locator("#table th[scope=col]").count() == 8
        assert not page.locator("#grid").is_visible()
        shown = page.locator("#table time").first.get_attribute("title")
        assert "GMT+0900" in shown
        page.keyboard.press("t")
        assert page.locator("#grid").is_visible()


def test_every_tile_can_be_selected_with_the_keyboard(page: "Page") -> None:
    """Uses the keys of the grid: arrows move, shift selects a range, space adds one, Enter shows
    why, Escape clears.
    """
    with on_port(cluster(tapp(replicas=40)), first="/default/shop") as served:
        page.goto(served.door.address)
        page.locator("#i39").wait_for()
        assert page.locator('#grid [tabindex="0"]').count() == 1
        page.locator("#i0").focus()
        for key in ("ArrowRight", "Shift+ArrowRight", "Shift+ArrowRight", "End", "Space"):
            page.keyboard.press(key)
        assert page.locator("#chosen").inner_text() == "4 chosen: 1-3,39"
        assert page.locator('[aria-selected="true"]').count() == 4
        page.keyboard.press("Enter")
        page.locator("#why h2").get_by_text("Why shop-39").wait_for()
        page.keyboard.press("Home")
        page.keyboard.press("ArrowDown")
        assert page.evaluate("document.activeElement.dataset.id") not in ("0", "1", "39")
        page.keyboard.press("Escape")
        assert page.locator("#chosen").inner_text() == ""


def test_texts_of_users_are_escaped(page: "Page") -> None:
    """Uses HTML as a template's name, an image and a hold's reason: the page shows it as text
    everywhere.
    """
    pool = {MARKUP: template("shop", f"shop:{MARKUP}")}
    standin = cluster(tapp(templatePool=pool, templates={"5": MARKUP}))
    note = {"metadata": {"annotations": {"apps.tkestack.io/hold": MARKUP}}}
    standin.world.patch("Pod", "shop-1", note)
    with on_port(standin, first="/default/shop") as served:
        page.goto(served.door.address)
        page.locator("#i5").wait_for()
        page.locator("#i5").click()
        page.locator("#why").get_by_text(MARKUP).first.wait_for()
        page.locator("#i1").click()
        page.locator("#why").get_by_text("onerror").first.wait_for()
        page.keyboard.press("t")
        page.locator("#bar").get_by_role("button", name="Template").click()
        page.locator('#dialog [name="template"]').select_option(MARKUP)
        page.locator('#dialog [name="ids"]').fill("0")
        page.get_by_role("button", name="Show the plan").click()
        page.locator(".plan").get_by_text("onerror").first.wait_for()
        assert page.locator("img, script:not([src])").count() == 0
        assert page.title() == "default/shop · TApp"


def test_page_shows_that_the_server_is_lost_and_reconnects(page: "Page") -> None:
    standin = cluster(tapp())
    with on_port(standin, first="/default/shop") as served:
        page.goto(served.door.address)
        page.locator("#i5").wait_for()
        door, port = served.door, served.port
    page.locator('#link[data-link="lost"]').wait_for()
    standin.world.patch("TApp", "shop", {"spec": {"replicas": 7}})
    with on_port(standin, port, door=door):
        page.locator('#link[data-link="live"]').wait_for()
        page.locator("#i6").wait_for()


def test_page_keeps_old_data_if_the_cluster_does_not_respond(page: "Page") -> None:
    """Breaks the connection to the cluster: the page keeps its data and says that the cluster is
    lost.
    """
    standin = cluster(tapp())
    with on_port(standin, first="/default/shop") as served:
        page.goto(served.door.address)
        page.locator("#i5").wait_for()
        standin.failing["get"] = "The connection to the server was refused"
        for each in standin.followed:
            each.end("The connection to the server was refused\n")
        page.locator("#link").get_by_text("cluster lost").wait_for()
        assert page.locator(".tile").count() == 6
        del standin.failing["get"]
        page.locator('#link[data-link="live"]').wait_for()
        assert served.spec()["replicas"] == 6


def test_pods_are_listed_only_once(page: "Page") -> None:
    """After the first list, watches report all changes.

    The server may only read a single pod by its name, if a watch reports the TApp before the pod.
    """
    standin = cluster(tapp())
    with on_port(standin, first="/default/shop") as served:
        page.goto(served.door.address)
        page.locator("#i5").wait_for()
        served.patch({"replicas": 7})
        page.locator("#i6.ok").wait_for()
        calls = len(standin.calls)
        for replicas in range(8, 12):
            served.patch({"replicas": replicas})
            page.locator(f"#i{replicas - 1}.ok").wait_for()
        reads = [call for call in standin.calls[calls:] if "pods" in call]
        assert [call for call in reads if "--ignore-not-found" not in call] == []


def test_only_changed_tiles_are_drawn(page: "Page") -> None:
    """If one of 1,000 instances changes, the page draws one tile."""
    with on_port(cluster(tapp(replicas=1000)), first="/default/shop") as served:
        page.goto(served.door.address)
        page.locator("#i999").wait_for(timeout=120_000)
        assert page.locator(".tile").count() == 1000
        page.evaluate("""() => {
            window.touched = new Set();
            const note = (records) => records.forEach((each) => {
                const tile = (each.target.closest ?? each.target.parentElement.closest).call(
                    each.target.closest ? each.target : each.target.parentElement, ".tile");
                if (tile) window.touched.add(tile.dataset.id);
            });
            const watching = {subtree: true, childList: true, characterData: true};
            new MutationObserver(note).observe(document.getElementById("grid"), watching);
        }""")
        served.patch({"statuses": {"500": "Killed"}})
        page.locator("#i500.stopped").wait_for(timeout=120_000)
        assert page.evaluate("[...window.touched]") == ["500"]


@pytest.mark.parametrize("width", [360, 1280])
def test_page_is_not_wider_than_its_window(page: "Page", width: int) -> None:
    """Opens the page in a narrow and a wide window: a wide table has a separate scroll bar."""
    with on_port(cluster(tapp(replicas=70)), first="/default/shop") as served:
        page.set_viewport_size({"width": width, "height": 800})
        page.goto(served.door.address)
        page.locator("#i69").wait_for()
        for path, shown in (("#/default/shop", "#i69"), ("#/", "#rows tbody tr")):
            page.evaluate("where => { location.hash = where }", path)
            page.locator(shown).wait_for()
            assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_page_shows_the_status_of_the_tapp_without_permission_for_pods(page: "Page") -> None:
    """Takes the permission for pods from the user: the page shows the TApp's own status, and names
    the permission.
    """
    standin = cluster(tapp())
    standin.forbid("list pods")
    with on_port(standin, first="/default/shop") as served:
        page.goto(served.door.address)
        page.locator("#i5.ok").wait_for()
        page.locator("#stuck").get_by_text("cannot list resource").wait_for()


def test_page_reads_periodically_without_permission_to_watch(
    page: "Page", monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kubectl_tapp.live.following._MAX_PAUSE", 1.0)
    standin = cluster(tapp())
    standin.forbid("watch pods", "watch tapps")
    with on_port(standin, first="/default/shop") as served:
        page.goto(served.door.address)
        page.locator("#i5.ok").wait_for()
        served.patch({"replicas": 7})
        page.locator("#i6.ok").wait_for(timeout=120_000)
        page.locator("#home").click()
        page.locator("#rows").get_by_text("7/7").first.wait_for(timeout=120_000)


def test_pod_deleted_before_the_watch_began_disappears(
    page: "Page", monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kubectl_tapp.live.following._MAX_PAUSE", 1.0)
    standin = cluster(tapp())
    ghost = {**standin.world.get("Pod", "shop-3")}
    ghost["metadata"] = {**ghost["metadata"], "uid": "gone", "name": "shop-9"}
    found = standin._found

    def with_ghost(words: list[str], options: dict[str, str]) -> tuple[Any, list[Any]]:
        kind, objects = found(words, options)
        read = words[1] == "pods" and "--watch" not in options
        return kind, [*objects, ghost] if read else objects

    standin._found = with_ghost  # type: ignore[method-assign]
    with on_port(standin, first="/default/shop") as served:
        page.goto(served.door.address)
        page.locator("#i9").wait_for()
        monkeypatch.setattr("kubectl_tapp.cluster.watching._LISTING_SECONDS", 1.0)
        page.locator("#i9").wait_for(state="detached", timeout=120_000)


def test_web_opens_a_browser_unless_told_otherwise(monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[str] = []

    def serve(_: object, first: str, port: int, *, browser: bool, read_only: bool) -> None:
        opened.append(f"{first} {port} {browser} {read_only}")

    monkeypatch.setattr("kubectl_tapp.web.command.serve", serve)
    standin = cluster(tapp())
    said = kubectl_tapp(standin, "web", "shop", "--port", "8001", "--no-browser", "--read-only")
    assert said.code == 0
    assert kubectl_tapp(standin, "web").code == 0
    assert opened == ["/default/shop 8001 False True", "/ 0 True False"]
    assert "no TApp 'shp'" in kubectl_tapp(standin, "web", "shp").err
    assert kubectl_tapp(standin, "web", "--port", "99999").code == 2


def test_used_port_is_an_error(capsys: pytest.CaptureFixture[str]) -> None:
    standin = cluster(tapp())
    with on_port(standin) as served:
        assert run(["web", "--port", str(served.port), "--no-browser"], runner=standin) == 2
    assert f"port {served.port} cannot be used" in capsys.readouterr().err


@pytest.mark.parametrize("end", [signal.SIGINT, signal.SIGTERM], ids=["Ctrl-C", "SIGTERM"])
def test_server_runs_until_it_is_interrupted(end: int) -> None:
    """Runs the server as a process: it prints its address immediately, and a signal ends it with
    exit code 0.
    """
    command = [sys.executable, "-m", "kubectl_tapp.main", "web", "--no-browser", "--port", "0"]
    environment = {**os.environ, "KUBECTL": "false"}
    environment.pop("PYTHONUNBUFFERED", None)
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=environment, text=True) as process:
        assert process.stdout is not None
        address = urlsplit(process.stdout.readline().split()[-1])
        connection = http.client.HTTPConnection("127.0.0.1", address.port or 0, timeout=120)
        connection.request("GET", f"/?{address.query}")
        answer = connection.getresponse()
        answer.read()
        assert address.hostname == "127.0.0.1"
        assert answer.status == 303
        connection.close()
        process.send_signal(end)
        out, _ = process.communicate(timeout=120)
        assert process.returncode == 0
        assert "Ended" in out


def test_without_flask_the_error_names_the_extra_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("kubectl_tapp.web.command.find_spec", lambda _: None)
    said = kubectl_tapp(cluster(tapp()), "web")
    assert "tapp[web]" in said.err
    assert said.code == 1


def test_demo_serves_the_page(page: "Page") -> None:
    """Runs `make demo WEB=1`: its page has the TApps of the demo and the real service."""
    addresses: list[str] = []
    left = threading.Event()

    def serve(session: Session, first: str, port: int, **_: object) -> None:
        with serving(session, port, first=first) as (door, _port):
            addresses.append(door.address)
            left.wait(600)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("demo.web.serve_page", serve)
        playing = threading.Thread(target=web.main, daemon=True)
        playing.start()
        until(page, lambda: bool(addresses))
        page.goto(addresses[0])
        page.locator("#i5").wait_for()
        assert page.locator("#name").inner_text() == "default/shop"
        left.set()
        playing.join(120)
