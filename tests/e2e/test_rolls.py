"""Whose turn it is in a roll, and what is said of one that comes no further."""

from __future__ import annotations

import pytest

from tests.kstatus import compute

from .app import App, each, tapp, template
from .kubelet_levers import Levers

pytestmark = pytest.mark.e2e


def test_a_roll_that_comes_no_further_is_called_failed_until_it_goes_on(
    app: App, levers: Levers
) -> None:
    app.apply(tapp(progressDeadlineSeconds=3)).settle()
    assert "progressed" not in app.status
    levers.unready_images.add("app:unready")
    app.patch(template=template("app:unready"))
    app.until(lambda: bool(app.condition("Stalled")), "it is too late")
    for type in ("Stalled", "Progressing"):
        said = app.condition(type)
        assert "ProgressDeadlineExceeded: nothing has come further since" in said
        assert "instance 0: its pod is not Ready since" in said
        assert "instances 1, 2: spec.updateStrategy.maxUnavailable: 1 allows 1 of 3" in said
    assert app.condition("Progressing").startswith("False")
    assert app.condition("Degraded").startswith("True Stalled")
    assert compute(app.found or {}) == "Failed"
    assert app.idle()
    app.patch(template=template("app:2")).settle()
    assert app.condition("Stalled") == ""
    assert "progressed" not in app.status
    assert compute(app.found or {}) == "Current"


def test_a_priority_goes_first_and_then_the_highest_number(app: App) -> None:
    app.apply(tapp(replicas=4, updateStrategy={"order": "Descending"})).settle()
    assert app.wrote(*each("create Pod", "web", *range(4)))
    path = app.kube.path("v1", "pods", app.namespace, "web-1")
    app.kube.patch(path, {"metadata": {"annotations": {"apps.tkestack.io/update-priority": "1"}}})
    app.patch(template=template("app:2")).settle()
    assert app.wrote_in_order(*each("update Pod", "web", 1, 3, 2, 0))
    assert app.idle()
