"""In-place updates and new pods on the real API server, as an independent watcher sees them."""

from __future__ import annotations

from typing import Any

import pytest

from .app import App, each, tapp, template
from .kube import Json
from .kubelet import FakeKubelet
from .kubelet_levers import Levers
from .metacontroller import Controller

pytestmark = pytest.mark.e2e
TWO = {"updateStrategy": {"maxUnavailable": 2}}


def began(app: App, **spec: Any) -> App:
    """The TApp, complete, its creation checked, and the watcher counting."""
    made = tapp(**spec)
    app.apply(made).settle()
    assert app.wrote(*each("create Pod", "web", *range(made["spec"]["replicas"])))
    app.watcher.begin()
    return app


def with_env(image: str, value: str = "1") -> Json:
    """A template that differs from `template` in more than an image."""
    made = template(image)
    made["spec"]["containers"][0]["env"] = [{"name": "A", "value": value}]
    return made


def test_an_overtaking_template_keeps_the_budget(app: App, levers: Levers) -> None:
    """In place, then a new pod, then back in place: each before the one before has ended."""
    began(app, replicas=6, **TWO)
    levers.pull_seconds = 0.4
    for made in (template("app:2"), with_env("app:3"), with_env("app:4"), template("app:5")):
        app.patch(template=made)
        first = made["spec"]["containers"][0]["image"]
        app.until(lambda image=first: image in app.images(), "it has begun")  # type: ignore[misc]
    app.settle()
    assert app.images() == " ".join(["app:5"] * 6)
    assert app.watcher.fewest >= 4
    assert app.idle()


def test_what_breaks_by_itself_uses_up_the_budget(
    app: App, kubelet: FakeKubelet, levers: Levers
) -> None:
    """While somebody's deletion of a pod hangs, nothing more is taken down."""
    began(app, replicas=4)
    levers.hang_deletion.add(f"{app.namespace}/web-3")
    app.kube.delete("v1", "pods", app.namespace, "web-3")
    app.patch(template=template("app:2"))
    app.until(lambda: "waiting" in app.condition("Progressing"), "the others wait").quiet()
    assert app.images() == "app:1 app:1 app:1 app:1"
    levers.hang_deletion.clear()
    kubelet.poke()
    app.settle()
    assert app.images() == "app:2 app:2 app:2 app:2"
    assert app.watcher.fewest == 3
    assert app.wrote("create Pod web-3", *each("update Pod", "web", 0, 1, 2))


def test_an_evicted_pod_is_replaced(app: App, kubelet: FakeKubelet) -> None:
    born = began(app).uids()
    kubelet.evict(app.namespace, "web-1")
    app.until(lambda: app.uids().get(1, born[1]) != born[1], "a new pod").settle()
    assert app.wrote_in_order("delete Pod web-1", "create Pod web-1")


def pod_security(app: App, level: str | None) -> None:
    """What the namespace asks of pods that are created or changed."""
    labels = {"pod-security.kubernetes.io/enforce": level}
    path = app.kube.path("v1", "namespaces", None, app.namespace)
    app.kube.patch(path, {"metadata": {"labels": labels}})


@pytest.mark.parametrize("budget", [1, 2])
def test_an_update_that_admission_refuses_harms_nobody_else(
    app: App, tapps: Controller, budget: int
) -> None:
    """Pod Security is tightened under running pods: what breaks it is refused at every try.

    The refused instance runs on as it was. It keeps its place of the budget, as one with a broken
    image does; the others go on with what is left of it.
    """
    root = template("root:1", hostNetwork=True)
    strategy = {"updateStrategy": {"maxUnavailable": budget}}
    born = began(app, replicas=4, templatePool={"root": root}, templates={"1": "root"}, **strategy)
    uids = born.uids()
    pod_security(app, "baseline")
    root["spec"]["containers"][0]["image"] = "root:2"
    app.patch(template=template("app:2"), templatePool={"root": root})
    others = "app:1" if budget == 1 else "app:2"
    wanted = f"{others} root:1 {others} {others}"
    app.until(lambda: "updating: 1" in app.condition("Progressing"), "1 is tried")
    if tapps.real:
        app.until(lambda: said(app, "violates PodSecurity"), "an event of the TApp")
    app.until(lambda: app.images() == wanted, "the others are as the budget allows")
    app.until(lambda: app.status["readyReplicas"] == 4, "all are ready")
    if app.counted:
        refused = {write.name for write in app.news(refused=(403, 409)) if write.code == 403}
        assert refused == {"web-1"}
    assert (app.images(), app.uids()) == (wanted, uids)
    pod_security(app, None)
    app.nudge()
    app.settle()
    assert (app.images(), app.uids()) == ("app:2 root:2 app:2 app:2", uids)
    assert app.watcher.fewest == 3


def said(app: App, words: str) -> bool:
    """True if a SyncError event says so."""
    events = app.kube.list_all("v1", "events", app.namespace)
    return any(one["reason"] == "SyncError" and words in one["message"] for one in events)
