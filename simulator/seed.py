"""A world that begins as another cluster is: its objects as they are, at its time.

    world = seeded(objects, manifest, hook, clock_at(time.time()), patience=300)

Uids, versions, statuses, owners and finalizers stay. The simulated kubelets take over what runs
(`simulator.node.takeover`). What the objects do not show is made up as little as possible: owners
that are named and not there are taken to exist, and there is one node beside those that are named.
"""

import re
from collections.abc import Iterable

from simulator.metacontroller.hook_client import HookClient
from simulator.node.levers import Levers
from simulator.node.nodes import UNREACHABLE
from simulator.node.takeover import Sight
from simulator.objects.clock import EPOCH, Clock
from simulator.objects.kinds import NAMESPACE, NODE, Kind, UnknownKindError
from simulator.objects.objects import Object, namespace_of, owners_of, uid_of, version_of
from simulator.world import World
from tapp.kube.tolerations import NO_EXECUTE

SPARE = "another-node"


def clock_at(now: float, tick: float = 0.0) -> Clock:
    """A clock that shows this time, in seconds since 1970. Ticks: see `Clock`."""
    clock = Clock(tick)
    clock.now = now - EPOCH.timestamp()
    return clock


def seeded(  # noqa: PLR0913 - a world and what is in it
    objects: Iterable[Object],
    controller: Object,
    hook: HookClient,
    clock: Clock,
    *,
    levers: Levers,
    patience: float,
    silent_nodes: Iterable[str] = (),
    **options: object,
) -> World:
    """Build a world around objects as the API server has them, at the time of `clock`.

    `silent_nodes` are names of nodes that are not heard of; `patience` is `Sight`'s, and `options`
    are those of `World`.
    """
    objects = sorted(objects, key=lambda obj: obj["kind"] != NAMESPACE.name)
    world = World(controller, hook, clock=clock, version=_newest(objects), nodes=0, **options)  # type: ignore[arg-type]
    world.kubelet.behaviour = levers
    world.kubelet.sight = Sight(clock.moment, patience)
    named = {(obj.get("spec") or {}).get("nodeName") for obj in objects if obj["kind"] == "Pod"}
    for name in sorted(filter(None, named | {SPARE})):
        world.nodes.add(name)
    world.kubelet.lost_nodes.update(silent_nodes)
    known = {uid_of(obj) for obj in objects}
    for obj in [*_missing_owners(objects, known), *objects]:
        world.cluster.restore(_kind_of(world, obj), obj)
    taint = {"key": UNREACHABLE, "effect": NO_EXECUTE}
    for name in sorted(silent_nodes):
        node = world.cluster.get(NODE, "", name)
        world.cluster.edit(NODE, node, lambda old: {**old, "spec": {"taints": [taint]}})
    return world


def _newest(objects: list[Object]) -> int:
    """The newest version of these objects, at least 1.

    A world that takes over what another one has left begins at a newer version than that one did:
    whatever bears a uid or a container's id of a world was written by it.
    """
    versions = [version_of(obj) for obj in objects]
    return max([1, *(int(each) for each in versions if re.fullmatch("[0-9]+", each))])


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
