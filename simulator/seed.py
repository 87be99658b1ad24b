"""A world that begins as another cluster is: its objects as they are, at its time.

    world = seeded(snapshot, manifest, hook, now=time.time())

Uids, versions, statuses, owners and finalizers stay. The simulated kubelets take over what runs
(`simulator.node.takeover`). What the snapshot does not show is made up as little as possible:
owners that are named and not there are taken to exist, and there is one node beside those that are
named.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass, field

from simulator.metacontroller.hook_client import HookClient
from simulator.node.levers import Levers
from simulator.node.nodes import UNREACHABLE
from simulator.node.taints import NO_EXECUTE
from simulator.node.takeover import Sight
from simulator.objects.clock import EPOCH, Clock
from simulator.objects.kinds import NAMESPACE, NODE, Kind, UnknownKindError
from simulator.objects.objects import Object, namespace_of, owners_of, uid_of
from simulator.world import World

SPARE = "another-node"
SEED = 7919
"""Of the chances: another one than worlds have that begin empty, so that no id comes twice."""


@dataclass(frozen=True)
class Snapshot:
    """What there is.

    Attributes:
        objects: all of it, as the API server has it.
        silent_nodes: names of nodes that are not heard of.
        start_patience: see `Sight`.
        ready_patience: see `Sight`.
        levers: how containers and kubelets behave.
    """

    objects: Iterable[Object]
    silent_nodes: frozenset[str] = frozenset()
    start_patience: float = 300.0
    ready_patience: float = 300.0
    levers: Levers = field(default_factory=Levers)


def clock_at(now: float | None = None, tick: float = 0.0) -> Clock:
    """A clock that shows this time, in seconds since 1970; None is the real one. Ticks: `Clock`."""
    clock = Clock(tick)
    clock.now = (time.time() if now is None else now) - EPOCH.timestamp()
    return clock


def restore(world: World, snapshot: Snapshot) -> None:
    """Put all of a snapshot into a world that has nothing in it yet."""
    objects = sorted(snapshot.objects, key=lambda obj: obj["kind"] != NAMESPACE.name)
    world.kubelet.behaviour = snapshot.levers
    world.kubelet.sight = Sight(
        world.clock.moment, snapshot.start_patience, snapshot.ready_patience
    )
    named = {(obj.get("spec") or {}).get("nodeName") for obj in objects if obj["kind"] == "Pod"}
    for name in sorted(filter(None, named | {SPARE})):
        world.nodes.add(name)
    world.kubelet.lost_nodes |= snapshot.silent_nodes
    known = {uid_of(obj) for obj in objects}
    for owner in _missing_owners(objects, known):
        world.cluster.restore(_kind_of(world, owner), owner)
    for obj in objects:
        world.cluster.restore(_kind_of(world, obj), obj)
    taint = {"key": UNREACHABLE, "effect": NO_EXECUTE}
    for name in sorted(snapshot.silent_nodes):
        node = world.cluster.get(NODE, "", name)
        world.cluster.edit(NODE, node, lambda old: {**old, "spec": {"taints": [taint]}})


def seeded(
    snapshot: Snapshot,
    controller: Object,
    hook: HookClient,
    clock: Clock,
    **options: object,
) -> World:
    """Build a world around a snapshot; the options are those of `World`."""
    world = World(controller, hook, clock=clock, seed=SEED, nodes=0, **options)  # type: ignore[arg-type]
    restore(world, snapshot)
    return world


def _missing_owners(objects: list[Object], known: set[str]) -> list[Object]:
    """Owners that the snapshot names and does not hold: nothing is collected because of it."""
    found: dict[str, Object] = {}
    for obj in objects:
        for ref in owners_of(obj):
            if ref["uid"] in known:
                continue
            metadata = {"name": ref["name"], "uid": ref["uid"], "resourceVersion": "1"}
            if namespace_of(obj) and ref["kind"] not in _CLUSTER_SCOPED:
                metadata["namespace"] = namespace_of(obj)
            found[ref["uid"]] = {
                "apiVersion": ref["apiVersion"],
                "kind": ref["kind"],
                "metadata": metadata,
            }
    return list(found.values())


_CLUSTER_SCOPED = ("Namespace", "Node")


def _kind_of(world: World, obj: Object) -> Kind:
    try:
        return world.kinds.of(obj)
    except UnknownKindError:
        return world.kinds.add(Kind(obj["apiVersion"], obj["kind"], f"{obj['kind'].lower()}s"))
