"""Builds TApps whose pods run in zones, and plays their rollouts."""

from collections.abc import Mapping
from typing import Any

from tests.builders import Document, tapp, template
from tests.unit.world import World

ZONE = "topology.kubernetes.io/zone"
OTHER = template("nginx:2", container={"command": ["run"]})
"""Differs from the first template in more than its image, so every update replaces the pod."""
IMAGE = template("nginx:2")


def labeled(pod: Document, value: str | None, key: str = ZONE) -> Document:
    """Returns a pod with this value of a label; None removes the label."""
    labels = {**pod["metadata"]["labels"], key: value}
    labels = {name: text for name, text in labels.items() if text is not None}
    return {**pod, "metadata": {**pod["metadata"], "labels": labels}}


class Zones(World):
    """A world whose pods get the zone of their node when they are bound.

    Attributes:
        zones: instance number -> zone of the node on which its next pod will run; a node without an
            entry has no zone.
        unbound: instances whose next pods get no node.
    """

    def __init__(self, parent: Document, zones: Mapping[int, str], **options: Any) -> None:
        """Builds a TApp without pods; `options` are those of `World`."""
        super().__init__(parent, **options)
        self.zones = dict(zones)
        self.unbound: set[int] = set()

    def kubelet(self, *, ready: bool = True) -> None:
        before = {name: pod for name, pod in self.pods.items() if self._stays(pod)}
        super().kubelet(ready=ready)
        for name, pod in self.pods.items():
            id = int(name.rpartition("-")[2])
            if id in self.unbound and not before[name]["spec"].get("nodeName"):
                self.pods[name] = before[name]
            elif id in self.zones and ZONE not in pod["metadata"]["labels"]:
                self.pods[name] = labeled(pod, self.zones[id])

    @staticmethod
    def _stays(pod: Document) -> bool:
        return "deletionTimestamp" not in pod["metadata"]


def in_zones(zones: str, *, key: str = ZONE, **spec: Any) -> Zones:
    """Returns a TApp that has settled, with one instance for each letter of `zones`.

    The letter is the zone of the instance's pod; `-` stands for a node without a zone. All
    instances of a domain are updated at once, unless `spec` says otherwise.
    """
    strategy = {"domain": key, "maxUnavailable": "100%", **spec.pop("updateStrategy", {})}
    found = {id: letter for id, letter in enumerate(zones) if letter != "-"}
    world = Zones(tapp(replicas=len(zones), updateStrategy=strategy, **spec), found, history=True)
    world.settle()
    return world


def begun(world: World) -> list[int]:
    """Returns the instances whose update the next sync begins."""
    actions = world.decisions()
    return [
        id for id, text in actions.items() if text.split("/")[0] in ("UpdateInPlace", "Recreate")
    ]


def waiting(world: World) -> list[int]:
    return [id for id, text in world.decisions().items() if text == "Keep/WaitingForDomain"]


def released(pod: Document) -> Document:
    """Returns a pod without the annotation of its hold."""
    notes = dict(pod["metadata"]["annotations"])
    del notes["apps.tkestack.io/hold"]
    return {**pod, "metadata": {**pod["metadata"], "annotations": notes}}


def message_of(world: World, id: int) -> str:
    found = world.hook.answer("/plan", world.request())["instances"][id]
    text: str = found["message"]
    return text


def turns(world: World, rounds: int = 60) -> list[list[int]]:
    """Plays a rollout; returns the instances that each sync updates, without syncs that update
    none.
    """
    done = []
    for _ in range(rounds):
        begins = begun(world)
        done += [begins] if begins else []
        world.sync()
        if not begins and not world.writes:
            return done
        world.kubelet()
    raise AssertionError(f"the rollout does not end: {done}")
