"""The image first, in the words of a decision (docs/design.md, "The image first")."""

from tests.builders import Document, template
from tests.unit.world import World, settled

FIRST = {"inPlaceUpdateStrategy": {"prePull": True}}


def messages(world: World) -> list[str]:
    """Words of `/plan` on each instance, and with it of `kubectl tapp why`."""
    plan: Document = world.hook.answer("/plan", world.request())
    return [instance["message"] for instance in plan["instances"]]


def test_a_node_pulls_by_a_pod_that_is_there() -> None:
    """And is only to have the image while that pod is asked for."""
    world = settled(replicas=1, updateStrategy=FIRST).change(template=template("nginx:2"))
    (asked,) = messages(world)
    assert asked.startswith("node node-1 is to have nginx:2 first; pod web-pull-x")
    assert asked.endswith(" is asked for, and is not there yet")
    world.sync()
    (pulls,) = messages(world)
    assert pulls.startswith("node node-1 first pulls nginx:2, by pod web-pull-x")
