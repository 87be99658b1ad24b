"""`kubectl tapp plan` as a process, through the real kubectl, on a real API server."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from .app import App, tapp, template
from .plugin import Plugin

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]


def test_an_edit_is_foretold_and_nothing_is_written(
    app: App, plugin: Plugin, tmp_path: Path
) -> None:
    """By options, by a file, and as a document; the API server is asked by a dry run."""
    document = tapp(replicas=3)
    app.apply(document).settle()
    generation = app.found["metadata"]["generation"] if app.found else 0

    out = plugin.run("plan", "web", "--image", "main=app:2", "--html", str(tmp_path / "plan.html"))
    assert ": 3 in place, in about " in out
    assert (tmp_path / "plan.html").read_text().startswith("<!doctype html>")

    file = tmp_path / "new.yaml"
    spec = {**document["spec"], "template": template("app:2"), "replicas": 4}
    file.write_text(yaml.safe_dump({**document, "spec": spec}))
    found = json.loads(plugin.run("plan", "-f", str(file), "-o", "json"))
    assert [each["outcome"] for each in found["instances"]] == ["in place"] * 3 + ["created"]

    plugin.run("plan", "web", "--image", "main=app:2", "--fail-if", "in-place>2", code=3)
    assert app.found is not None
    assert app.found["metadata"]["generation"] == generation


def test_what_the_api_server_refuses_is_said_in_its_words(
    app: App, plugin: Plugin, tmp_path: Path
) -> None:
    document = tapp(replicas=1)
    app.apply(document).settle()
    file = tmp_path / "new.yaml"
    file.write_text(yaml.safe_dump({**document, "spec": {**document["spec"], "replicas": "two"}}))
    out = plugin.run("plan", "-f", str(file), code=1)
    assert "this edit is refused" in out
    assert "spec.replicas" in out
