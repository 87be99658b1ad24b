"""`kubectl tapp web` on a real API server, with the real kubectl and a real browser."""

from __future__ import annotations

import json
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.web.conftest import browser, page

from .app import App, tapp, template
from .kube import Json
from .plugin import Plugin

if TYPE_CHECKING:
    from playwright.sync_api import Page

__all__ = ["browser", "page"]

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]


KUBERC: Json = {
    "apiVersion": "kubectl.config.k8s.io/v1beta1", "kind": "Preference",
    "credentialPluginPolicy": "DenyAll",
    "defaults": [
        {"command": "get", "options": [
            {"name": "show-labels", "default": "true"}, {"name": "selector", "default": "a=b"}]},
        {"command": "patch", "options": [{"name": "dry-run", "default": "client"}]},
        {"command": "apply", "options": [{"name": "dry-run", "default": "client"}]},
    ],
}  # fmt: skip
"""Preferences that hide all objects and drop all writes."""


@pytest.fixture
def served(
    app: App, plugin: Plugin, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """The process and the printed address, for a user whose kuberc hides all objects."""
    (tmp_path / "kuberc").write_text(json.dumps(KUBERC))
    (tmp_path / "tmp").mkdir()
    monkeypatch.setenv("KUBERC", str(tmp_path / "kuberc"))
    monkeypatch.setenv("TMPDIR", str(tmp_path / "tmp"))
    app.apply(tapp(replicas=4, templatePool={"v2": template("app:2")})).settle()
    process = plugin.start("web", "web", "--no-browser", "--port", "0")
    assert process.stdout is not None
    line = process.stdout.readline()
    assert "http://127.0.0.1:" in line, line
    yield process, line.split()[-1]
    if process.poll() is None:
        process.kill()


def test_page_makes_an_update_and_a_canary_and_shows_a_kill(
    page: Page, app: App, plugin: Plugin, served: tuple[subprocess.Popen[str], str], tmp_path: Path
) -> None:
    """The page makes its changes and shows foreign ones, and Ctrl-C leaves no kubectl process."""
    process, address = served
    page.set_default_timeout(60_000)
    page.goto(address)
    page.locator("#i3.ok").wait_for()
    assert page.locator(".tile.ok").count() == 4

    page.locator("#bar").get_by_role("button", name="Image").click()
    page.locator('#dialog [name="image main"]').fill("app:3")
    page.get_by_role("button", name="Show the plan").click()
    page.locator(".plan").get_by_text("4 in place").wait_for()
    page.get_by_role("button", name="Do it").click()
    page.locator(".run").get_by_text("app:3").wait_for()
    page.locator(".tile.ok").nth(3).wait_for()
    app.settle()
    assert {pod["spec"]["containers"][0]["image"] for pod in app.pods.values()} == {"app:3"}

    plugin.run("kill", "web", "1", "-y", "--wait")  # another terminal
    page.locator("#i1.stopped").wait_for()
    page.locator("#i2").click()
    page.locator("#why").get_by_text("Containers").wait_for()
    page.locator("#why").get_by_text("Events").wait_for()

    page.locator("#bar").get_by_role("button", name="Template").click()
    page.locator('#dialog [name="template"]').select_option("v2")
    page.get_by_role("button", name="Show the plan").click()
    page.get_by_role("button", name="Do it").click()
    page.locator("#i2.ok small").get_by_text("v2").wait_for()

    page.locator("#home").click()
    page.locator("#rows").get_by_text("web").first.wait_for()

    process.send_signal(signal.SIGINT)
    out, _ = process.communicate(timeout=30)
    assert process.returncode == 0, out
    assert "Ended" in out, out
    watching = subprocess.run(
        ["pgrep", "-a", "-g", str(process.pid)], check=False, capture_output=True, text=True
    )
    assert watching.stdout == ""
    assert [*(tmp_path / "tmp").glob("kubectl-tapp-*")] == []
