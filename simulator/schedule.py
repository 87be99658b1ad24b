"""A schedule of faults: draws random faults from a seed, and carries them out at their times.

`drawn` draws the faults. Equal arguments give equal faults. `Schedule.start` sets a timer for each
fault. The pod or node that a fault hits is chosen when the fault begins. For that each fault has a
random number from 0 to 1: the target is the element at this share of the sorted list of pods or
nodes. So the drawn faults do not depend on the objects of the cluster.
"""

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial

from simulator.faults import Faults
from simulator.objects.objects import Object, is_terminating, name_of
from simulator.world import World
from tapp.kube.restarts import COMPLETED

WATCHED = ("Pod", "PersistentVolumeClaim", "ControllerRevision")
"""Kinds of objects whose watches a schedule may stop or delay. It may also stop the watch of the
controller's parents.
"""
_EVICTION_RETRY = 5.0  # Seconds until a refused eviction is tried again, as in `kubectl drain`
_VERBS = ("create", "update", "delete", "status")
# Codes with which the API server refuses a write. There is no conflict (409): a real one comes
# with a newer object, whose event causes the next sync.
_CODES = (422, 500)


@dataclass(frozen=True)
class Fault:
    """One fault of a run: its kind, its time, and the random numbers that choose its target and
    form.
    """

    kind: str  # one of `KINDS`
    at: float  # seconds from the start of the schedule
    # seconds that the fault lasts; unused for a fault that is over at once, such as a crash
    seconds: float
    target: float  # share between 0 and 1 that chooses the pod or the node
    # share between 0 and 1 that chooses the form of the fault, such as the container or the error
    # code
    choice: float


@dataclass(frozen=True)
class Kind:
    """A kind of fault: its meaning, and its shortest and longest duration in seconds.

    Both are 0 for a fault that is over at once.
    """

    meaning: str
    shortest: float = 0.0
    longest: float = 0.0


KINDS = {
    "node-loss": Kind("a node stops reporting, and returns", 20, 420),
    "eviction": Kind("a pod is evicted through the API, as by kubectl drain", 10, 120),
    "node-pressure": Kind("a kubelet evicts a pod, because its node is low on memory"),
    "crash": Kind("a container exits with code 1"),
    "kubelet-restart": Kind("the kubelet of a node restarts"),
    "failed-pull": Kind("no new image can be pulled for a while", 5, 120),
    "slow-pull": Kind("pulls of new images take longer", 10, 120),
    "slow-start": Kind("containers take longer to start", 5, 60),
    "refused-write": Kind("the API server refuses one to three writes of Metacontroller"),
    "stale-cache": Kind("Metacontroller sees changes late", 1, 30),
    "metacontroller-restart": Kind("Metacontroller restarts"),
    "service-restart": Kind("the service is away, and starts again", 1, 30),
    "second-edit": Kind("somebody takes the edit back, and makes it again", 2, 60),
}
"""Name of a kind of fault -> the kind."""


def drawn(seed: int, kinds: Sequence[str], count: int, within: float) -> list[Fault]:
    """Returns `count` random faults of the given kinds, sorted by time. Equal arguments give equal
    faults.

    All faults begin within `within` seconds after the start of the schedule.
    """
    rng = random.Random(seed)  # noqa: S311 - this is no secret
    found = []
    for _ in range(count):
        name = rng.choice(sorted(kinds))
        kind = KINDS[name]
        seconds = rng.uniform(kind.shortest, kind.longest)
        found.append(
            Fault(name, rng.uniform(0, within), seconds, target=rng.random(), choice=rng.random())
        )
    return sorted(found, key=lambda fault: fault.at)


@dataclass
class Schedule:
    """Carries out the drawn faults of one run in a simulated cluster.

    Attributes:
        world: the simulated cluster.
        faults: has the method that carries out each kind of fault.
        parent: the name of the kind of the controller's parents, whose watch a fault may stop, too.
        is_target: returns True for a pod that faults may hit.
        forget: called when the service restarts: clears the memory of the service's process.
        edit: writes the edited parent for the argument False, and the parent before the edit for
            True. None if the kind `second-edit` is not used.
        told: called with a sentence when a fault begins and when it ends.
    """

    world: World
    faults: Faults
    parent: str
    is_target: Callable[[Object], bool] = lambda _pod: True
    forget: Callable[[], None] = lambda: None
    edit: Callable[[bool], None] | None = None
    told: Callable[[str], None] = lambda _text: None
    pending: int = field(default=0, init=False)
    """The number of faults that have not ended yet."""

    def start(self, faults: Sequence[Fault]) -> None:
        """Sets a timer for each of these faults. Their times count from now."""
        for fault in faults:
            self.pending += 1
            self.world.clock.after(fault.at, partial(self._begin, fault))

    def _begin(self, fault: Fault) -> None:
        begins: dict[str, Callable[[Fault], None]] = {
            "node-loss": self._lose_node,
            "eviction": lambda each: self._evict(each, self._pod(each), each.seconds),
            "node-pressure": self._press,
            "crash": self._crash,
            "kubelet-restart": self._restart_kubelet,
            "failed-pull": self._break_registry,
            "slow-pull": self._slow_pulls,
            "slow-start": self._slow_starts,
            "refused-write": self._refuse,
            "stale-cache": self._stall,
            "metacontroller-restart": self._restart_metacontroller,
            "service-restart": self._stop_service,
            "second-edit": self._take_back,
        }
        begins[fault.kind](fault)

    def _moment(self, text: str) -> None:
        """Reports the end of a fault with the sentence `text`."""
        self.told(text)
        self.pending -= 1

    def _lasts(self, fault: Fault, text: str, end: Callable[[], None], ended: str) -> None:
        """Reports that a fault has begun, and sets a timer that calls `end` and reports the end.

        `text` is the sentence about the beginning, and `ended` the sentence about the end.
        """

        def over() -> None:
            end()
            self._moment(ended)

        self.told(f"{text}, for {fault.seconds:.0f} s")
        self.world.clock.after(fault.seconds, over)

    def _pod(self, fault: Fault) -> str:
        """Returns the name of the pod that a fault hits; "" if no target pod is on a node that
        reports.
        """
        return _chosen(
            [
                name_of(pod)
                for pod in self.world.list("Pod")
                if self.is_target(pod)
                and not is_terminating(pod)
                and pod["spec"].get("nodeName") not in {None, "", *self.faults.lost}
                and (pod.get("status") or {}).get("phase") not in COMPLETED
            ],
            fault.target,
        )

    def _node(self, fault: Fault) -> str:
        """Returns the name of the node that a fault hits; "" if no node that reports has a pod."""
        nodes = {pod["spec"].get("nodeName") for pod in self.world.list("Pod")}
        return _chosen(sorted(nodes - {None, "", *self.faults.lost}), fault.target)

    # Nodes and pods.

    def _lose_node(self, fault: Fault) -> None:
        node = self._node(fault)
        if not node:
            self._moment("no node runs a pod, so none is lost")
            return
        self.faults.lose_nodes(node)
        end = partial(self.faults.recover_nodes, node)
        self._lasts(fault, f"node {node} stops reporting", end, f"node {node} reports again")

    def _restart_kubelet(self, fault: Fault) -> None:
        node = self._node(fault)
        if node:
            self.faults.restart_kubelet(node)
        self._moment(f"the kubelet of {node or 'no node'} restarts")

    def _evict(self, fault: Fault, name: str, left: float) -> None:
        """Tries to evict a pod, again and again if a budget refuses the eviction.

        `name` is the name of the pod, "" if no pod runs. `left` is the number of seconds in which
        further attempts may be made.
        """
        refused = self.faults.evict(name) if name else "no pod runs"
        if not refused:
            self._moment(f"pod {name} is evicted through the API")
        elif name and left > _EVICTION_RETRY:
            if left == fault.seconds:
                self.told(f"the eviction of pod {name} is refused, and tried again: {refused}")
            again = partial(self._evict, fault, name, left - _EVICTION_RETRY)
            self.world.clock.after(_EVICTION_RETRY, again)
        else:
            self._moment(f"the eviction of pod {name} is given up: {refused}".replace("  ", " "))

    def _press(self, fault: Fault) -> None:
        name = self._pod(fault)
        done = bool(name) and self.faults.evict_under_pressure(name)
        self._moment(
            f"the kubelet evicts pod {name}" if done else "no pod runs, so none is evicted"
        )

    def _crash(self, fault: Fault) -> None:
        name = self._pod(fault)
        pod = self.faults.running(name) if name else None
        if pod is None:
            self._moment("no pod runs, so none crashes")
            return
        container = _chosen([each["name"] for each in pod["spec"]["containers"]], fault.choice)
        self.faults.exit(name, 1, container)
        self._moment(f"container {container} of pod {name} exits with code 1")

    # The registry, and slow nodes.

    def _break_registry(self, fault: Fault) -> None:
        levers = self.world.kubelet.levers
        self.faults.break_registry()
        end = partial(setattr, levers, "registry_is_down", False)
        self._lasts(fault, "new images cannot be pulled", end, "new images can be pulled again")

    def _slow_pulls(self, fault: Fault) -> None:
        self.faults.slow_registry(fault.seconds / 2)
        text = f"pulls of new images take {fault.seconds / 2:.0f} s longer"
        end = partial(self.faults.slow_registry, 0.0)
        self._lasts(fault, text, end, "pulls take as long as before")

    def _slow_starts(self, fault: Fault) -> None:
        self.faults.slow_starts(fault.seconds / 2)
        text = f"containers take {fault.seconds / 2:.0f} s longer to start"
        end = partial(self.faults.slow_starts, 0.0)
        self._lasts(fault, text, end, "containers start as fast as before")

    # The API server, the watches, Metacontroller, the service and people.

    def _refuse(self, fault: Fault) -> None:
        times = 1 + int(fault.target * 3)
        verb, code = _VERBS[int(fault.choice * 4)], _CODES[int(fault.choice * 8) % 2]
        kind = "" if verb == "status" else "Pod"
        self.faults.refuse_writes(times, verb, kind, code)
        what = "a status" if verb == "status" else f"{verb} of a pod"
        again = "once" if times == 1 else f"{times} times"
        self._moment(f"the API server refuses the next {what} with code {code}, {again}")

    def _stall(self, fault: Fault) -> None:
        """Delays or stops the watch of one kind of objects, for the time of the fault."""
        kinds = (self.parent, "Pod", *WATCHED)
        kind = kinds[int(fault.target * len(kinds))]
        end = partial(self.faults.resume_watches, (kind,))
        if fault.choice < 0.5:  # noqa: PLR2004 - one half of the cases
            self.faults.lag(kind, min(fault.seconds / 2, 5.0))
        else:
            self.faults.stall(kind)
        text = f"Metacontroller sees changes of {kind} late"
        self._lasts(fault, text, end, f"Metacontroller sees changes of {kind} at once again")

    def _restart_metacontroller(self, _fault: Fault) -> None:
        self.faults.restart_metacontroller()
        self._moment("Metacontroller restarts")

    def _stop_service(self, fault: Fault) -> None:
        self.faults.stop_service()
        end = partial(self.faults.start_service, self.forget)
        self._lasts(fault, "the service is away", end, "the service answers again")

    def _take_back(self, fault: Fault) -> None:
        """Takes the edit of the parent back, and makes the edit again at the end of the fault."""
        edit = self.edit
        if edit is None:
            self._moment("nobody edits again")
            return
        edit(True)
        end = partial(edit, False)
        self._lasts(fault, "the edit is taken back", end, "the edit is made again")


def _chosen(items: Sequence[str], share: float) -> str:
    """Returns the element at a share between 0 and 1 of a list; "" if the list is empty."""
    return items[int(share * len(items))] if items else ""
