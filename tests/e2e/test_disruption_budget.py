"""The budget of evictions (`spec.disruptionBudget`), with the real API server and its disruption
controller.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from .app import App, each, example, tapp, template
from .kube import Json, KubeError
from .kubelet_controls import Levers
from .pods import is_ready

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600), pytest.mark.usefixtures("exposing")]
LATE = 60.0
"""Seconds to wait for a message; the service reports a missing PodDisruptionBudget after 30 s."""


def guarded(most: int | str = 1, **spec: Any) -> Json:
    """Returns a TApp whose budget of evictions is `most`."""
    return tapp(disruptionBudget={"maxUnavailable": most}, **spec)


def budgets(app: App) -> list[Json]:
    """Returns the PodDisruptionBudgets of the namespace."""
    return app.kube.list_all("policy/v1", "poddisruptionbudgets", app.namespace)


def numbers(app: App) -> tuple[int, int] | None:
    """Returns `minAvailable`, and how many evictions the disruption controller allows now.

    Returns None if there is no PodDisruptionBudget, or if the disruption controller has not acted
    on it yet.
    """
    for found in budgets(app):
        status = found.get("status") or {}
        if status.get("observedGeneration") == found["metadata"]["generation"]:
            return found["spec"]["minAvailable"], status["disruptionsAllowed"]
    return None


def wait_for(app: App, least: int, evictions: int) -> None:
    """Waits until `minAvailable` is `least`, and this number of evictions is allowed."""
    what = f"minAvailable is {least}, and {evictions} evictions are allowed"
    app.until(lambda: numbers(app) == (least, evictions), what)


def eviction_status(app: App, id: int) -> int:
    """Evicts the pod of an instance, and returns the status code of the eviction API."""
    try:
        app.evict(id)
    except KubeError as error:
        return error.status
    return 201


def not_applied(app: App) -> str:
    """Returns the message of the condition."""
    return app.condition("DisruptionBudgetNotApplied")


def test_killed_instance_leaves_room_for_one_eviction(app: App, levers: Levers) -> None:
    """With a PodDisruptionBudget that counts from `spec.replicas`, no eviction would be allowed."""
    app.apply(guarded(statuses={"2": "Killed"})).settle()
    wait_for(app, 1, 1)
    levers.ready_seconds = 3.0
    app.watcher.begin()
    app.news()
    born = app.uids()
    assert eviction_status(app, 0) == 201
    assert eviction_status(app, 1) == 429
    app.wait_until_replaced(0, born)
    assert eviction_status(app, 1) == 429
    app.settle()
    wait_for(app, 1, 1)
    assert eviction_status(app, 1) == 201
    app.wait_until_replaced(1, born).settle()
    assert app.watcher.fewest == 1
    assert app.wrote(*each("create Pod", "web", 0, 1))
    app.patch(statuses=None).settle()
    wait_for(app, 2, 1)
    app.patch(replicas=0).quiet()
    wait_for(app, 0, 0)
    assert not_applied(app) == ""
    assert app.idle()


SIZES = {
    "one": (1, 1, (0, 1), (0, 0)),
    "three": (3, 1, (2, 1), (1, 1)),
    "twelve by percent": (12, "30%", (8, 4), (7, 4)),
    "none allowed": (3, 0, (3, 0), (2, 0)),
}


@pytest.mark.parametrize("case", SIZES)
def test_number_follows_the_instances_that_should_run(app: App, case: str) -> None:
    """The last instance is killed, and the number of evictions is checked before and after."""
    replicas, most, before, after = SIZES[case]
    app.apply(guarded(most, replicas=replicas)).settle()
    wait_for(app, *before)
    assert eviction_status(app, 0) == (201 if before[1] else 429)
    app.settle()
    wait_for(app, *before)
    app.patch(statuses={str(replicas - 1): "Killed"}).settle()
    wait_for(app, *after)
    assert app.idle()


def test_drain_goes_on_beside_a_killed_instance(app: App, kubectl: Callable[..., str]) -> None:
    made = template()
    made["metadata"]["labels"]["drained"] = app.namespace
    app.apply(guarded(template=made, replicas=4, statuses={"3": "Killed"})).settle()
    wait_for(app, 2, 1)
    app.watcher.begin()
    node = app.pod(0)["spec"]["nodeName"]
    try:
        kubectl("drain", node, "--ignore-daemonsets", "--timeout=90s",
                f"--pod-selector=drained={app.namespace}")  # fmt: skip
        app.settle()
        assert node not in {pod["spec"]["nodeName"] for pod in app.pods.values()}
        assert app.watcher.fewest >= 2
        assert app.idle()
    finally:
        kubectl("uncordon", node)


def test_updates_and_evictions_share_the_budget(app: App, levers: Levers) -> None:
    """While an update in place is under way no eviction is allowed, and no update begins while an
    evicted instance is away.
    """
    app.apply(guarded()).settle()
    wait_for(app, 2, 1)
    app.watcher.begin()
    levers.unready_images.add("app:2")
    app.patch(template=template("app:2"))
    app.until(lambda: not is_ready(app.pod(0)), "the first update is under way")
    # Metacontroller writes pod and budget one after the other, in any order.
    wait_for(app, 2, 0)
    assert eviction_status(app, 2) == 429
    app.patch(template=template("app:3")).settle()
    assert app.restarts() == {0: 2, 1: 1, 2: 1}
    wait_for(app, 2, 1)
    born = app.uids()
    assert eviction_status(app, 2) == 201
    app.wait_until_replaced(2, born)
    app.patch(template=template("app:4")).settle()
    wait_for(app, 2, 1)
    assert app.watcher.fewest == 2
    assert app.idle()


def test_instance_that_is_not_ready_may_always_be_evicted(app: App, levers: Levers) -> None:
    levers.unready_images.add("app:bad")
    app.apply(guarded(templatePool={"bad": template("app:bad")}, templates={"0": "bad"}))
    # The API server lets every eviction of a Pending pod pass.
    app.until(
        lambda: [pod["status"]["phase"] for pod in app.pods.values()] == ["Running"] * 3,
        "all pods run",
    )
    wait_for(app, 2, 0)
    assert eviction_status(app, 1) == 429
    assert eviction_status(app, 0) == 201


def test_foreign_budget_of_the_same_name_is_reported_and_left_unchanged(app: App) -> None:
    spec = {"maxUnavailable": 5, "selector": {"matchLabels": {"app": "mine"}}}
    app.kube.apply(
        {
            "apiVersion": "policy/v1",
            "kind": "PodDisruptionBudget",
            "metadata": {"name": "web", "namespace": app.namespace},
            "spec": spec,
        }
    )
    app.apply(guarded())
    app.until(lambda: "has been requested since" in not_applied(app), "it is reported", LATE)
    assert len(app.pods) == 3
    (found,) = budgets(app)
    assert found["spec"] == spec
    assert "ownerReferences" not in found["metadata"]
    app.kube.delete("policy/v1", "poddisruptionbudgets", app.namespace, "web")
    # No request contained that PodDisruptionBudget, so its deletion is no event.
    app.trigger_sync()
    app.until(lambda: not_applied(app) == "", "the TApp gets its own", LATE)
    wait_for(app, 2, 1)


def test_budget_is_deleted_with_the_field_and_with_the_tapp(app: App) -> None:
    app.apply(*example("disruption-budget"))
    app.name = "guarded"
    app.settle()
    wait_for(app, 3, 1)
    app.patch(disruptionBudget=None)
    app.until(lambda: not budgets(app), "the PodDisruptionBudget is gone")
    app.patch(disruptionBudget={})
    wait_for(app, 3, 1)
    app.delete()
    app.until(lambda: not budgets(app), "the PodDisruptionBudget is gone")
