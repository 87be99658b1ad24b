"""Operations that depend on the moment: pauses and budgets in a roll, and TApps beside each other.

The other operations are steps of the stories of test_differential.py.
"""

from __future__ import annotations

from typing import Any

import pytest

from .app import App, each, tapp, template
from .kubelet_levers import Levers

pytestmark = pytest.mark.e2e


def running(app: App, **spec: Any) -> App:
    """A complete TApp whose creation has been checked."""
    made = tapp(**spec)
    app.apply(made).settle()
    assert app.wrote(*each("create Pod", "web", *range(made["spec"]["replicas"])))
    return app


def test_a_pause_in_the_middle_of_a_roll(app: App, levers: Levers) -> None:
    """It stops updates and nothing else: kills, starts and scaling go on."""
    running(app, replicas=4)
    levers.pull_seconds = 0.5
    app.patch(template=template("app:2"))
    app.until(lambda: app.images().startswith("app:2 app:2 app:1"), "half of them")
    app.patch(updateStrategy={"paused": True})
    app.until(lambda: app.condition("Progressing").startswith("False Paused"), "a pause").quiet()
    halfway = app.images().split()
    assert halfway[-1] == "app:1"
    app.patch(replicas=5, statuses={"0": "Killed"})
    app.until(lambda: app.statuses.startswith("Killed ") and app.statuses.endswith("Running"),
              "0 is killed, 4 runs").quiet()  # fmt: skip
    app.until(lambda: len(app.pods) == 4, "four pods")
    assert app.images().split() == [*halfway[1:], "app:2"]
    assert app.idle()
    app.patch(updateStrategy={"paused": None}, statuses=None).settle()
    assert app.images() == " ".join(["app:2"] * 5)
    assert app.idle()


def test_the_two_budgets(app: App, levers: Levers) -> None:
    """Instances off the rolling template go by `forceUpdate`, the others by the strategy's own."""
    levers.pull_seconds = 0.5
    force = {"updateStrategy": {"template": "other", "forceUpdate": {"maxUnavailable": "30%"}}}
    running(app, replicas=5, templatePool={"other": template("app:9")}, **force)
    app.watcher.begin()
    app.patch(template=template("app:2")).settle()
    assert app.wrote(*each("update Pod", "web", *range(5)))
    assert app.watcher.fewest == 3
    app.watcher.begin()
    app.patch(defaultTemplateName="other").settle()
    assert app.wrote_in_order(*each("update Pod", "web", *range(5)))
    assert app.watcher.fewest == 4


def test_two_tapps_whose_pods_look_the_same(app: App) -> None:
    """Neither takes the other's pods, and deleting one leaves the other alone."""
    app.apply(tapp("web")).settle()
    app.apply(tapp("twin", replicas=2)).settle()
    assert app.wrote(*each("create Pod", "web", 0, 1, 2), *each("create Pod", "twin", 0, 1))
    app.delete()
    app.until(lambda: not app.pods, "the twin's pods are gone").quiet()
    assert app.wrote(*each("delete Pod", "twin", 0, 1))
    app.name = "web"
    assert len(app.pods) == 3
    assert app.idle()
