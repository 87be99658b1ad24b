"""Automatic rollback (`updateStrategy.onDeadline: Rollback`) on the real API server."""

from __future__ import annotations

from typing import Any

import pytest

from .app import App, tapp, template
from .kube import Json
from .kubelet_controls import Levers

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]
DEADLINE = 4
RETRY = "apps.tkestack.io/retry"


def rolling(replicas: int = 3, strategy: Json | None = None, **spec: Any) -> Json:
    """Returns a TApp whose stuck rollouts are rolled back after some seconds."""
    return tapp(
        replicas=replicas,
        progressDeadlineSeconds=DEADLINE,
        updateStrategy={"onDeadline": "Rollback", **(strategy or {})},
        **spec,
    )


def rolled_back(app: App, replicas: int = 3) -> bool:
    """Returns True if all instances have returned to the image `app:1`."""
    images, stalled = app.images().split(), app.condition("Stalled")
    return (
        images == ["app:1"] * replicas
        and stalled.startswith("True RolledBack")
        and "run revision" in stalled
        and app.status["readyReplicas"] == replicas
    )


def fail(app: App, levers: Levers, replicas: int = 3) -> None:
    """Rolls out the image `app:bad`, which never becomes Ready, and waits for the rollback."""
    levers.unready_images.add("app:bad")
    app.patch(template=template("app:bad"))
    app.until(lambda: rolled_back(app, replicas), "the rollout is rolled back", 60)


@pytest.mark.parametrize("replicas", [1, 3, 12])
def test_stuck_rollout_returns_in_place_and_stays(app: App, levers: Levers, replicas: int) -> None:
    app.apply(rolling(replicas)).settle()
    born, before = app.uids(), app.status["currentRevision"]
    app.watcher.begin()
    fail(app, levers, replicas)
    assert app.uids() == born
    assert app.watcher.fewest >= replicas - 1
    status = app.status
    assert status["currentRevision"] == before
    assert [*status["rolledBack"]] == [status["updateRevision"]]
    found = app.found or {}
    assert found["spec"]["template"]["spec"]["containers"][0]["image"] == "app:bad"
    app.quiet()
    app.news()
    # Further syncs, also after another deadline, write nothing.
    app.trigger_sync()
    app.quiet()
    assert app.writes() == []


def test_retry_and_another_template_end_a_rollback(app: App, levers: Levers) -> None:
    app.apply(rolling()).settle()
    fail(app, levers)
    ((revision, note),) = app.status["rolledBack"].items()
    value = f"{revision}/{note.partition(': ')[0]}"
    # The cause has not gone, so the retry fails, too. The same annotation serves only once.
    app.kube.patch(app.path, {"metadata": {"annotations": {RETRY: value}}})
    app.until(lambda: "app:bad" in app.images(), "the revision is rolled out once more")
    app.until(lambda: rolled_back(app), "the retry is rolled back", 60)
    app.patch(template=template("app:2")).settle()
    assert app.images() == "app:2 app:2 app:2"
    assert "rolledBack" not in app.status
    assert app.condition("Stalled") == ""


def test_new_instances_and_lost_pods_get_the_revision_before(app: App, levers: Levers) -> None:
    app.apply(rolling()).settle()
    fail(app, levers)
    born = app.uids()
    app.patch(replicas=4).delete_pod(1)
    app.wait_until_replaced(1, born)
    app.until(lambda: rolled_back(app, 4), "all instances run the revision before", 60)


def test_first_rollout_has_nothing_to_return_to(app: App, levers: Levers) -> None:
    levers.unready_images.add("app:bad")
    app.apply(rolling(template=template("app:bad")))
    app.until(
        lambda: "It is not rolled back" in app.condition("Stalled"), "the deadline passes", 60
    )
    assert app.images() == "app:bad app:bad app:bad"


def test_partition_and_rollback_leave_all_instances_at_the_revision_before(
    app: App, levers: Levers
) -> None:
    app.apply(rolling(strategy={"partition": 1})).settle()
    levers.unready_images.add("app:bad")
    app.patch(template=template("app:bad"))
    app.until(lambda: "rolledBack" in app.status, "the rollback is noted", 60)
    app.until(lambda: rolled_back(app), "the instances return", 60)
    assert app.status["kept"]
