"""A TApp behind a Service on the real node, with a client that sends requests continuously."""

from __future__ import annotations

import itertools
import time
from collections import Counter
from datetime import datetime
from math import inf
from typing import NamedTuple

from .kube import Json
from .pods import is_ready
from .realnode.client import PORT, Client, service
from .realnode.trial import Trial
from .realnode.workloads import container, environment, tag_of

GATE = "apps.tkestack.io/InPlaceUpdateReady"
DRAIN = "apps.tkestack.io/drain"
REVISION = "tapp_template_hash_key"
INSTANCES = 4
GRACE = 4
"""Seconds between the change of a pod's Ready condition and its update."""


def main(tag: str, **probes: Json) -> Json:
    """Returns the container of a server behind a Service; `probes` are its probes.

    The server listens one second after its start, and its readiness probe succeeds from then on.
    """
    probes = {"readinessProbe": {"tcpSocket": {"port": PORT}, "periodSeconds": 1}, **probes}
    return container(tag, env=environment(PORT=PORT, START_SECONDS=1), **probes)


def gates(found: Json, gate: str = GATE) -> str:
    """Returns the status of a readiness gate of a pod, or an empty string if the pod has no such
    condition.
    """
    conditions = found["status"].get("conditions") or []
    return next((str(each["status"]) for each in conditions if each["type"] == gate), "")


class Pause(NamedTuple):
    """Seconds between the steps of an instance that leaves the Service and its update; 0 if a step
    came later.
    """

    closed: float
    """Seconds from the closing of its readiness gate to its update."""
    unready: float
    """Seconds from the change of its Ready condition to its update."""
    out: float
    """Seconds from its removal from the EndpointSlices to its update."""


class Served:
    """A TApp behind a Service on the real node, with a client that sends requests."""

    def __init__(self, real: Trial, note: list[str]) -> None:
        self.real = real
        self.app = real.app
        self.client = Client(real.app.kube, real.app.namespace, "web")
        self.pod: Json = {"hostNetwork": False, "terminationGracePeriodSeconds": 10}
        self.probes: dict[str, Json] = {}
        self.began_at = 0.0
        self._grace = GRACE
        self._note = note

    def create(self, gate: str = GATE, grace: int = GRACE, **probes: Json) -> Served:
        """Creates four instances of image 1, and waits until the client sends requests to all of
        them.
        """
        self.pod["readinessGates"] = [{"conditionType": gate}]
        self._grace = grace
        strategy = {"maxUnavailable": 1, "inPlaceUpdateStrategy": {"gracePeriodSeconds": grace}}
        self.app.apply(service("web", {"app": "web"}))
        self.probes = probes
        first = main("1", **probes)
        self.real.create(first, replicas=INSTANCES, pod=self.pod, updateStrategy=strategy)
        self.app.until(lambda: len(self.client.ready) == INSTANCES, "all are ready")
        self.real.wait(1)
        self.began_at = time.monotonic()
        return self

    def change(self, tag: str) -> Served:
        """Sets another image, without waiting."""
        self.real.change(main(tag, **self.probes), **self.pod)
        return self

    def settle(self) -> Served:
        """Waits until the TApp is complete and the client sends requests to all instances again."""
        self.app.settle(150)
        self.app.until(lambda: len(self.client.ready) == INSTANCES, "all are ready")
        self.real.wait(2)
        return self

    def drained(self, number: int) -> bool:
        """Returns True if the instance has left the Service by its readiness gate and is not
        updated yet.
        """
        found = self.app.pod(number)
        name = found["metadata"]["name"]
        old = tag_of(found["spec"]["containers"][0]["image"]) == "1"
        return old and gates(found) == "False" and name not in self.client.ready

    def until_drained(self, number: int = 0) -> Served:
        """Waits until an instance has left the Service and is not updated yet."""
        self.app.until(lambda: self.drained(number), f"instance {number} has left the Service", 60)
        return self

    def is_open(self, number: int) -> bool:
        """Returns True if neither readiness gate, readiness nor drain keeps the instance out of the
        Service.
        """
        found = self.app.pod(number)
        meta = found["metadata"]
        drain = (meta.get("annotations") or {}).get(DRAIN)
        return (
            gates(found) == "True" and is_ready(found) and drain in (None, meta["labels"][REVISION])
        )

    def all_open(self) -> bool:
        """Asserts that all instances are in the Service. Returns True."""
        left = [number for number in self.app.pods if not self.is_open(number)]
        assert left == [], {number: self.app.pod(number)["status"] for number in left}
        return True

    def nothing_lost(self) -> bool:
        """Asserts that no request to a pod failed, except to pods in `late`. Returns True."""
        late = self.late()
        lost = [str(each) for each in self.client.failures if each.pod not in late]
        assert lost == [], f"{len(lost)} of {len(self.client.requests)}:\n" + "\n".join(lost)
        return True

    def late(self) -> dict[str, float]:
        """Returns the pods of which the client heard too late that they were leaving the Service.

        The value is the time in seconds from the change of the pod's Ready condition to the news.
        The service waits for the grace period after that change, and cannot know more. On a busy
        machine kubelet, control plane and client may need longer, and then requests are lost.
        """
        clock, found = time.time() - time.monotonic(), {}
        for name in self.pauses():
            seconds = clock + self.client.left(name, self.began_at) - self.unready_since(name)
            # Twice the client's lag: the last requests need time for their replies.
            if seconds > self._grace - 2 * self.client.lag:
                found[name] = seconds
        return found

    def unready_since(self, name: str) -> float:
        """Returns when the pod's Ready condition became False, in seconds since the epoch.

        Conditions have no fractions of a second. Infinity if the pod has always been Ready.
        """
        for each in self.real.history.of(name):
            if self.real.history.begun + each.seconds > self.began_at and not is_ready(each.pod):
                conditions = each.pod["status"].get("conditions") or []
                times = [one["lastTransitionTime"] for one in conditions if one["type"] == "Ready"]
                return min((datetime.fromisoformat(at).timestamp() for at in times), default=inf)
        return inf

    def report(self, name: str) -> None:
        """Adds a line to the report: the numbers of requests and of failed requests."""
        every, failed = self.client.requests, self.client.failures
        longest = max(each.ended - each.began for each in every)
        why = Counter(each.failure.partition(":")[0] for each in failed)
        words = f" ({', '.join(f'{count} {word}' for word, count in why.items())})" if why else ""
        self._note.append(
            f"{name}: {len(failed)} of {len(every)} requests failed{words},"
            f" the longest took {longest:.1f} s"
        )
        for pod, seconds in self.late().items():
            self._note.append(f"{name}: the client heard of {pod} only after {seconds:.1f} s")

    def pauses(self) -> dict[str, Pause]:
        """Returns for each pod how long before its update the pod had begun to leave the
        Service.
        """
        clock, found = time.time() - time.monotonic(), {}
        for name, ended in self.real.end_of("1").items():
            times: dict[str, float] = {}
            for each in self.real.history.of(name):
                at = self.real.history.begun + each.seconds
                if at > self.began_at and gates(each.pod) == "False":
                    times.setdefault("closed", at)
                if tag_of(each.pod["spec"]["containers"][0]["image"]) != "1":
                    times.setdefault("updated", at)
            # Without an update, the end of the container (such as by a kill) takes its place.
            gone = self.real.witness.begun + ended
            updated = min(times.get("updated", gone), gone)
            found[name] = Pause(
                max(0.0, updated - times.get("closed", updated)),
                max(0.0, clock + updated - self.unready_since(name)),
                updated - self.client.absent(name, updated),
            )
        return found

    def unstarted(self) -> dict[str, float]:
        """Returns pod name -> seconds for which EndpointSlices listed a pod before its container
        had started.
        """
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
