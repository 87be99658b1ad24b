"""Lost ownership on a real API server: what is seen, what is said, and what brings it back.

Each story ends with the commands of docs/mend.md, "Lost ownership".
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from .app import App, tapp
from .test_claims import collector_has_worked, owners, stored

pytestmark = pytest.mark.e2e
Kubectl = Callable[..., str]
LONG = 90.0
"""Patience takes thirty seconds, and the next sync."""


def take_over(app: App, kubectl: Kubectl, kind: str, *names: str) -> None:
    """As a person does it."""
    place = ["-n", app.namespace]
    uid = kubectl(*place, "get", "tapp", app.name, "-o", "jsonpath={.metadata.uid}")
    kubectl(*place, "label", kind, *names, "--overwrite", f"controller-uid={uid}")


def reasons(app: App) -> list[str]:
    """The reason of Degraded, and of Ready if it is True or says something else."""
    said = [app.condition(type).split(":")[0] for type in ("Degraded", "Ready")]
    return [each_one.split(" ")[-1] for each_one in said]


def test_retained_claims_of_a_tapp_that_was_made_again(app: App, kubectl: Kubectl) -> None:
    app.apply(stored("Delete")).settle()
    app.patch(persistentVolumeClaimRetentionPolicy={"whenDeleted": "Retain"}).settle()
    kept = app.claims()
    app.delete()
    app.until(lambda: not app.pods, "the pods are gone")
    app.until(lambda: owners(app, "data-web-0") == ["Namespace"], "they belong to nobody")
    collector_has_worked(app)
    app.apply(stored("Delete"))
    app.until(lambda: reasons(app) == ["ClaimsNotOwned"] * 2, "it is said", LONG)
    assert "kubectl tapp adopt web" in app.condition("ClaimsNotOwned")
    assert owners(app, "data-web-0") == ["Namespace"]
    pods = {id: pod["metadata"]["uid"] for id, pod in app.pods.items()}
    take_over(app, kubectl, "pvc", "data-web-0", "data-web-1")
    app.until(lambda: owners(app, "data-web-1") == ["Namespace", "TApp"], "it is adopted")
    app.settle()
    assert app.claims() == kept
    assert {id: pod["metadata"]["uid"] for id, pod in app.pods.items()} == pods
    assert app.condition("ClaimsNotOwned") == ""
    assert "notOwned" not in app.status
    app.delete()
    app.until(lambda: app.claims() == {}, "the claims go with it, as its policy says")


def test_pods_of_a_tapp_that_was_orphaned_and_made_again(app: App, kubectl: Kubectl) -> None:
    app.apply(tapp()).settle()
    pods = {id: pod["metadata"]["uid"] for id, pod in app.pods.items()}
    app.delete(propagationPolicy="Orphan")
    app.until(
        lambda: not any(pod["metadata"].get("ownerReferences") for pod in app.pods.values()),
        "the pods belong to nobody",
    )
    app.apply(tapp())
    app.until(lambda: reasons(app) == ["PodsNotCreated"] * 2, "it is said", LONG)
    assert app.statuses == "NotCreated NotCreated NotCreated"
    assert "kubectl tapp adopt web" in app.condition("PodsNotCreated")
    app.news(refused=(404, 409))
    take_over(app, kubectl, "pod", "web-0", "web-1", "web-2")
    app.settle()
    assert {id: pod["metadata"]["uid"] for id, pod in app.pods.items()} == pods
    assert app.statuses == "Running Running Running"


def test_a_label_that_somebody_removed(app: App, kubectl: Kubectl) -> None:
    app.apply(tapp()).settle()
    uid = app.pod(1)["metadata"]["uid"]
    kubectl("-n", app.namespace, "label", "pod", "web-1", "controller-uid-")
    app.until(lambda: not app.pod(1)["metadata"].get("ownerReferences"), "the pod is released")
    app.until(lambda: reasons(app) == ["PodsNotCreated"] * 2, "it is said", LONG)
    assert app.statuses == "Running NotCreated Running"
    take_over(app, kubectl, "pod", "web-1")
    app.settle()
    assert app.pod(1)["metadata"]["uid"] == uid
    assert app.pod(1)["metadata"]["ownerReferences"][0]["name"] == "web"


def test_an_image_that_a_person_set_is_said_and_left(app: App, kubectl: Kubectl) -> None:
    """The API server's own managedFields tell who did it."""
    app.apply(tapp()).settle()
    app.news()
    kubectl("-n", app.namespace, "set", "image", "pod/web-1", "main=hand:1")
    app.until(lambda: reasons(app) == ["ImagesEdited"] * 2, "it is said")
    said = app.condition("ImagesEdited")
    assert "instance 1: container main has image hand:1, set by kubectl-set" in said
    app.nudge()
    assert app.pod(1)["spec"]["containers"][0]["image"] == "hand:1"
    app.patch(replicas=4).until(lambda: len(app.pods) == 4, "the others get on")
    kubectl("-n", app.namespace, "set", "image", "pod/web-1", "main=app:1")
    app.settle()
    assert app.condition("ImagesEdited") == ""
