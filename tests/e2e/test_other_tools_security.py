"""TApps in a namespace that enforces Pod Security `restricted`, from the beginning or later."""

from __future__ import annotations

from typing import Any

import pytest

from .app import App, each, tapp, template
from .kube import Json, Kubectl
from .metacontroller import Controller
from .waiting import LONG

pytestmark = pytest.mark.e2e
ENFORCE = "pod-security.kubernetes.io/enforce"
RESTRICTED: Json = {
    "allowPrivilegeEscalation": False,
    "capabilities": {"drop": ["ALL"]},
    "runAsNonRoot": True,
    "seccompProfile": {"type": "RuntimeDefault"},
}


def restricted_template(image: str = "app:1", **spec: Any) -> Json:
    """Returns a template that `restricted` admits."""
    made = template(image, **spec)
    made["spec"]["containers"][0]["securityContext"] = RESTRICTED
    return made


def enforce(app: App, level: str | None) -> None:
    """Sets the level that the namespace enforces."""
    path = app.kube.path("v1", "namespaces", None, app.namespace)
    app.kube.patch(path, {"metadata": {"labels": {ENFORCE: level}}})


def test_restricted_tapp_runs_and_is_updated_in_place(app: App) -> None:
    enforce(app, "restricted")
    app.apply(tapp(template=restricted_template())).settle()
    born = app.uids()
    app.news()
    app.patch(template=restricted_template("app:2")).settle()
    assert app.wrote_in_order(*each("update Pod", "web", 0, 1, 2))
    assert app.uids() == born
    assert app.idle()


def test_pods_refused_by_pod_security_are_reported_and_created_after_a_fix(
    app: App, kubectl: Kubectl, tapps: Controller
) -> None:
    enforce(app, "restricted")
    app.apply(tapp())
    app.until(lambda: app.reasons() == ["PodsNotCreated"] * 2, "PodsNotCreated is reported", LONG)
    if tapps.real:  # the simulator's Metacontroller writes no Events
        told = kubectl("describe", "tapp", "web", "-n", app.namespace)
        assert 'violates PodSecurity "restricted' in told
    app.news(refused=(403, 404, 409))
    app.patch(template=restricted_template()).settle()
    assert app.wrote(*each("create Pod", "web", 0, 1, 2))


def test_stricter_namespace_refuses_updates_and_stops_no_pod(app: App) -> None:
    """An update in place is refused like a new pod.

    A template that is admitted continues the rollout.
    """
    app.apply(tapp()).settle()
    born = app.uids()
    enforce(app, "restricted")
    assert app.idle()
    app.patch(template=template("app:2"))
    refused: list[str] = []

    def update_is_refused() -> bool:
        written = app.news(refused=(403, 404, 409))
        refused.extend(write.name for write in written if write.code == 403)
        return bool(refused)

    app.until(update_is_refused, "the update is refused")
    assert set(refused) == {"web-0"}
    assert app.images() == "app:1 app:1 app:1"
    assert app.uids() == born
    app.watcher.begin()
    app.patch(template=restricted_template("app:2"))
    app.until(lambda: app.images() == "app:2 app:2 app:2", "all pods are replaced", LONG)
    update_is_refused()
    app.settle()
    assert set(refused) == {"web-0"}
    assert app.watcher.fewest == 2
    assert not set(app.uids().values()) & set(born.values())
