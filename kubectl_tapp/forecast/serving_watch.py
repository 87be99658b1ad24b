"""Follows which instances serve in a simulation, and why the other instances do not.

`ServingWatch` reads the simulated cluster after every step of the simulated clock. An instance
*serves* if its pod is Ready and not being deleted, its processes run the images of the pod's spec,
and their probes pass. It is *available* if it has served for minReadySeconds. If it stops serving
because Metacontroller has written to its pod, the cause is `UPDATE`, otherwise `FAULT`.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from math import floor

from kubectl_tapp.base.observed import Document
from simulator.api.store import Event
from simulator.recording import Write
from simulator.world import World
from tapp.kube.restarts import COMPLETED
from tapp.storage.claims import instance_number
from tapp.words.vocabulary import DRAIN

UPDATE, FAULT, NEW = "update", "fault", "new"
"""Causes of an outage: an update stopped the instance, a fault stopped the instance, or the
instance has never served.
"""


@dataclass(frozen=True)
class Outage:
    """The cause of one instance's outage, with the details of the update if an update is
    the cause.
    """

    cause: str  # `UPDATE`, `FAULT` or `NEW`
    # if the cause is `UPDATE`: the generation of the TApp whose sync decided the update
    generation: int = 0
    # if the cause is `UPDATE`: True if the instance was available before
    was_available: bool = False


@dataclass(frozen=True)
class Away:
    """The instances that should run and do not serve at one time, grouped by cause."""

    at: float  # seconds since the epoch
    by_update: tuple[int, ...] = ()  # numbers of the instances that an update stopped
    by_fault: tuple[int, ...] = ()  # numbers of the instances that a fault stopped
    new: tuple[int, ...] = ()  # numbers of the instances that have never served

    @property
    def count(self) -> int:
        """The number of instances that do not serve."""
        return len(self.by_update) + len(self.by_fault) + len(self.new)


@dataclass
class ServingWatch:
    """Follows which instances of one TApp serve in a simulated cluster.

    Attributes:
        world: the simulated cluster.
        name: the name of the TApp.
        namespace: the namespace of the TApp.
        should_run: the numbers of the instances that should run.
        generation: the generation of the TApp on which the last sync decided.
    """

    world: World
    name: str
    namespace: str
    should_run: set[int] = field(default_factory=set)
    generation: int = 0
    pods: dict[int, Document] = field(default_factory=dict)  # instance number -> its pod
    serving: dict[int, float] = field(default_factory=dict)
    """For each serving instance: its number -> when it began to serve, in seconds since the epoch.

    The time is minus infinity if the instance served when the watch began.
    """
    # number of each instance that does not serve -> its outage
    outages: dict[int, Outage] = field(default_factory=dict)
    history: list[Away] = field(default_factory=list)
    """The instances that did not serve, recorded whenever they changed, in order of time."""
    _events: list[Event] = field(default_factory=list)

    def __post_init__(self) -> None:
        for pod in self.world.list("Pod", self.namespace):
            id = self.id_of(pod)
            if id is not None:
                self.pods[id] = pod
                self.should_run.add(id)
                if self._serves(pod):
                    self.serving[id] = float("-inf")
                else:
                    self.outages[id] = Outage(FAULT)
        self.world.watch(self._events.append)

    def id_of(self, pod: Document) -> int | None:
        """Returns the number of the instance to which a pod belongs, by the pod's name.

        None if the name is not the TApp's name with a number.
        """
        return instance_number(pod["metadata"]["name"], f"{self.name}-")

    def is_available(self, id: int, min_ready_seconds: float) -> bool:
        """Returns True if an instance has served for minReadySeconds without interruption.

        The fraction of the second in which it began to serve is ignored, because times in a pod's
        status are whole seconds.
        """
        since = self.serving.get(id)
        if since is None:
            return False
        if since == float("-inf"):
            return True
        return self.world.clock.now - floor(since) + 0.001 >= min_ready_seconds

    def news(self, writes: Iterable[Write]) -> list[tuple[Event, bool]]:
        """Returns the changes of objects since the last call, each with True if Metacontroller made
        it.

        `writes` are the writes of Metacontroller since the last call. Writes of a status do not
        count, because a DecoratorController makes them.
        """
        events, self._events[:] = list(self._events), []
        ours = {
            (write.kind, write.name)
            for write in writes
            if write.outcome == "ok" and write.verb != "status"
        }
        return [
            (event, (event.kind.name, event.object["metadata"]["name"]) in ours) for event in events
        ]

    def take(self, id: int, min_ready_seconds: float) -> None:
        """Records that an update stops an instance now. Does nothing if the instance does not
        serve.
        """
        if id in self.serving:
            was = self.is_available(id, min_ready_seconds)
            del self.serving[id]
            self.outages[id] = Outage(UPDATE, self.generation, was)

    def see(self, event: Event) -> None:
        """Updates the records after a change of an object. Ignores objects that are no pods of this
        TApp.
        """
        id = self.id_of(event.object)
        if event.kind.name != "Pod" or id is None:
            return
        if event.new is None:
            self.pods.pop(id, None)
        else:
            self.pods[id] = event.new
        self._look(id)

    def end_step(self, now: float) -> None:
        """Records which instances do not serve after a step of the simulated clock.

        `now` is in seconds since the epoch.
        """
        for id in list(self.outages):
            self._look(id)
        for id in self.should_run:
            if id not in self.serving and id not in self.outages:
                self.outages[id] = Outage(NEW)
        groups: dict[str, list[int]] = {UPDATE: [], FAULT: [], NEW: []}
        for id, outage in sorted(self.outages.items()):
            if id in self.should_run:
                groups[outage.cause].append(id)
        away = Away(now, *(tuple(each) for each in groups.values()))
        last = self.history[-1] if self.history else Away(now)
        if (away.by_update, away.by_fault, away.new) != (last.by_update, last.by_fault, last.new):
            self.history.append(away)

    def _look(self, id: int) -> None:
        """Updates the records if an instance has begun or stopped to serve.

        An update has been recorded before by `take`, so an instance that stops now has the cause
        `FAULT`.
        """
        pod = self.pods.get(id)
        if pod is not None and self._serves(pod):
            if id not in self.serving:
                self.serving[id] = self.world.clock.now
                self.outages.pop(id, None)
        elif id in self.serving:
            del self.serving[id]
            self.outages[id] = Outage(FAULT)

    def _serves(self, pod: Document) -> bool:
        """Returns True if a pod serves, according to its object and the state of its simulated
        containers.
        """
        status = pod.get("status") or {}
        if pod["metadata"].get("deletionTimestamp") or status.get("phase") in COMPLETED:
            return False
        if not is_ready(pod) or is_leaving(pod):
            return False
        worker = self.world.kubelet.worker(pod)
        if worker is None:
            return False
        local = worker.local
        if not local.can_serve(self.world.clock.now):
            return False
        wanted = images_of(pod)
        return all(
            one.run is not None and one.run.image == wanted.get(one.name, one.run.image)
            for one in local.mains
        )


def is_ready(pod: Document) -> bool:
    """Returns True if the condition Ready of a pod is True."""
    found = (pod.get("status") or {}).get("conditions") or []
    return any(each["type"] == "Ready" and each["status"] == "True" for each in found)


def is_leaving(pod: Document) -> bool:
    """Returns True if the pod has the annotation by which the service asks it to leave its
    Services.
    """
    return DRAIN in (pod["metadata"].get("annotations") or {})


def images_of(pod: Document) -> dict[str, str]:
    """Returns container name -> image, of all containers in the spec of a pod."""
    spec = pod["spec"]
    return {
        each["name"]: each.get("image", "")
        for field_name in ("initContainers", "containers")
        for each in spec.get(field_name) or []
    }


def takes(event: Event) -> bool:
    """Returns True if a write of Metacontroller stops or restarts the containers of a pod.

    A write that asks the pod to leave its Services counts, too, because the pod then gets no more
    requests.
    """
    old, new = event.old, event.new
    if old is None or old["metadata"].get("deletionTimestamp"):
        return False
    if new is None or new["metadata"].get("deletionTimestamp"):
        return True
    return images_of(old) != images_of(new) or (is_leaving(new) and not is_leaving(old))
