"""Deletions that do not end, on a real API server: the TApp reports them, even during its own
deletion.
"""

from __future__ import annotations

import pytest

from .app import App, tapp, template

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]
KEEP = "a.example/keep"
LATE = 120.0  # Seconds: the grace period, the margin, and the machine's other work


def add_finalizer(app: App, id: int) -> None:
    app.edit(id, {"metadata": {"finalizers": [KEEP]}})


def remove_finalizers(app: App, id: int) -> None:
    app.edit(id, {"metadata": {"finalizers": None}})


@pytest.mark.parametrize(
    "change",
    [{"statuses": {"2": "Killed"}}, {"replicas": 2}, {"template": template("b:1", command=["x"])}],
    ids=["a killed instance", "fewer replicas", "a replacement"],
)
def test_tapp_is_degraded_while_a_finalizer_keeps_a_pod(
    app: App, change: dict[str, object]
) -> None:
    app.apply(tapp(template=template(terminationGracePeriodSeconds=1))).settle()
    add_finalizer(app, 2)
    app.patch(**change)
    app.until(
        lambda: app.condition("Degraded").startswith("True PodsNotDeleted"),
        "PodsNotDeleted is reported",
        LATE,
    )
    said = app.condition("Degraded")
    assert "pod web-2 is being deleted and should have gone by " in said
    assert f"finalizer {KEEP} keeps the object" in said
    # A rollout that progressed just now is given some time before it counts as stalled.
    app.until(
        lambda: app.condition("Stalled").startswith("True PodsNotDeleted"),
        "Stalled is reported",
        LATE,
    )
    remove_finalizers(app, 2)
    app.until(
        lambda: app.condition("Degraded").startswith("False"),
        "the TApp is not degraded any more",
        LATE,
    )


def test_tapp_in_deletion_reports_the_pod_that_it_waits_for(app: App) -> None:
    """Metacontroller writes the status from the response of the finalize hook."""
    app.apply(tapp(template=template(terminationGracePeriodSeconds=1))).settle()
    add_finalizer(app, 1)
    app.kube.delete("apps.tkestack.io/v1", "tapps", app.namespace, "web")
    app.until(lambda: sorted(app.pods) == [1], "the other pods are gone")
    app.until(
        lambda: app.condition("Ready").startswith("False Deleting"), "the deletion is reported"
    )
    app.until(lambda: app.status["ready"] == "0/3", "the status counts the pods")
    assert "the TApp is being deleted (since " in app.condition("Ready")
    app.until(
        lambda: app.condition("Degraded").startswith("True PodsNotDeleted"),
        "PodsNotDeleted is reported",
        LATE,
    )
    assert KEEP in app.condition("Degraded")
    app.quiet()
    remove_finalizers(app, 1)
    app.until(lambda: app.found is None, "the TApp is gone", LATE)


@pytest.mark.parametrize("propagation", ["Foreground", "Background"])
def test_tapp_in_deletion_names_foreign_finalizers(app: App, propagation: str) -> None:
    """Metacontroller calls the hook and writes the status even after it has removed its own
    finalizer.
    """
    app.apply(tapp(template=template(terminationGracePeriodSeconds=1))).settle()
    add_finalizer(app, 1)
    found = app.found
    assert found is not None
    if propagation == "Background":
        finalizers = [*found["metadata"].get("finalizers", []), KEEP]
        app.kube.patch(app.path, {"metadata": {"finalizers": finalizers}})
    api = "apps.tkestack.io/v1"
    app.kube.delete(api, "tapps", app.namespace, "web", propagationPolicy=propagation)
    name = "foregroundDeletion" if propagation == "Foreground" else KEEP
    app.until(lambda: name in app.condition("Ready"), "the finalizer is named")
    app.until(
        lambda: app.condition("Degraded").startswith("True PodsNotDeleted"),
        "PodsNotDeleted is reported",
        LATE,
    )
    remove_finalizers(app, 1)
    if propagation == "Background":
        app.until(lambda: not app.pods, "the pod is gone", LATE)
        app.kube.patch(app.path, {"metadata": {"finalizers": None}})
    app.until(lambda: app.found is None, "the TApp is gone", LATE)
