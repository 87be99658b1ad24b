"""Updates in place behind a Service: with the readiness gate, no request is lost.

Each pod has an address and serves HTTP. After SIGTERM it finishes its current requests. A client
sends requests in turn to the endpoints that the EndpointSlices of the Service show as ready.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import pytest

from .cluster import Cluster
from .kube import Json
from .metacontroller import USER
from .realnode.network import PodNetwork
from .realnode.node import RealNode
from .realnode.trial import Trial
from .realnode.workloads import BOOT
from .service_traffic import GRACE, INSTANCES, Served, gates

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]
OLD_GATE = "tkestack.io/InPlaceUpdate"
LONG = 6
"""Grace period in seconds, so that a test can act while an instance leaves the Service."""


def without_status(found: Json) -> Json:
    """Returns the parts of a pod that a write of the pod itself, and not of its status, can
    change.
    """
    meta = {key: found["metadata"][key] for key in found["metadata"] if key != "resourceVersion"}
    return {"metadata": meta, "spec": found["spec"]}


@pytest.fixture(scope="module")
def network(running_node: RealNode) -> Iterator[None]:
    """Gives addresses to pods, and waits at the end until they are deleted."""
    with PodNetwork.for_pods(running_node):
        yield


@pytest.fixture
def served(network: None, real: Trial, note: list[str]) -> Iterator[Served]:  # noqa: ARG001
    """A TApp behind a Service; its client sends requests from the beginning."""
    one = Served(real, note)
    with one.client:
        yield one


def test_update_behind_a_service_loses_no_request(served: Served, note: list[str]) -> None:
    served.create().change("2").settle()
    served.report("with the gate")
    assert served.nothing_lost()
    assert served.real.tags() == "2 2 2 2"
    assert set(served.app.restarts().values()) == {1}
    assert {each.version for each in served.client.requests} == {"1", "2"}
    pauses = served.pauses()
    assert len(pauses) == INSTANCES
    assert min(each.unready for each in pauses.values()) >= GRACE - 0.5, pauses
    note.append(
        "updated "
        + ", ".join(f"{each.closed:.1f} s" for each in pauses.values())
        + " after their readiness gates had closed, out of the EndpointSlices for "
        + ", ".join(f"{each.out:.1f} s" for each in pauses.values())
    )
    assert served.real.always_served(INSTANCES - 1)
    assert served.all_open()


def test_instance_enters_its_services_only_after_its_startup_probe(
    served: Served, note: list[str]
) -> None:
    """Readiness passes early, while the kubelet does not count the container as started yet."""
    served.create(startupProbe=BOOT).change("late").settle()
    found = served.unstarted()
    note.append(f"in the slices without a started container: {found or 'none'}")
    assert found == {}
    assert served.nothing_lost()
    assert served.real.always_served(INSTANCES - 1)
    assert served.all_open()


def test_grace_period_begins_when_the_instance_has_left_the_service(served: Served) -> None:
    """If the kubelet publishes Ready late, clients still need the grace period after it.

    The time in the condition may be a second old when the kubelet publishes it. A restarted kubelet
    briefly marks containers younger than ten seconds as not Ready. Instances that are not Ready are
    updated without leaving the Service first, so the test waits ten seconds.
    """
    served.create().real.wait(10)
    kubelet = served.real.node.kubelet
    kubelet.stop()
    served.change("2").app.until(
        lambda: gates(served.app.pod(0)) == "False", "the readiness gate closes", 120
    )
    served.real.wait(GRACE + 1)
    kubelet.start()
    served.settle().report("a kubelet that is late")
    pauses = served.pauses()
    assert served.nothing_lost()
    assert min(each.unready for each in pauses.values()) >= GRACE - 1, pauses
    assert served.all_open()


def test_instance_that_leaves_its_services_gets_the_newest_template(served: Served) -> None:
    """The instance must get the newest template, and must not run the one in between."""
    served.create(grace=LONG).change("2").until_drained().change("3").settle()
    served.report("an edit in the middle of a drain")
    assert served.real.tags() == "3 3 3 3"
    assert "2" not in {each.version for each in served.client.requests}
    assert set(served.app.restarts().values()) == {1}
    assert served.nothing_lost()
    assert served.all_open()


def test_instance_returns_to_its_services_without_a_restart_after_a_rollback(
    served: Served,
) -> None:
    """The gate must open again without any container being stopped."""
    served.create(grace=LONG).change("2").until_drained().change("1").settle()
    served.report("a rollback in the middle of a drain")
    assert served.real.tags() == "1 1 1 1"
    assert set(served.app.restarts().values()) == {0}
    assert served.real.never_fewer_than(INSTANCES)
    assert served.nothing_lost()
    assert served.all_open()


def test_instance_returns_to_its_services_while_the_rollout_is_paused(served: Served) -> None:
    """While the rollout is paused, the instance must serve with its old image."""
    served.create(grace=LONG).change("2").until_drained()
    served.app.patch(updateStrategy={"paused": True})
    served.app.until(lambda: served.is_open(0), "instance 0 is in the Service again", 120)
    served.real.wait(LONG + 3)
    assert served.real.tags() == "1 1 1 1"
    assert served.real.never_fewer_than(INSTANCES)
    assert served.all_open()
    served.app.patch(updateStrategy={"paused": None})
    served.settle().report("a pause in the middle of a drain")
    assert served.real.tags() == "2 2 2 2"
    assert served.nothing_lost()
    assert served.all_open()


def test_instance_killed_while_it_leaves_its_services_ends_at_once(served: Served) -> None:
    """The instance ends at once, the others are updated, and its next pod starts with an
    open gate.
    """
    served.create(grace=LONG).change("2").until_drained()
    served.app.patch(statuses={"0": "Killed"})
    served.app.until(lambda: 0 not in served.app.pods, "the pod of instance 0 is gone", 120)
    served.app.until(
        lambda: served.app.images().count(":2") == 3, "the other instances are updated", 120
    )
    served.app.patch(statuses=None)
    served.settle().report("a kill in the middle of a drain")
    assert served.real.tags() == "2 2 2 2"
    assert served.nothing_lost()
    assert served.all_open()


def test_update_with_a_gate_costs_two_writes_of_the_pod_and_two_of_its_status(
    served: Served, cluster: Cluster
) -> None:
    """The writes are the annotation and the update of the pod, and the gate in its status, closed
    and open.

    After each write of a status, Metacontroller writes the pod once more without a change.
    """
    served.create(gate=OLD_GATE)
    log = cluster.audit
    if log is None:
        pytest.skip("no audit log")
    mark = log.mark()
    served.change("2").settle()
    last: dict[str, Json] = {}
    made: dict[str, Counter[str]] = {}
    for write in log.writes(mark, namespace=served.app.namespace, resource="pods", user=USER):
        if write.accepted:
            left = without_status(write.response or {})
            idle = write.what == "update pods" and last.get(write.name) == left
            made.setdefault(write.name, Counter())["idle" if idle else write.what] += 1
            last[write.name] = left
    served.report(f"writes of each pod: {dict(made['web-0'])}")
    # A busy Metacontroller merges a write without a change with the next one.
    idle_writes = {name: writes.pop("idle", 0) for name, writes in made.items()}
    assert max(idle_writes.values()) <= 2
    expected = {"update pods": 2, "update pods/status": 2}
    assert made == {f"web-{number}": expected for number in range(INSTANCES)}
    assert served.nothing_lost()
    assert served.app.idle()
