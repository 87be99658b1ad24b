"""Updates in place behind a Service: with the readiness gate no request is lost.

Each pod has an address of its own and serves HTTP; told to end, it finishes what it has begun. A
client asks those in turn that the Service's EndpointSlices call ready.
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
from .served import GRACE, INSTANCES, Served, gates

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]
OLD_GATE = "tkestack.io/InPlaceUpdate"
LONG = 6
"""Seconds of a drain that a test wants to be in the middle of."""


def without_status(found: Json) -> Json:
    """What a write of the pod itself could change, of the pod after it."""
    meta = {key: found["metadata"][key] for key in found["metadata"] if key != "resourceVersion"}
    return {"metadata": meta, "spec": found["spec"]}


@pytest.fixture(scope="module")
def network(running_node: RealNode) -> Iterator[None]:
    """Addresses for pods; before they go, the pods do."""
    with PodNetwork.for_pods(running_node):
        yield


@pytest.fixture
def served(network: None, real: Trial, note: list[str]) -> Iterator[Served]:  # noqa: ARG001
    """See Served; the client asks from the fixture on."""
    one = Served(real, note)
    with one.client:
        yield one


def test_no_request_is_lost(served: Served, note: list[str]) -> None:
    served.began().change("2").settle()
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


def test_no_instance_is_in_its_services_before_its_startup_probe_says_so(
    served: Served, note: list[str]
) -> None:
    """Readiness passes early, and the kubelet still calls the container before it started."""
    served.began(startupProbe=BOOT).change("late").settle()
    found = served.unstarted()
    note.append(f"in the slices without a started container: {found or 'none'}")
    assert found == {}
    assert served.nothing_lost()
    assert served.real.always_served(INSTANCES - 1)
    assert served.all_open()


def test_the_drain_counts_from_when_the_instance_has_left(served: Served) -> None:
    """A kubelet that is late with Ready does not cost the clients their time to notice.

    When it publishes that, a second may have passed since the time that it gives. Containers that
    are younger than ten seconds are not Ready for a moment when a kubelet starts anew, and what is
    not Ready is updated without a drain.
    """
    served.began().real.wait(10)
    kubelet = served.real.node.kubelet
    kubelet.stop()
    served.change("2").app.until(
        lambda: gates(served.app.pod(0)) == "False", "the gate closes", 120
    )
    served.real.wait(GRACE + 1)
    kubelet.start()
    served.settle().report("a kubelet that is late")
    pauses = served.pauses()
    assert served.nothing_lost()
    assert min(each.unready for each in pauses.values()) >= GRACE - 1, pauses
    assert served.all_open()


def test_an_edit_in_the_middle_of_a_drain(served: Served) -> None:
    """The instance goes to the newest template; the one in between never runs there."""
    served.began(grace=LONG).change("2").until_drained().change("3").settle()
    served.report("an edit in the middle of a drain")
    assert served.real.tags() == "3 3 3 3"
    assert "2" not in {each.version for each in served.client.requests}
    assert set(served.app.restarts().values()) == {1}
    assert served.nothing_lost()
    assert served.all_open()


def test_a_rollback_in_the_middle_of_a_drain(served: Served) -> None:
    """The gate opens again, and no container was stopped."""
    served.began(grace=LONG).change("2").until_drained().change("1").settle()
    served.report("a rollback in the middle of a drain")
    assert served.real.tags() == "1 1 1 1"
    assert set(served.app.restarts().values()) == {0}
    assert served.real.never_fewer_than(INSTANCES)
    assert served.nothing_lost()
    assert served.all_open()


def test_a_pause_in_the_middle_of_a_drain(served: Served) -> None:
    """The instance serves on with its old image while the roll is paused."""
    served.began(grace=LONG).change("2").until_drained()
    served.app.patch(updateStrategy={"paused": True})
    served.app.until(lambda: served.is_open(0), "0 is open again", 120)
    served.real.wait(LONG + 3)
    assert served.real.tags() == "1 1 1 1"
    assert served.real.never_fewer_than(INSTANCES)
    assert served.all_open()
    served.app.patch(updateStrategy={"paused": None})
    served.settle().report("a pause in the middle of a drain")
    assert served.real.tags() == "2 2 2 2"
    assert served.nothing_lost()
    assert served.all_open()


def test_a_kill_in_the_middle_of_a_drain(served: Served) -> None:
    """It goes at once, the others are updated, and when started it begins with an open gate."""
    served.began(grace=LONG).change("2").until_drained()
    served.app.patch(statuses={"0": "Killed"})
    served.app.until(lambda: 0 not in served.app.pods, "0 is gone", 120)
    served.app.until(lambda: served.app.images().count(":2") == 3, "the others go on", 120)
    served.app.patch(statuses=None)
    served.settle().report("a kill in the middle of a drain")
    assert served.real.tags() == "2 2 2 2"
    assert served.nothing_lost()
    assert served.all_open()


def test_an_update_costs_two_writes_of_the_pod_and_two_of_its_status(
    served: Served, cluster: Cluster
) -> None:
    """Drain and update; the gate closed and open.

    Metacontroller follows each write of a status by one of the pod that changes nothing.
    """
    served.began(gate=OLD_GATE)
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
    # A busy Metacontroller joins an idle write with the next one.
    idle_writes = {name: writes.pop("idle", 0) for name, writes in made.items()}
    assert max(idle_writes.values()) <= 2
    expected = {"update pods": 2, "update pods/status": 2}
    assert made == {f"web-{number}": expected for number in range(INSTANCES)}
    assert served.nothing_lost()
    assert served.app.idle()
