"""Times that are missing or cannot be right stop no rule, and no pod that serves goes for them."""

from collections.abc import Callable, Iterator
from copy import copy, deepcopy
from typing import Any

import pytest

from tests.builders import NOW, Document, completed, running, tapp, template
from tests.reading import desired
from tests.unit.decide.test_lost_node import LOST, Nodes, stamp
from tests.unit.world import Hook, World, condition, settled

GATE = "example.com/registered"
OURS = "apps.tkestack.io/InPlaceUpdateReady"
MISSING = object()

ODD: dict[str, Any] = {
    "missing": MISSING,
    "null": None,
    "empty": "",
    "a word": "yesterday",
    "a number": 5,
    "an object": {"at": 1},
    "without a zone": "2026-01-05T10:59:00",
    "a date": "2026-01-05",
    "Go's zero time": "0001-01-01T00:00:00Z",
    "before the pod": "2019-01-01T00:00:00Z",
    "in the future": "2031-01-01T00:00:00Z",
    "beyond what can be written": "9999-12-31T23:59:59Z",
}
RIGHT = {
    "with a fraction": lambda at: stamp(at).replace("Z", ".999999999Z"),
    "with an offset": lambda at: stamp(at + 7_200).replace("Z", "+02:00"),
}
"""The same moment in other words."""


def timed(kind: str, value: Any, **fields: Any) -> Callable[[Document], Document]:
    """The pod whose condition of this type has this time, and these fields."""

    def change(pod: Document) -> Document:
        pod = deepcopy(pod)
        for item in pod["status"]["conditions"]:
            if item["type"] == kind:
                item.update(fields, lastTransitionTime=value)
                if value is MISSING:
                    del item["lastTransitionTime"]
        return pod

    return change


def gated() -> Nodes:
    """An instance that serves, and has an open readiness gate of another controller."""
    world = Nodes(1, template=template(readinessGates=[{"conditionType": GATE}]))
    known = {"type": GATE, "status": "True", "lastTransitionTime": "2026-01-05T10:30:00Z"}

    def opened(pod: Document) -> Document:
        status = {**pod["status"], "conditions": [*pod["status"]["conditions"], known]}
        return running({**pod, "status": status})

    world.modify(0, opened).sync()
    return world


def again(world: Nodes) -> Nodes:
    """The same world from the beginning, with the same service."""
    found = copy(world)
    found.pods, found.hook.now = {**world.pods}, NOW
    return found


def moved_after(world: Nodes) -> float | None:
    """Seconds after which instance 0 is marked as lost; None if it is not within an hour."""
    began = world.hook.now
    while world.hook.now < began + 3_600:
        world.sync()
        if world.lost(0):
            return world.hook.now - began
        world.hook.now += 290 if world.hook.now == began else 10
    return None


@pytest.mark.parametrize("odd", ODD.values(), ids=ODD)
@pytest.mark.parametrize("kind", [GATE, "ContainersReady"])
def test_a_lost_node_counts_from_ready_whatever_the_other_times_are(kind: str, odd: Any) -> None:
    world = gated()
    world.fall_silent(0).modify(0, timed(kind, odd))
    after = moved_after(world)
    assert after is not None
    assert 300 <= after <= 310


@pytest.mark.parametrize("odd", ODD.values(), ids=ODD)
def test_a_lost_node_counts_from_when_it_is_seen_if_ready_has_no_usable_time(odd: Any) -> None:
    """Neither is it never moved, nor at once; and the hook for pods makes the pod Failed then."""
    world = gated()
    world.fall_silent(0).modify(0, timed("Ready", odd))
    after = moved_after(world)
    assert after is not None
    assert 300 <= after <= 310
    world.pod_status()
    assert world.pod(0)["status"]["phase"] == "Failed"


@pytest.mark.parametrize("odd", ODD.values(), ids=ODD)
def test_a_note_of_a_ready_pod_is_none_of_a_silent_node(odd: Any) -> None:
    world = Nodes(1, minReadySeconds=10)
    world.modify(0, timed("Ready", odd))
    world.sync()
    assert world.parent["status"]["unserved"] == {"0/True": stamp(world.hook.now)}
    world.later(1_000).fall_silent(0).modify(0, timed("Ready", odd))
    world.sync()
    assert not world.lost(0)
    assert world.parent["status"]["unserved"] == {"0/False": stamp(world.hook.now)}
    world.kubelet()
    world.sync()
    assert "unserved" not in world.parent["status"]


@pytest.mark.parametrize("right", RIGHT.values(), ids=RIGHT)
def test_a_time_in_other_words_is_that_time(right: Callable[[float], str]) -> None:
    world = Nodes(1)
    world.fall_silent(0).modify(0, timed("Ready", right(NOW - 200)))
    assert "unserved" not in world.sync()["status"]
    after = moved_after(world)
    assert after is not None
    assert after == 290


@pytest.mark.parametrize("odd", ODD.values(), ids=ODD)
@pytest.mark.parametrize("kind", ["Ready", "ContainersReady", "Initialized", "PodScheduled"])
def test_min_ready_seconds_end_whatever_the_times_are(kind: str, odd: Any) -> None:
    world = settled(minReadySeconds=20).modify(0, timed(kind, odd))
    if kind == "Ready":
        assert world.sync()["status"]["availableReplicas"] == 0
    world.hook.now += 20
    assert world.sync()["status"]["availableReplicas"] == 1


@pytest.mark.parametrize("odd", ODD.values(), ids=ODD)
def test_min_ready_seconds_end_whatever_a_container_says(odd: Any) -> None:
    def started(pod: Document) -> Document:
        pod = deepcopy(pod)
        item = pod["status"]["containerStatuses"][0]
        item |= {"restartCount": 1, "state": {"running": {"startedAt": odd}}}
        if odd is MISSING:
            item["state"] = {"running": {}}
        return pod

    probe = {"startupProbe": {"httpGet": {"port": 80}}, "readinessProbe": {"httpGet": {"port": 80}}}
    world = settled(minReadySeconds=20, template=template(container=probe)).modify(0, started)
    world.hook.now += 3_600
    assert world.sync()["status"]["availableReplicas"] == 1


@pytest.mark.parametrize("odd", ODD.values(), ids=ODD)
@pytest.mark.parametrize("kind", ["Ready", OURS])
def test_a_drain_ends_whatever_the_times_are(kind: str, odd: Any) -> None:
    body = {"readinessGates": [{"conditionType": OURS}]}
    in_place = {"inPlaceUpdateStrategy": {"gracePeriodSeconds": 5}}
    world = World(tapp(template=template(**body), updateStrategy=in_place), hook=Hook()).settle()
    world.change(template=template("nginx:2", **body)).sync()
    world.pod_status()
    world.modify(0, timed("Ready", stamp(world.hook.now), status="False"))
    world.modify(0, timed(kind, odd))
    for _ in range(4):
        world.hook.now += 10
        world.sync()
        world.pod_status()
    assert world.container(0)["image"] == "nginx:2"


@pytest.mark.parametrize("odd", ODD.values(), ids=ODD)
@pytest.mark.parametrize("field", ["startedAt", "finishedAt"])
def test_a_failed_pod_is_replaced_whatever_its_times_are(field: str, odd: Any) -> None:
    def failed(pod: Document) -> Document:
        pod = deepcopy(completed(pod, "Failed"))
        item = pod["status"]["containerStatuses"][0]
        ended = {**item["state"].get("terminated", {"exitCode": 1}), field: odd}
        if odd is MISSING:
            del ended[field]
        item["state"] = {"terminated": ended}
        return pod

    world = settled().modify(0, failed)
    uid = world.uids()["web-0"]
    for _ in range(3):
        world.hook.now += 10
        world.sync()
        world.kubelet()
    world.sync()
    assert world.uids()["web-0"] != uid


def places(pod: Document) -> Iterator[tuple[Any, ...]]:
    """Where the status of a pod has a time, or may have one."""
    for at in range(len(pod["status"]["conditions"])):
        yield from (("conditions", at, key) for key in ("lastTransitionTime", "lastProbeTime"))
    for at in range(len(pod["status"]["containerStatuses"])):
        for part, state in (("state", "running"), ("lastState", "terminated")):
            yield from (
                ("containerStatuses", at, part, state, key) for key in ("startedAt", "finishedAt")
            )
    yield ("startTime",)


def put(pod: Document, path: tuple[Any, ...], value: Any) -> Document:
    """The pod with this value there; a container that has not ended before ends with code 1."""
    pod = deepcopy(pod)
    place = pod["status"]
    for key in path[:-1]:
        if isinstance(place, dict) and key not in place:
            place[key] = {"exitCode": 1} if key == "terminated" else {}
        place = place[key]
    place.pop(path[-1], None)
    if value is not MISSING:
        place[path[-1]] = value
    return pod


@pytest.mark.parametrize("odd", ODD.values(), ids=ODD)
def test_no_time_of_a_pod_raises_deletes_it_or_stops_force_delete_pod(odd: Any) -> None:
    """Of each time alone, in a pod that serves and in one whose node is silent."""
    began = gated()
    for path in places(began.pod(0)):
        world = again(began)
        world.modify(0, lambda pod, path=path: put(pod, path, odd))
        for _ in range(3):
            assert "web-0" in desired(world.hook.sync(world.request()), "Pod"), path
            world.hook.now += 400
        ours = condition(world.sync(), "Ready")
        assert ours is not None
        assert ours["lastTransitionTime"] <= stamp(world.hook.now + 60)
        world = again(began)
        world.fall_silent(0).modify(0, lambda pod, path=path: put(pod, path, odd))
        after = moved_after(world)
        assert after is not None, path
        assert 300 <= after <= 310, path


@pytest.mark.parametrize("field", ["message", "reason"])
def test_a_condition_that_cannot_be_read_hides_no_other(field: str) -> None:
    """One condition of another controller made all conditions of the pod unreadable."""
    world = Nodes(1)

    def odd(pod: Document) -> Document:
        other = {"type": "example.com/other", "status": "True", field: 5}
        return {**pod, "status": {**pod["status"], "conditions": [other, *_conditions(pod)]}}

    world.fall_silent(0).modify(0, odd)
    after = moved_after(world)
    assert after is not None
    assert 300 <= after <= 310


def _conditions(pod: Document) -> list[Document]:
    found: list[Document] = running(pod)["status"]["conditions"]
    known = {item["type"]: item for item in pod["status"]["conditions"]}
    return [known.get(item["type"], item) for item in found]


def test_the_end_of_a_tapp_leaves_a_lost_node_without_times() -> None:
    world = Nodes(1)
    world.fall_silent(0, ago=1_000).modify(0, timed("Ready", None))
    meta = {**world.parent["metadata"], "deletionTimestamp": stamp(world.hook.now)}
    world.parent = {**world.parent, "metadata": meta}
    request = world.request(finalizing=True)
    kept = desired(world.hook.finalize(request), "Pod")["web-0"]
    assert LOST not in (kept["metadata"].get("annotations") or {})
    world.hook.now += 300
    kept = desired(world.hook.finalize(request), "Pod")["web-0"]
    assert kept["metadata"]["annotations"][LOST] == stamp(world.hook.now - 300)
