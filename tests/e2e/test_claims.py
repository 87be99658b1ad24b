"""Claims on a real API server and its garbage collector: what stays, what goes, what comes back."""

from __future__ import annotations

import pytest

from .app import App, each, tapp, template
from .cluster import Cluster
from .kube import Json, Kube

pytestmark = pytest.mark.e2e
HOW = pytest.mark.parametrize("how", ["Background", "Foreground", "Orphan"])
MOUNTED: Json = {
    "name": "main",
    "image": "app:1",
    "volumeMounts": [{"name": "data", "mountPath": "/d"}],
}
NAMES = ["data-web-0", "data-web-1"]


def stored(when_deleted: str = "Retain", when_scaled: str = "Retain", **spec: object) -> Json:
    """A TApp of two instances, each with a claim."""
    size = {"requests": {"storage": "1Gi"}}
    claim = {
        "metadata": {"name": "data"},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": size},
    }
    policy = {"whenDeleted": when_deleted, "whenScaled": when_scaled}
    whole: Json = {
        "replicas": 2,
        "template": template(containers=[MOUNTED]),
        "volumeClaimTemplates": [claim],
        "persistentVolumeClaimRetentionPolicy": policy,
    }
    return tapp(**{**whole, **spec})


def owners(app: App, name: str) -> list[str]:
    """The kinds of a claim's owners."""
    claim = app.kube.get("v1", "persistentvolumeclaims", app.namespace, name)
    return sorted(ref["kind"] for ref in claim["metadata"].get("ownerReferences") or [])


def collector_has_worked(app: App) -> None:
    """Returns when the garbage collector has taken away something that was put there for it."""
    nobody = {"apiVersion": "v1", "kind": "ConfigMap", "name": "nobody"}
    ownerless = {**nobody, "uid": "00000000-0000-4000-8000-000000000000"}
    metadata = {"name": "bait", "namespace": app.namespace, "ownerReferences": [ownerless]}
    app.kube.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata})
    app.until(
        lambda: app.kube.find("v1", "configmaps", app.namespace, "bait") is None,
        "the garbage collector works",
    )


@HOW
def test_claims_outlive_their_tapp_and_a_new_one_finds_them(app: App, how: str) -> None:
    app.apply(stored()).settle()
    kept = app.claims()
    assert sorted(kept) == NAMES
    assert owners(app, "data-web-0") == ["Namespace", "TApp"]
    assert app.wrote(*each("create Claim", "data-web", 0, 1), *each("create Pod", "web", 0, 1))
    app.delete(propagationPolicy=how)
    if how == "Orphan":
        assert [bool(pod["metadata"].get("deletionTimestamp")) for pod in app.pods.values()] == [
            False,
            False,
        ]
        assert app.wrote()
        for number in (0, 1):
            app.kube.delete("v1", "pods", app.namespace, f"web-{number}")
    app.until(lambda: not app.pods, "the pods are gone")
    app.until(
        lambda: [owners(app, name) for name in NAMES] == [["Namespace"], ["Namespace"]],
        "the claims belong to the namespace only",
    )
    collector_has_worked(app)
    assert app.claims() == kept
    app.news()
    app.apply(stored()).settle()
    assert app.claims() == kept
    assert app.wrote(*each("create Pod", "web", 0, 1))
    assert app.idle()


def test_claims_go_with_their_tapp_by_policy(app: App) -> None:
    app.apply(stored("Delete")).settle()
    app.news()
    app.delete(propagationPolicy="Background")
    assert app.pods == {}
    app.until(lambda: app.claims() == {}, "the claims are gone")
    assert app.wrote(*each("delete Pod", "web", 0, 1), *each("delete Claim", "data-web", 0, 1))


@pytest.mark.parametrize("how", ["Foreground", "Orphan"])
def test_where_the_service_may_not_act_the_policy_delete_keeps_them(app: App, how: str) -> None:
    """Foreground and orphan deletion belong to the garbage collector: it errs on the safe side."""
    app.apply(stored("Delete")).settle()
    kept = app.claims()
    app.news()
    app.delete(propagationPolicy=how)
    collector_has_worked(app)
    assert app.claims() == kept
    assert app.wrote()


@HOW
def test_claims_survive_a_garbage_collector_that_starts_anew(
    app: App, cluster: Cluster, how: str
) -> None:
    """It learns of the deleted TApp only from references that dangle."""
    if cluster.control_plane is None:
        pytest.skip("the controller manager is not ours to restart")
    app.apply(stored()).settle()
    kept = app.claims()
    cluster.control_plane.restart_controller_manager(kill=True)
    app.kube.delete("apps.tkestack.io/v1", "tapps", app.namespace, app.name, propagationPolicy=how)
    cluster.control_plane.restart_controller_manager(kill=True)
    app.until(lambda: app.found is None, "the TApp is gone")
    collector_has_worked(app)
    app.until(
        lambda: [owners(app, name) for name in NAMES] == [["Namespace"], ["Namespace"]],
        "the claims belong to the namespace only",
    )
    assert app.claims() == kept


def test_a_claim_that_a_person_made_is_used_and_never_deleted(app: App) -> None:
    claim = stored()["spec"]["volumeClaimTemplates"][0]
    metadata = {"name": "data-web-0", "namespace": app.namespace}
    made = app.kube.create(
        {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": metadata,
            "spec": claim["spec"],
        }
    )
    app.apply(stored("Delete", "Delete")).settle()
    assert app.claims()["data-web-0"] == made["metadata"]["uid"]
    assert owners(app, "data-web-0") == []
    assert app.wrote("create Claim data-web-1", *each("create Pod", "web", 0, 1))
    app.patch(replicas=0).settle()
    app.until(lambda: list(app.claims()) == ["data-web-0"], "only the person's claim is left")
    app.delete()
    collector_has_worked(app)
    assert app.claims() == {"data-web-0": made["metadata"]["uid"]}


def test_a_namespace_goes_with_all_that_is_in_it(app: App, kube: Kube) -> None:
    app.apply(stored(replicas=3)).settle()
    kube.delete("v1", "namespaces", None, app.namespace)
    app.until(
        lambda: kube.find("v1", "namespaces", None, app.namespace) is None, "the namespace is gone"
    )
    news = app.news(refused=(403, 404, 409))
    created = [write for write in news if write.verb == "create" and write.accepted]
    assert sorted(
        each.name for each in created if each.resource != "controllerrevisions"
    ) == sorted(["data-web-0", "data-web-1", "data-web-2", "web-0", "web-1", "web-2"])
