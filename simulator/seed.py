"""Builds a world from a snapshot of another cluster: the same objects, at the same time.

    world = seeded(objects, manifest, hook, clock_at(time.time()), levers=levers, patience=300)

Objects keep their uids, resourceVersions, statuses, owners and finalizers. The simulated kubelets
take over the running pods (`simulator.node.takeover`). The snapshot lacks some objects that a
cluster needs, so this module adds stand-ins for them:

- Owners that objects refer to. Without its owner, the garbage collector would delete an object.
- The nodes on which pods run, with the zone that the labels of the pods show, and spare
  nodes.
"""

import re
from collections.abc import Iterable

from simulator.metacontroller.hook_client import HookClient
from simulator.node.levers import Levers
from simulator.node.nodes import TOPOLOGY, UNREACHABLE
from simulator.node.takeover import StatusReader
from simulator.objects.clock import EPOCH, Clock
from simulator.objects.kinds import NAMESPACE, NODE, Kind, UnknownKindError
from simulator.objects.objects import Object, labels_of, namespace_of, owners_of, uid_of, version_of
from simulator.world import World
from tapp.kube.tolerations import NO_EXECUTE

SPARE_NODE = "another-node"
"""The name of a node on which no pod of the snapshot runs."""


def clock_at(now: float, tick: float = 0.0) -> Clock:
    """Returns a clock whose time is `now`, in seconds since 1970.

    If `tick` is not 0, the timers of the clock run only at multiples of `tick` seconds.
    """
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
    spare_nodes: Iterable[str] = (SPARE_NODE,),
    **options: object,
) -> World:
    """Builds a world from the objects of an API server, at the time of `clock`.

    Args:
        objects: all objects of the snapshot.
        controller: the CompositeController manifest that Metacontroller runs.
        hook: receives the calls of the controller's hooks.
        clock: the simulated time, which starts at the time of the snapshot (`clock_at`).
        levers: how the nodes behave: times, images that cannot be pulled, containers that crash.
        patience: seconds after which a container counts as stuck if it is still being created, or
            if it runs and is not ready.
        silent_nodes: names of nodes that have stopped reporting. The pods do not show that, and the
            snapshot contains no nodes.
        spare_nodes: names of nodes on which no pod of the snapshot runs.
        options: further keyword arguments of `World`.
    """
    # Namespaces come first: other objects can only be restored into an existing namespace.
    objects = sorted(objects, key=lambda obj: obj["kind"] != NAMESPACE.name)
    version = _newest_version(objects)
    world = World(controller, hook, clock=clock, version=version, nodes=0, **options)  # type: ignore[arg-type]
    world.kubelet.levers = levers
    world.kubelet.status_reader = StatusReader(clock.parse_time, patience)
    world.nodes.keeps_zones = True
    for name, labels in sorted(_nodes(objects, spare_nodes).items()):
        world.nodes.add(name, labels)
    world.kubelet.lost_nodes.update(silent_nodes)
    known = {uid_of(obj) for obj in objects}
    for obj in [*_missing_owners(objects, known), *objects]:
        world.cluster.restore(_kind_of(world, obj), obj)
    taint = {"key": UNREACHABLE, "effect": NO_EXECUTE}
    for name in sorted(silent_nodes):
        node = world.cluster.get(NODE, "", name)
        world.cluster.edit(NODE, node, lambda old: {**old, "spec": {"taints": [taint]}})
    return world


def _nodes(objects: list[Object], spare_nodes: Iterable[str]) -> dict[str, dict[str, str]]:
    """Returns node name -> zone and region, as the labels of the pods on the node show them.

    The spare nodes are included, without a zone.
    """
    found: dict[str, dict[str, str]] = {name: {} for name in spare_nodes}
    for obj in objects:
        if obj["kind"] == "Pod" and (name := (obj.get("spec") or {}).get("nodeName")):
            labels = labels_of(obj)
            topology = {key: labels[key] for key in TOPOLOGY if key in labels}
            found.setdefault(name, {}).update(topology)
    return found


def _newest_version(objects: list[Object]) -> int:
    """Returns the newest resourceVersion of the objects, at least 1.

    The new world continues from this version. So its uids and container ids differ from those of an
    earlier simulated world from which these objects may come.
    """
    versions = [version_of(obj) for obj in objects]
    return max([1, *(int(each) for each in versions if re.fullmatch("[0-9]+", each))])


def _missing_owners(objects: list[Object], known: set[str]) -> list[Object]:
    """Returns stand-ins for owners that objects refer to and that the snapshot does not contain.

    Without the stand-ins the garbage collector would delete the objects. `known` are the uids of
    all objects in the snapshot.
    """
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
