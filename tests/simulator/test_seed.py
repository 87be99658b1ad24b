"""Tests worlds that begin with the objects of another world, as forecasts do."""

import json
import re

import pytest

from simulator.node.levers import Levers
from simulator.objects.objects import Object, uid_of
from simulator.seed import clock_at, seeded
from simulator.world import World
from tests.simulator.fake_hook import controller, group, make_world

CONTAINER = re.compile(r"containerd://[0-9a-f]{64}")


def next_world(before: World) -> World:
    """Returns a later world that begins with the objects of `before`, except its nodes, which are
    new.
    """
    objects = [obj for kind, obj in before.cluster.contents() if kind.name != "Node"]
    clock = clock_at(1_800_000_000.0 + before.clock.now)
    return seeded(objects, controller(), before.hook, clock, levers=Levers(), patience=60)


def identity_of(obj: Object) -> tuple[str, ...]:
    """Returns kind, namespace and name of an object."""
    return obj["kind"], obj["metadata"].get("namespace", ""), obj["metadata"]["name"]


@pytest.mark.parametrize("seed", [0, 1, 7919, 1 << 32])
def test_uids_and_container_ids_are_never_repeated(seed: int) -> None:
    """Plays five worlds, each of which begins with the objects of the one before: no ID appears
    twice.
    """
    world = make_world(seed=seed)
    uids: dict[str, tuple[str, ...]] = {}
    processes: dict[str, tuple[str, str]] = {}
    for round_ in range(5):
        world.apply(group(replicas=2 + round_, image=f"web:{round_}"))
        world.settle()
        for obj in (obj for kind, obj in world.cluster.contents() if kind.name != "Node"):
            assert uids.setdefault(uid_of(obj), identity_of(obj)) == identity_of(obj)
        for pod in world.list("Pod"):
            (status,) = pod["status"]["containerStatuses"]
            (identity,) = CONTAINER.findall(json.dumps(status["containerID"]))
            process = uid_of(pod), status["state"]["running"]["startedAt"]
            assert processes.setdefault(identity, process) == process
        world = next_world(world)
    nodes = [uid_of(obj) for obj in world.list("Node")]
    assert not uids.keys() & set(nodes)


def test_generated_names_are_unused() -> None:
    """Generates names in several worlds: a later world does not repeat a name of an earlier one."""
    config: Object = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"generateName": "c-", "namespace": "default"},
    }
    world = make_world()
    for number in (1, 2, 3):
        world.cluster.create(world.kinds.of(config), config)
        assert len(world.list("ConfigMap")) == number
        world = next_world(world)
