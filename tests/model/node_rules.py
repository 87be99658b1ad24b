"""Defines the rules of the model for kubelets and nodes, and how a table of events becomes
rules.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any, ClassVar, TypeVar

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule

from tests.model import specs
from tests.model.cluster import KINDS, Cluster

waits = st.sampled_from([0.0, 0.0, 0.12, 0.3, 0.3, 1.0, 1.0, 3.0, 3.0, 12.0])
shorts = st.sampled_from([0.3, 1.0, 2.0, 6.0])
kinds = st.sampled_from(KINDS)
numbers = st.integers(0, specs.MOST - 1)


Draws = dict[str, st.SearchStrategy[Any]]
Machine = TypeVar("Machine", bound=type[RuleBasedStateMachine])


def befalls(events: dict[str, tuple[Callable[..., object], Draws]]) -> Callable[[Machine], Machine]:
    """Returns a decorator that adds a rule to a state machine for each event of a table.

    After its event, a rule lets a random time pass.

    Args:
        events: name of the rule -> the event, which is a method of `Cluster` or a function of a
            cluster, and the strategies for its arguments.
    """

    def with_rules(machine: Machine) -> Machine:
        for name, (happens, draws) in events.items():
            setattr(machine, name, _rule(name, happens, draws))
        return machine

    return with_rules


def _rule(name: str, happens: Callable[..., object], draws: Draws) -> Any:
    def event(self: NodeRules, wait: float, **drawn: Any) -> None:
        happens(self.world, **drawn)
        self._pass(wait)

    event.__name__ = event.__qualname__ = name
    return rule(**draws, wait=waits)(event)


def edits(change: Callable[..., None]) -> Callable[..., None]:
    """Returns an event that changes the TApp's spec with the function `change`."""
    return lambda cluster, **drawn: cluster.edit(lambda spec: change(spec, **drawn))


EVENTS: dict[str, tuple[Callable[..., object], Draws]] = {
    "kubelets_resize": (  # late, or for some pods not now, never, or not although they have begun
        Cluster.set_resizing,
        {
            "seconds": st.sampled_from([0.3, 1.0, 5.0, 30.0]),
            "pends": st.sampled_from(["", "", "Deferred", "Infeasible", "fails"]),
            "ids": st.sets(numbers),
        },
    ),
    "evict": (Cluster.evict, {"id": numbers}),
    "other_speed": (
        Cluster.set_speed,
        {"start": st.sampled_from([0.2, 1.0, 5.0]), "unready": st.sampled_from([0.0, 2.0])},
    ),
    "containers_stop_slowly": (
        Cluster.set_stop,
        {"seconds": st.sampled_from([0.5, 4.0, 60.0]), "code": st.sampled_from([0, 137])},
    ),
    "post_start_hook": (
        Cluster.set_hook,
        {"image": specs.good_images, "seconds": st.sampled_from([0.0, 8.0, 30.0])},
    ),
    "liveness_fails": (Cluster.fail_liveness, {"id": numbers}),
    "image_goes_bad": (Cluster.spoil, {"image": st.sampled_from([specs.GOOD[1], specs.GOOD[2]])}),
    "images_get_well": (Cluster.heal_images, {}),
    "kubelet_moods": (Cluster.set_moods, {"refuse": st.booleans(), "hang": st.booleans()}),
    "nodes_come_back": (Cluster.recover_nodes, {}),
}


@befalls(EVENTS)
class NodeRules(RuleBasedStateMachine):
    """Plays random lives of a TApp: the rules of kubelets and nodes."""

    totals: ClassVar[Counter[str]] = Counter()
    """Counters over all lives of a process: steps, lives, syncs, and the counts of the judges."""

    def __init__(self) -> None:
        super().__init__()
        self.cluster: Cluster | None = None
        self.delete_at_end = False

    @property
    def world(self) -> Cluster:
        assert self.cluster is not None
        return self.cluster

    def _pass(self, seconds: float) -> None:
        self.totals["steps"] += 1
        self.world.run(seconds)

    # Kubelets and nodes.

    @rule(id=numbers, code=st.sampled_from([0, 1]), only_app=st.booleans(), wait=waits)
    def containers_exit(self, id: int, code: int, only_app: bool, wait: float) -> None:
        self.world.finish(id, code, "app" if only_app else None)
        self._pass(wait)

    @rule(ids=st.lists(numbers, unique=True), cpu=specs.cpus, wait=waits)
    def resize(self, ids: list[int], cpu: str, wait: float) -> None:
        for id in ids:
            self.world.resize(id, cpu)
        self._pass(wait)

    @rule(number=st.integers(0, 2), wait=waits)
    def kubelet_restarts(self, number: int, wait: float) -> None:
        self.world.restart_kubelet(f"node-{number}")
        self._pass(wait)

    @rule(number=st.integers(0, 1), seconds=shorts, wait=waits)
    def node_is_silent_for_a_moment(self, number: int, seconds: float, wait: float) -> None:
        for _ in range(2):
            self.world.toggle_node(f"node-{number}")
            self.world.run(seconds)
        self._pass(wait)

    @rule(number=st.integers(0, 1), wait=waits)
    def lose_or_recover_a_node(self, number: int, wait: float) -> None:
        self.world.toggle_node(f"node-{number}")
        self._pass(wait)

    @rule(
        numbers=st.sets(st.integers(0, 4), min_size=1, max_size=4),
        apart=st.sampled_from([0.0, 0.0, 0.3, 2.0]),
        seconds=st.sampled_from([0.3, 5.0, 15.0, 60.0, 60.0, 330.0]),
        stay_lost=st.booleans(),
        wait=waits,
    )
    def nodes_are_silent_for_long(
        self, numbers: set[int], apart: float, seconds: float, stay_lost: bool, wait: float
    ) -> None:
        """Makes several nodes stop reporting, `apart` seconds after each other.

        After `seconds` seconds they report again, unless `stay_lost` is True.
        """
        for number in sorted(numbers):
            self.world.lose_nodes(f"node-{number}")
            self.world.run(apart)
        self.world.run(seconds)
        if not stay_lost:
            self.world.recover_nodes()
        self._pass(wait)
