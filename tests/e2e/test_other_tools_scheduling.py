"""TApps beside queues, evictions and vertical autoscalers, whose writes on pods the tests make.

The API server, its scheduler and its disruption controller are real. tests/e2e/README.md lists the
cases.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from .admission import Reshape
from .app import App, each, tapp, template
from .kube import Json, KubeError
from .kubelet_controls import Levers

pytestmark = pytest.mark.e2e

GATE, FINALIZER = "kueue.x-k8s.io/admission", "kueue.x-k8s.io/managed"
QUEUE = {"kueue.x-k8s.io/queue-name": "team"}
QUEUED = [
    "[JSONPatch{op: 'add', path: '/spec/schedulingGates', value: []},"
    " JSONPatch{op: 'add', path: '/spec/schedulingGates/0',"
    f" value: Object.spec.schedulingGates{{name: '{GATE}'}}}},"
    f" JSONPatch{{op: 'add', path: '/metadata/finalizers', value: ['{FINALIZER}']}},"
    f" JSONPatch{{op: 'add', path: '/metadata/labels/' + jsonpatch.escapeKey('{FINALIZER}'),"
    " value: 'true'}]"
]
"""Patches of Kueue's webhook for a plain pod of a queue."""


def queued_template(image: str = "app:1", **spec: Any) -> Json:
    """Returns a template whose pods belong to a queue."""
    made = template(image, **spec)
    made["metadata"]["labels"] |= QUEUE
    return made


def admit(app: App, number: int) -> None:
    """Admits a pod as Kueue does: removes the gate and adds the node selector of its flavor."""
    gates = app.pod(number)["spec"]["schedulingGates"]
    (place,) = (index for index, gate in enumerate(gates) if gate["name"] == GATE)
    flavor = {"op": "add", "path": "/spec/nodeSelector", "value": {"kubernetes.io/os": "linux"}}
    app.edit(number, [flavor, {"op": "remove", "path": f"/spec/schedulingGates/{place}"}])


def remove_finalizers(app: App, number: int) -> None:
    """Removes the finalizers of a pod, as Kueue does at the pod's end."""
    app.edit(number, {"metadata": {"finalizers": None}})


def pods_at_the_gate(app: App) -> list[int]:
    """Returns the instances whose pods wait for admission."""
    return [number for number, pod in app.pods.items() if pod["spec"].get("schedulingGates")]


@pytest.fixture
def queue(reshape: Reshape, app: App) -> Iterator[App]:
    """A TApp of three instances in a queue, all admitted.

    At the end, no finalizer holds its pods.
    """
    reshape(["CREATE"], QUEUED, lambda pod: "schedulingGates" in pod["spec"])
    app.apply(tapp(template=queued_template()))
    app.until(lambda: pods_at_the_gate(app) == [0, 1, 2], "all pods wait for admission").quiet()
    assert app.wrote(*each("create Pod", "web", 0, 1, 2))
    assert app.statuses == "Pending Pending Pending"
    assert app.idle()
    for number in range(3):
        admit(app, number)
    app.settle()
    app.news()
    yield app
    app.delete(propagationPolicy="Orphan")
    for number in app.pods:
        remove_finalizers(app, number)


def deletion_time(app: App, number: int) -> str | None:
    """Returns the deletionTimestamp of a pod; None if it is not being deleted or does not exist."""
    found = app.pods.get(number)
    return found["metadata"].get("deletionTimestamp") if found else None


def test_queued_pods_wait_for_admission_and_then_run(queue: App) -> None:
    """The fields that the queue added must stay through an update in place.

    A killed pod waits for the queue's finalizer. A pod that Kueue preempts, and so deletes, returns
    to the queue.
    """
    assert queue.idle()
    born = queue.uids()
    queue.patch(template=queued_template("app:2")).settle()
    assert queue.wrote_in_order(*each("update Pod", "web", 0, 1, 2))
    assert queue.uids() == born
    for pod in queue.pods.values():
        assert pod["metadata"]["finalizers"] == [FINALIZER]
        assert pod["metadata"]["labels"][FINALIZER] == "true"
        assert pod["spec"]["nodeSelector"] == {"kubernetes.io/os": "linux"}
    assert queue.idle()

    queue.patch(statuses={"1": "Killed"})
    queue.until(
        lambda: queue.statuses == "Running Killing Running", "instance 1 is Killing"
    ).quiet()
    assert queue.wrote("delete Pod web-1")
    assert queue.idle()
    remove_finalizers(queue, 1)
    queue.settle()
    assert queue.statuses == "Running Killed Running"
    assert queue.wrote()

    queue.delete_pod(2).until(lambda: bool(deletion_time(queue, 2)), "pod 2 is being deleted")
    remove_finalizers(queue, 2)
    queue.until(lambda: pods_at_the_gate(queue) == [2], "pod 2 waits for admission").quiet()
    assert queue.wrote("create Pod web-2")
    assert queue.idle()
    admit(queue, 2)
    queue.settle()


def test_replaced_pod_waits_for_admission_while_other_instances_wait_for_the_budget(
    queue: App,
) -> None:
    """The old pod stays Terminating until the queue removes its finalizer; then the new pod
    waits.
    """
    queue.watcher.begin()
    queue.patch(template=queued_template(enableServiceLinks=False))
    for number in range(3):
        queue.until(
            lambda n=number: bool(deletion_time(queue, n)), f"pod {number} is being deleted"
        ).quiet()  # type: ignore[misc]
        assert queue.wrote(f"delete Pod web-{number}")
        assert queue.idle()
        remove_finalizers(queue, number)
        queue.until(
            lambda n=number: pods_at_the_gate(queue) == [n], f"pod {number} waits for admission"
        ).quiet()  # type: ignore[misc]
        assert queue.wrote(f"create Pod web-{number}")
        assert queue.idle()
        admit(queue, number)
    queue.settle()
    assert queue.watcher.fewest == 2


GROUP = {"kueue.x-k8s.io/pod-group-name": "web"}
TOTAL = "kueue.x-k8s.io/pod-group-total-count"


def test_group_count_changes_only_with_the_template(app: App) -> None:
    """Another count is an update of an annotation in place, without a restart."""

    def grouped(count: str) -> Json:
        made = queued_template()
        made["metadata"]["labels"] |= GROUP
        return {**made, "metadata": {**made["metadata"], "annotations": {TOTAL: count}}}

    app.apply(tapp(replicas=2, template=grouped("2"))).settle()
    born = app.uids()
    app.news()
    app.patch(replicas=3).settle()
    assert counts(app) == ["2", "2", "2"]
    app.patch(template=grouped("3")).settle()
    assert counts(app) == ["3", "3", "3"]
    assert app.wrote("create Pod web-2", *each("update Pod", "web", 0, 1, 2))
    assert {**app.uids(), 2: ""} == {**born, 2: ""}
    assert app.restarts() == {0: 0, 1: 0, 2: 0}


def counts(app: App) -> list[str]:
    """Returns the group count on each pod."""
    return [pod["metadata"]["annotations"][TOTAL] for pod in app.pods.values()]


# --- evictions ------------------------------------------------------------------------------------


def create_budget(app: App, **spec: Any) -> None:
    """Creates a PodDisruptionBudget for the TApp's pods and waits until its controller allows one
    eviction.
    """
    selector = {"matchLabels": template()["metadata"]["labels"]}
    app.apply({"apiVersion": "policy/v1", "kind": "PodDisruptionBudget",
               "metadata": {"name": "web"}, "spec": {"selector": selector, **spec}})  # fmt: skip
    app.until(lambda: allowed_evictions(app) == 1, "one eviction is allowed")


def allowed_evictions(app: App) -> int | None:
    """Returns the number of evictions that the disruption controller allows now."""
    found = app.kube.get("policy/v1", "poddisruptionbudgets", app.namespace, "web")
    number: int | None = (found.get("status") or {}).get("disruptionsAllowed")
    return number


@pytest.mark.parametrize(
    "spec",
    [{"minAvailable": 2}, {"maxUnavailable": 1}, {"minAvailable": "60%"}],
    ids=["minAvailable 2", "maxUnavailable 1", "minAvailable 60%"],
)
def test_evictions_respect_a_disruption_budget(app: App, levers: Levers, spec: Json) -> None:
    """The second eviction is refused until the first instance is available again."""
    levers.ready_seconds = 2.0
    app.apply(tapp()).settle()
    create_budget(app, **spec)
    app.news()
    app.watcher.begin()
    born = app.uids()
    app.evict(0)
    with pytest.raises(KubeError, match="disruption budget"):
        app.evict(1)
    app.wait_until_replaced(0, born).settle()
    app.until(lambda: allowed_evictions(app) == 1, "the next one is allowed")
    app.evict(1)
    app.wait_until_replaced(1, born).settle()
    assert app.watcher.fewest == 2
    assert app.wrote(*each("create Pod", "web", 0, 1))
    assert app.idle()
    # The other budgets are relative to `spec.replicas`, which includes the killed instance.
    if spec != {"minAvailable": 2}:
        app.patch(statuses={"2": "Killed"}).settle()
        app.until(lambda: allowed_evictions(app) == 0, "no eviction is allowed")


def test_drain_moves_instances_off_the_node(app: App, kubectl: Callable[..., str]) -> None:
    """`kubectl drain` must accept a TApp as the controller of its pods, which replaces them."""
    made = template()
    made["metadata"]["labels"]["drained"] = app.namespace
    app.apply(tapp(template=made)).settle()
    create_budget(app, minAvailable=2)
    node = app.pod(0)["spec"]["nodeName"]
    try:
        kubectl("drain", node, "--ignore-daemonsets", "--timeout=60s",
                f"--pod-selector=drained={app.namespace}")  # fmt: skip
        app.settle()
        assert node not in {pod["spec"]["nodeName"] for pod in app.pods.values()}
        assert app.idle()
    finally:
        kubectl("uncordon", node)
