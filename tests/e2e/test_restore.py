"""A TApp that is restored from a backup: with its status a finished batch stays finished."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from .app import App, each, example
from .kubelet import FakeKubelet
from .metacontroller import Controller

pytestmark = pytest.mark.e2e
OF_ITS_OWN_CLUSTER = ("uid", "resourceVersion", "ownerReferences", "finalizers")


@pytest.mark.parametrize("with_status", [True, False], ids=["with status", "without"])
def test_a_finished_batch_is_restored(  # noqa: PLR0913, PLR0917 - what a restore takes
    app: App,
    kubelet: FakeKubelet,
    tapps: Controller,
    kubectl: Callable[..., str],
    tmp_path: Path,
    with_status: bool,
) -> None:
    """The commands of docs/operations.md, "Backup and restore", and what happens without them."""
    place = ["-n", app.namespace]
    app.apply(*example("batch"))
    app.until(lambda: app.statuses == "Running Running Running Running", "all run").quiet()
    for number in range(4):
        kubelet.finish(app.namespace, f"work-{number}", code=0)
    app.until(lambda: not app.pods, "all have ended").quiet()
    saved = json.loads(kubectl(*place, "get", "tapp", "work", "-o", "json"))
    app.delete()
    app.quiet()
    app.news()
    tapps.stop()
    try:
        status = {"status": saved.pop("status")}
        saved["metadata"] = {
            key: item for key, item in saved["metadata"].items() if key not in OF_ITS_OWN_CLUSTER
        }
        restored, told = tmp_path / "work.yaml", tmp_path / "work-status.yaml"
        restored.write_text(json.dumps(saved))
        told.write_text(json.dumps(status))
        kubectl(*place, "create", "-f", str(restored))
        if with_status:
            patch = ["--subresource=status", "--type=merge", "--patch-file", str(told)]
            kubectl(*place, "patch", "tapp", "work", *patch)
    finally:
        tapps.start()
    if with_status:
        app.until(lambda: bool(app.found and app.found["metadata"].get("finalizers")), "it is seen")
        app.quiet()
        assert app.statuses == "Succ Succ Succ Succ"
        assert app.wrote()
    else:
        app.until(lambda: app.statuses == "Running Running Running Running", "all run again")
        assert app.wrote(*each("create Pod", "work", *range(4)))
