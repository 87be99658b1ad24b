"""What `kubectl tapp` gives to whom, on a real API server: a template, lost pods and claims."""

from __future__ import annotations

import pytest

from tests.builders import claim_template

from .app import App, tapp
from .kube import Json
from .plugin import Plugin
from .test_crd import Kubectl

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]


def generations(app: App) -> dict[int, int]:
    """Number -> the pod's generation, which any write of its spec raises."""
    return {number: pod["metadata"]["generation"] for number, pod in app.pods.items()}


# --- the two ends of a canary -------------------------------------------------------------------


def test_a_canary_is_promoted_without_a_restart_of_its_own(app: App, plugin: Plugin) -> None:
    """One write; the others follow in place."""
    app.apply(tapp(replicas=3)).settle()
    before = app.uids()
    plugin.run("set", "image", "web", "main=app:2", "--canary", "1", "-y", "--wait")
    app.settle()
    tried, restarts = generations(app), app.restarts()
    (canary,) = [number for number, count in restarts.items() if count]
    plugin.run("promote", "web", "-y", "--wait")
    app.settle()
    assert app.images() == "app:2 app:2 app:2"
    assert app.uids() == before
    assert app.restarts() == dict.fromkeys(before, 1)
    assert generations(app)[canary] == tried[canary]
    assert app.found is not None
    assert not app.found["spec"].get("templatePool")
    assert not app.found["spec"].get("templates")


def test_a_canary_is_aborted(app: App, plugin: Plugin) -> None:
    app.apply(tapp(replicas=3)).settle()
    plugin.run("set", "image", "web", "main=app:2", "--canary", "2", "-y", "--wait")
    plugin.run("abort", "web", "-y", "--wait")
    app.settle()
    assert app.images() == "app:1 app:1 app:1"
    assert app.found is not None
    assert not app.found["spec"].get("templatePool")
    assert "apps.tkestack.io/canaries" not in app.found["metadata"]["annotations"]


# --- lost ownership -----------------------------------------------------------------------------

WEB = tapp(replicas=2, volumeClaimTemplates=[claim_template()])


def claim(app: App, number: int) -> Json:
    """One claim."""
    found: Json = app.kube.get("v1", "persistentvolumeclaims", app.namespace, f"data-web-{number}")
    return found


def test_what_an_orphaning_deletion_left_is_adopted(app: App, plugin: Plugin) -> None:
    """Same pods, same claims, and a TApp that is complete again."""
    app.apply(WEB).settle()
    pods, claims = app.uids(), app.claims()
    app.delete(propagationPolicy="Orphan")
    app.apply(WEB).quiet()
    assert app.status["readyReplicas"] == 0, "the names are taken"
    out = plugin.run("adopt", "web", "--dry-run=server")
    assert "pod web-N (N: 0, 1): belonged to a TApp web that is gone" in out
    assert "The API server" not in out
    plugin.run("adopt", "web", "-y", "--wait")
    app.settle()
    assert (app.uids(), app.claims()) == (pods, claims)
    assert app.restarts() == {0: 0, 1: 0}
    assert app.status["readyReplicas"] == 2
    assert app.found is not None
    for one in (app.pod(0), claim(app, 0)):
        owners = [each for each in one["metadata"]["ownerReferences"] if each.get("controller")]
        assert [each["uid"] for each in owners] == [app.found["metadata"]["uid"]]


def test_a_claim_that_was_retained_is_adopted(app: App, plugin: Plugin) -> None:
    """It kept the label of a TApp that is gone, and would never have grown."""
    app.apply(WEB).settle()
    claims = app.claims()
    app.delete()
    app.apply(WEB).settle()
    out = plugin.run("adopt", "web", "-y")
    assert "web: 2 claims taken over" in out
    assert app.found is not None
    uid = app.found["metadata"]["uid"]
    app.until(
        lambda: uid in [each["uid"] for each in claim(app, 1)["metadata"]["ownerReferences"]],
        "Metacontroller has adopted it",
    )
    assert app.claims() == claims
    assert "nothing to take over" in plugin.run("adopt", "web", "-y")


def test_a_lost_label_comes_back(app: App, plugin: Plugin, kubectl: Kubectl) -> None:
    """And what has another owner is left alone."""
    app.apply(WEB).settle()
    pods = app.uids()
    kubectl("label", "pod", "web-1", "-n", app.namespace, "controller-uid-")
    app.until(lambda: not app.pod(1)["metadata"].get("ownerReferences"), "it is released")
    plugin.run("adopt", "web", "-y", "--wait")
    app.settle()
    assert app.uids() == pods

    place = {"name": "owner", "namespace": app.namespace}
    app.kube.apply({"apiVersion": "v1", "kind": "ConfigMap", "metadata": place})
    found = app.kube.get("v1", "configmaps", app.namespace, "owner")["metadata"]
    owner = {"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": found["uid"]}
    path = app.kube.path("v1", "pods", app.namespace, "web-1")
    app.kube.patch(path, {"metadata": {"labels": {"controller-uid": None}}})
    app.until(lambda: not app.pod(1)["metadata"].get("ownerReferences"), "it is released")
    app.kube.patch(path, {"metadata": {"ownerReferences": [{**owner, "controller": True}]}})
    out = plugin.run("adopt", "web", "-y")
    assert "pod web-1: belongs to ConfigMap owner" in out
    assert "web: there is nothing to take over" in out
