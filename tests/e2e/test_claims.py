"""Claims on a real API server with its garbage collector: which stay, which are deleted, which are
reused.
"""

from __future__ import annotations

import pytest

from tests.builders import claim_template

from .app import GROUP, App, each
from .claims import NAMES, collector_has_worked, owners, stored
from .cluster import Cluster

pytestmark = pytest.mark.e2e


def left_to_the_namespace(app: App) -> bool:
    """Returns True if the namespace is the only owner of the claims."""
    return [owners(app, name) for name in NAMES] == [["Namespace"], ["Namespace"]]


@pytest.mark.parametrize("how", ["Background", "Orphan"])
def test_claims_outlive_their_tapp_and_are_reused_by_a_new_one(app: App, how: str) -> None:
    app.apply(stored()).settle()
    kept = app.claims()
    assert sorted(kept) == NAMES
    assert owners(app, "data-web-0") == ["Namespace", "TApp"]
    assert app.wrote(*each("create Claim", "data-web", 0, 1), *each("create Pod", "web", 0, 1))
    app.delete(propagationPolicy=how)
    if how == "Orphan":
        assert not any("deletionTimestamp" in pod["metadata"] for pod in app.pods.values())
        assert app.wrote()
        app.delete_pod(0).delete_pod(1)
    app.until(lambda: not app.pods, "the pods are gone")
    app.until(lambda: left_to_the_namespace(app), "the claims belong to the namespace only")
    collector_has_worked(app)
    assert app.claims() == kept
    app.news()
    app.apply(stored()).settle()
    assert app.claims() == kept
    assert app.wrote(*each("create Pod", "web", 0, 1))
    assert app.idle()


def test_claims_are_deleted_with_their_tapp_if_the_policy_says_delete(app: App) -> None:
    app.apply(stored("Delete")).settle()
    app.news()
    app.delete(propagationPolicy="Background")
    assert app.pods == {}
    app.until(lambda: app.claims() == {}, "the claims are gone")
    assert app.wrote(*each("delete Pod", "web", 0, 1), *each("delete Claim", "data-web", 0, 1))


@pytest.mark.parametrize("how", ["Foreground", "Orphan"])
def test_claims_are_kept_if_the_garbage_collector_handles_the_deletion(app: App, how: str) -> None:
    """The garbage collector handles foreground and orphan deletion, so the service cannot delete
    claims safely.
    """
    app.apply(stored("Delete")).settle()
    kept = app.claims()
    app.news()
    app.delete(propagationPolicy=how)
    collector_has_worked(app)
    assert app.claims() == kept
    assert app.wrote()


@pytest.mark.parametrize("how", ["Foreground", "Orphan"])
def test_claims_survive_a_restart_of_the_garbage_collector(
    app: App, cluster: Cluster, how: str
) -> None:
    """A restarted collector knows the deleted TApp only from dangling references."""
    if cluster.control_plane is None:
        pytest.skip("the controller manager is not ours to restart")
    app.apply(stored()).settle()
    kept = app.claims()
    cluster.control_plane.restart_controller_manager(kill=True)
    app.kube.delete(GROUP, "tapps", app.namespace, app.name, propagationPolicy=how)
    cluster.control_plane.restart_controller_manager(kill=True)
    app.until(lambda: app.found is None, "the TApp is gone")
    collector_has_worked(app)
    app.until(lambda: left_to_the_namespace(app), "the claims belong to the namespace only")
    assert app.claims() == kept


def test_claim_created_by_a_user_is_used_and_never_deleted(app: App) -> None:
    claim = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", **claim_template()}
    claim["metadata"] = {"name": "data-web-0", "namespace": app.namespace}
    made = app.kube.create(claim)
    app.apply(stored("Delete", "Delete")).settle()
    assert app.claims()["data-web-0"] == made["metadata"]["uid"]
    assert owners(app, "data-web-0") == []
    assert app.wrote("create Claim data-web-1", *each("create Pod", "web", 0, 1))
    app.patch(replicas=0).settle()
    app.until(lambda: list(app.claims()) == ["data-web-0"], "only the person's claim is left")
    app.delete()
    collector_has_worked(app)
    assert app.claims() == {"data-web-0": made["metadata"]["uid"]}


def test_claim_refused_by_a_quota_is_created_when_the_quota_has_room(app: App) -> None:
    """Until then its pod has no node, and Progressing says so."""
    path = app.quota("one", persistentvolumeclaims="1")
    app.apply(stored())
    app.until(lambda: len(app.pods) == 2 and len(app.claims()) == 1, "one claim is refused")
    app.until(
        lambda: 'persistentvolumeclaim "data-web-' in app.condition("Progressing"),
        "Progressing names the claim",
        90,
    )
    app.kube.request("DELETE", path)
    app.trigger_sync()
    app.settle()
    assert sorted(app.claims()) == NAMES
