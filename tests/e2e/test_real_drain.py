"""Updates in place behind a Service: with the readiness gate no request is lost.

Each pod has an address of its own and serves HTTP; told to end, it finishes what it has begun. A
client asks those in turn that the Service's EndpointSlices call ready.
"""

from __future__ import annotations

import itertools
import time
from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

import pytest

from .cluster import Cluster
from .kube import Json
from .metacontroller import USER
from .pods import is_ready
from .realnode.client import PORT, Client, service
from .realnode.network import PodNetwork
from .realnode.node import RealNode
from .realnode.trial import Trial
from .realnode.workloads import BOOT, container, environment, tag_of

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]
GATE = "apps.tkestack.io/InPlaceUpdateReady"
OLD_GATE = "tkestack.io/InPlaceUpdate"
DRAIN = "apps.tkestack.io/drain"
REVISION = "tapp_template_hash_key"
INSTANCES = 4
GRACE = 2
LONG = 4
"""Seconds of a drain that a test wants to be in the middle of."""


def main(tag: str, **probes: Json) -> Json:
    """The container: it listens a second after its start, and its probe tells so."""
    probes = {"readinessProbe": {"tcpSocket": {"port": PORT}, "periodSeconds": 1}, **probes}
    return container(tag, env=environment(PORT=PORT, START_SECONDS=1), **probes)


def gates(found: Json, gate: str = GATE) -> str:
    """The status of the pod's gate, "" where nobody has written it yet."""
    conditions = found["status"].get("conditions") or []
    return next((str(each["status"]) for each in conditions if each["type"] == gate), "")


def without_status(found: Json) -> Json:
    """What a write of the pod itself could change, of the pod after it."""
    meta = {key: found["metadata"][key] for key in found["metadata"] if key != "resourceVersion"}
    return {"metadata": meta, "spec": found["spec"]}


class Pause(NamedTuple):
    """Seconds from steps of an instance's departure to its update; 0 if a step came later."""

    closed: float
    """Seconds from the closing of its readiness gate to its update."""
    unready: float
    """Seconds from the first published status that is not Ready to its update."""
    out: float
    """Seconds from its removal from the EndpointSlices to its update."""


class Served:
    """A TApp behind a Service, with a client at work, on the real node."""

    def __init__(self, real: Trial, note: list[str]) -> None:
        self.real = real
        self.app = real.app
        self.client = Client(real.app.kube, real.app.namespace, "web")
        self.pod: Json = {"hostNetwork": False, "terminationGracePeriodSeconds": 10}
        self.probes: dict[str, Json] = {}
        self.began_at = 0.0
        self._grace = GRACE
        self._note = note

    def began(self, gate: str = GATE, grace: int = GRACE, **probes: Json) -> Served:
        """Four instances of image 1, all of them asked."""
        self.pod["readinessGates"] = [{"conditionType": gate}]
        self._grace = grace
        strategy = {"maxUnavailable": 1, "inPlaceUpdateStrategy": {"gracePeriodSeconds": grace}}
        self.app.apply(service("web", {"app": "web"}))
        self.probes = probes
        first = main("1", **probes)
        self.real.began(first, replicas=INSTANCES, pod=self.pod, updateStrategy=strategy)
        self.app.until(lambda: len(self.client.ready) == INSTANCES, "all are ready")
        self.real.wait(1)
        self.began_at = time.monotonic()
        return self

    def change(self, tag: str) -> Served:
        """Another image, without waiting."""
        self.real.change(main(tag, **self.probes), **self.pod)
        return self

    def settle(self) -> Served:
        """Waits until the TApp is complete, and the client asks all instances again."""
        self.app.settle(150)
        self.app.until(lambda: len(self.client.ready) == INSTANCES, "all are ready")
        self.real.wait(2)
        return self

    def drained(self, number: int) -> bool:
        """True if the instance is out of the Service by its gate, and not updated yet."""
        found = self.app.pod(number)
        name = found["metadata"]["name"]
        old = tag_of(found["spec"]["containers"][0]["image"]) == "1"
        return old and gates(found) == "False" and name not in self.client.ready

    def until_drained(self, number: int = 0) -> Served:
        """Waits for the middle of an instance's drain."""
        self.app.until(lambda: self.drained(number), f"{number} is drained", 60)
        return self

    def is_open(self, number: int) -> bool:
        """True if nothing keeps the instance out of the Service."""
        found = self.app.pod(number)
        meta = found["metadata"]
        drain = (meta.get("annotations") or {}).get(DRAIN)
        return (
            gates(found) == "True" and is_ready(found) and drain in (None, meta["labels"][REVISION])
        )

    def all_open(self) -> bool:
        """True if no instance is left drained."""
        left = [number for number in self.app.pods if not self.is_open(number)]
        assert left == [], {number: self.app.pod(number)["status"] for number in left}
        return True

    def nothing_lost(self) -> bool:
        """True if every request to the pods that left the Service in time was answered."""
        late = self.late()
        lost = [str(each) for each in self.client.failures if each.pod not in late]
        assert lost == [], f"{len(lost)} of {len(self.client.requests)}:\n" + "\n".join(lost)
        return True

    def late(self) -> dict[str, float]:
        """Returns the pods that a slow control plane left in the Service until their update.

        The value is the time in seconds that the control plane took. The service waits for the
        grace period after the pod stopped being Ready, and cannot know more. On a busy machine the
        EndpointSlices may change later than that, and then clients lose requests.
        """
        return {
            name: pause.unready - pause.out
            for name, pause in self.pauses().items()
            # Twice the client's lag: the last requests need time for their replies.
            if pause.unready >= self._grace - 1 and pause.out < 2 * self.client.lag
        }

    def report(self, name: str) -> None:
        """A line of the report: how many requests there were, and how many failed."""
        every, failed = self.client.requests, self.client.failures
        longest = max(each.ended - each.began for each in every)
        why = Counter(each.failure.partition(":")[0] for each in failed)
        words = f" ({', '.join(f'{count} {word}' for word, count in why.items())})" if why else ""
        self._note.append(
            f"{name}: {len(failed)} of {len(every)} requests failed{words},"
            f" the longest took {longest:.1f} s"
        )
        for pod, seconds in self.late().items():
            self._note.append(f"{name}: {pod} left the EndpointSlices only after {seconds:.1f} s")

    def pauses(self) -> dict[str, Pause]:
        """Returns how long before its update each pod had left the Service."""
        found = {}
        for name, ended in self.real.end_of("1").items():
            times: dict[str, float] = {}
            for each in self.real.history.of(name):
                at = self.real.history.begun + each.seconds
                if at > self.began_at and gates(each.pod) == "False":
                    times.setdefault("closed", at)
                if at > self.began_at and not is_ready(each.pod):
                    times.setdefault("unready", at)
                if tag_of(each.pod["spec"]["containers"][0]["image"]) != "1":
                    times.setdefault("updated", at)
            # Without an update, the end of the container (such as by a kill) takes its place.
            gone = self.real.witness.begun + ended
            updated = min(times.get("updated", gone), gone)
            closed, unready = (
                updated - min(times.get(step, updated), updated) for step in ("closed", "unready")
            )
            found[name] = Pause(closed, unready, updated - self.client.absent(name, updated))
        return found

    def unstarted(self) -> dict[str, float]:
        """Pod -> seconds that it was in the slices while no container of it had started."""
        witness, found = self.real.witness, dict[str, float]()
        moments = [(witness.begun + each.seconds, each) for each in list(witness.timeline)]
        changes = {at for at, _ in moments} | {at for at, _ in list(self.client.views)}
        times = sorted(at for at in changes if at > self.began_at)
        for since, until in itertools.pairwise(times):
            moment = [each for at, each in moments if at <= since][-1]
            started = {each.pod for each in moment.running if each.serving}
            for pod in set(self.client.view(since).values()) - started:
                found[pod] = found.get(pod, 0.0) + until - since
        return found


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
    served.change("2").app.until(lambda: gates(served.app.pod(0)) == "False", "the gate closes", 30)
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
    served.app.until(lambda: served.is_open(0), "0 is open again", 30)
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
    served.app.until(lambda: 0 not in served.app.pods, "0 is gone", 30)
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
    expected = {"update pods": 2, "update pods/status": 2, "idle": 2}
    assert made == {f"web-{number}": expected for number in range(INSTANCES)}
    assert served.nothing_lost()
    assert served.app.idle()
