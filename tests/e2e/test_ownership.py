"""Lost ownership on a real API server: its detection, its message and its repair.

test_commands.py types the commands of docs/troubleshooting.md, "Lost ownership", for users without
the plugin.
"""

from __future__ import annotations

import pytest

from .app import App, tapp
from .claims import collector_has_worked, owners, stored
from .kube import Kubectl
from .plugin import Plugin
from .waiting import LONG

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]


def test_retained_claims_of_a_recreated_tapp_are_reported_and_adopted(
    app: App, plugin: Plugin
) -> None:
    app.apply(stored("Delete")).settle()
    app.patch(persistentVolumeClaimRetentionPolicy={"whenDeleted": "Retain"}).settle()
    kept = app.claims()
    app.delete()
    app.until(lambda: not app.pods, "the pods are gone")
    app.until(
        lambda: owners(app, "data-web-0") == ["Namespace"], "the claims have no TApp as owner"
    )
    collector_has_worked(app)
    app.apply(stored("Delete"))
    app.until(lambda: app.reasons() == ["ClaimsNotOwned"] * 2, "ClaimsNotOwned is reported", LONG)
    assert "kubectl tapp adopt web" in app.condition("ClaimsNotOwned")
    assert owners(app, "data-web-0") == ["Namespace"]
    pods = app.uids()
    assert "web: 2 claims adopted" in plugin.run("adopt", "web", "-y")
    app.until(lambda: owners(app, "data-web-1") == ["Namespace", "TApp"], "the claim is adopted")
    app.settle()
    assert app.claims() == kept
    assert app.uids() == pods
    assert app.condition("ClaimsNotOwned") == ""
    assert "notOwned" not in app.status
    app.delete()
    app.until(lambda: app.claims() == {}, "the claims are deleted with the TApp")


def test_orphaned_and_released_pods_are_reported_and_adopted(
    app: App, kubectl: Kubectl, plugin: Plugin
) -> None:
    """A pod that has another owner in the meantime must stay unchanged."""
    app.apply(tapp()).settle()
    pods = app.uids()
    app.delete(propagationPolicy="Orphan")
    app.until(
        lambda: not any(pod["metadata"].get("ownerReferences") for pod in app.pods.values()),
        "the pods have no owner",
    )
    app.apply(tapp())
    app.until(lambda: app.reasons() == ["PodsNotCreated"] * 2, "PodsNotCreated is reported", LONG)
    assert app.statuses == "NotCreated NotCreated NotCreated"
    assert "kubectl tapp adopt web" in app.condition("PodsNotCreated")
    app.news(refused=(404, 409))
    out = plugin.run("adopt", "web", "--dry-run=server")
    assert "pod web-N (N: 0-2): was left behind by a deleted TApp web" in out
    plugin.run("adopt", "web", "-y", "--wait")
    assert app.uids() == pods
    assert app.statuses == "Running Running Running"

    kubectl("-n", app.namespace, "label", "pod", "web-1", "controller-uid-")
    app.until(lambda: not app.pod(1)["metadata"].get("ownerReferences"), "the pod is released")
    plugin.run("adopt", "web", "-y", "--wait")
    assert app.uids() == pods

    place = {"name": "owner", "namespace": app.namespace}
    other = app.kube.apply({"apiVersion": "v1", "kind": "ConfigMap", "metadata": place})
    owner = {"apiVersion": "v1", "kind": "ConfigMap", "name": "owner"}
    owner |= {"uid": other["metadata"]["uid"], "controller": True}
    kubectl("-n", app.namespace, "label", "pod", "web-1", "controller-uid-")
    app.until(
        lambda: not app.pod(1)["metadata"].get("ownerReferences"), "the pod is released again"
    )
    app.edit(1, {"metadata": {"ownerReferences": [owner]}})
    out = plugin.run("adopt", "web", "-y")
    assert "pod web-1: belongs to ConfigMap owner" in out
    assert "web: there is nothing to adopt" in out


def test_image_set_by_a_user_is_reported_and_kept(app: App, kubectl: Kubectl) -> None:
    """The managedFields of the API server tell who set the image."""
    app.apply(tapp()).settle()
    app.news()
    kubectl("-n", app.namespace, "set", "image", "pod/web-1", "main=hand:1")
    app.until(lambda: app.reasons() == ["ImagesEdited"] * 2, "ImagesEdited is reported")
    said = app.condition("ImagesEdited")
    assert "instance 1: container main has image hand:1, set by kubectl-set" in said
    app.trigger_sync()
    assert app.pod(1)["spec"]["containers"][0]["image"] == "hand:1"
    app.patch(replicas=4).until(lambda: len(app.pods) == 4, "the new instance is created")
    kubectl("-n", app.namespace, "set", "image", "pod/web-1", "main=app:1")
    app.settle()
    assert app.condition("ImagesEdited") == ""
