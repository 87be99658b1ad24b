"""Tests that missing and invalid times in a pod's status block no rule and delete no available
pod.
"""

from collections.abc import Callable, Iterator
from copy import copy, deepcopy
from typing import Any

import pytest

from tests.builders import NOW, Document, completed, running, tapp, template
from tests.hook_calls import desired
from tests.unit.nodes import LOST, WorldOfNodes, timestamp
from tests.unit.world import Hook, World, condition, settled

GATE = "example.com/registered"
OURS = "apps.tkestack.io/InPlaceUpdateReady"
MISSING = object()

INVALID: dict[str, Any] = {
    "missing": MISSING,
    "null": None,
    "empty": "",
    "word": "yesterday",
    "number": 5,
    "object": {"at": 1},
    "without a time zone": "2026-01-05T10:59:00",
    "date only": "2026-01-05",
    "Go's zero time": "0001-01-01T00:00:00Z",
    "before the creation of the pod": "2019-01-01T00:00:00Z",
    "in the future": "2031-01-01T00:00:00Z",
    "latest possible time": "9999-12-31T23:59:59Z",
}
VALID = {
    "with a fraction": lambda at: timestamp(at).replace("Z", ".999999999Z"),
    "with an offset": lambda at: timestamp(at + 7_200).replace("Z", "+02:00"),
}
"""Valid notations of a moment other than Kubernetes' own."""


def with_condition_time(kind: str, value: Any, **fields: Any) -> Callable[[Document], Document]:
    """Returns a function that sets the time of a pod's condition of the type `kind`, and further
    fields.

    The value MISSING removes the time.
    """

    def change(pod: Document) -> Document:
        pod = deepcopy(pod)
        for item in pod["status"]["conditions"]:
            if item["type"] == kind:
                item.update(fields, lastTransitionTime=value)
                if value is MISSING:
                    del item["lastTransitionTime"]
        return pod

    return change


def tapp_with_foreign_gate() -> WorldOfNodes:
    """Returns a TApp with an available instance whose pod has an open readiness gate of another
    controller.
    """
    world = WorldOfNodes(1, template=template(readinessGates=[{"conditionType": GATE}]))
    known = {"type": GATE, "status": "True", "lastTransitionTime": "2026-01-05T10:30:00Z"}

    def opened(pod: Document) -> Document:
        status = {**pod["status"], "conditions": [*pod["status"]["conditions"], known]}
        return running({**pod, "status": status})

    world.modify(0, opened).sync()
    return world


def restored_world(world: WorldOfNodes) -> WorldOfNodes:
    """Returns a copy of the world with its pods, at the time `NOW`."""
    found = copy(world)
    found.pods, found.hook.now = {**world.pods}, NOW
    return found


def seconds_until_lost(world: WorldOfNodes) -> float | None:
    """Runs syncs; returns after how many seconds instance 0 is marked as lost with its node.

    Returns None if that does not happen within an hour.
    """
    began = world.hook.now
    while world.hook.now < began + 3_600:
        world.sync()
        if world.lost_node_annotation(0):
            return world.hook.now - began
        world.hook.now += 290 if world.hook.now == began else 10
    return None


@pytest.mark.parametrize("odd", INVALID.values(), ids=INVALID)
@pytest.mark.parametrize("kind", [GATE, "ContainersReady"])
def test_node_is_lost_by_the_time_of_ready_although_another_time_is_invalid(
    kind: str, odd: Any
) -> None:
    world = tapp_with_foreign_gate()
    world.stop_reporting(0).modify(0, with_condition_time(kind, odd))
    after = seconds_until_lost(world)
    assert after is not None
    assert 300 <= after <= 310


@pytest.mark.parametrize("odd", INVALID.values(), ids=INVALID)
def test_node_is_lost_by_the_time_of_the_first_sync_if_the_time_of_ready_is_invalid(
    odd: Any,
) -> None:
    """The condition Ready has an invalid time: the first sync that sees the silent node starts the
    time.

    The pod is moved after the usual time, and the pod-status hook sets its phase to Failed.
    """
    world = tapp_with_foreign_gate()
    world.stop_reporting(0).modify(0, with_condition_time("Ready", odd))
    after = seconds_until_lost(world)
    assert after is not None
    assert 300 <= after <= 310
    world.pod_status()
    assert world.pod(0)["status"]["phase"] == "Failed"


@pytest.mark.parametrize("odd", INVALID.values(), ids=INVALID)
def test_time_of_an_unreachable_node_restarts_after_the_pod_was_ready(odd: Any) -> None:
    world = WorldOfNodes(1, minReadySeconds=10)
    world.modify(0, with_condition_time("Ready", odd))
    world.sync()
    assert world.parent["status"]["unserved"] == {"0/True": timestamp(world.hook.now)}
    world.later(1_000).stop_reporting(0).modify(0, with_condition_time("Ready", odd))
    world.sync()
    assert not world.lost_node_annotation(0)
    assert world.parent["status"]["unserved"] == {"0/False": timestamp(world.hook.now)}
    world.kubelet()
    world.sync()
    assert "unserved" not in world.parent["status"]


@pytest.mark.parametrize("right", VALID.values(), ids=VALID)
def test_time_in_another_valid_notation_is_read(right: Callable[[float], str]) -> None:
    world = WorldOfNodes(1)
    world.stop_reporting(0).modify(0, with_condition_time("Ready", right(NOW - 200)))
    assert "unserved" not in world.sync()["status"]
    after = seconds_until_lost(world)
    assert after is not None
    assert after == 290


@pytest.mark.parametrize("odd", INVALID.values(), ids=INVALID)
@pytest.mark.parametrize("kind", ["Ready", "ContainersReady", "Initialized", "PodScheduled"])
def test_min_ready_seconds_pass_although_a_condition_has_an_invalid_time(
    kind: str, odd: Any
) -> None:
    world = settled(minReadySeconds=20).modify(0, with_condition_time(kind, odd))
    if kind == "Ready":
        assert world.sync()["status"]["availableReplicas"] == 0
    world.hook.now += 20
    assert world.sync()["status"]["availableReplicas"] == 1


@pytest.mark.parametrize("odd", INVALID.values(), ids=INVALID)
def test_min_ready_seconds_pass_although_a_container_has_an_invalid_start_time(odd: Any) -> None:
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


@pytest.mark.parametrize("odd", INVALID.values(), ids=INVALID)
@pytest.mark.parametrize("kind", ["Ready", OURS])
def test_grace_period_ends_although_a_condition_has_an_invalid_time(kind: str, odd: Any) -> None:
    body = {"readinessGates": [{"conditionType": OURS}]}
    in_place = {"inPlaceUpdateStrategy": {"gracePeriodSeconds": 5}}
    world = World(tapp(template=template(**body), updateStrategy=in_place), hook=Hook()).settle()
    world.change(template=template("nginx:2", **body)).sync()
    world.pod_status()
    world.modify(0, with_condition_time("Ready", timestamp(world.hook.now), status="False"))
    world.modify(0, with_condition_time(kind, odd))
    for _ in range(4):
        world.hook.now += 10
        world.sync()
        world.pod_status()
    assert world.container(0)["image"] == "nginx:2"


@pytest.mark.parametrize("odd", INVALID.values(), ids=INVALID)
@pytest.mark.parametrize("field", ["startedAt", "finishedAt"])
def test_failed_pod_is_replaced_although_its_container_has_an_invalid_time(
    field: str, odd: Any
) -> None:
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


def time_fields(pod: Document) -> Iterator[tuple[Any, ...]]:
    """Yields the paths of all fields in a pod's status that may have a time."""
    for at in range(len(pod["status"]["conditions"])):
        yield from (("conditions", at, key) for key in ("lastTransitionTime", "lastProbeTime"))
    for at in range(len(pod["status"]["containerStatuses"])):
        for part, state in (("state", "running"), ("lastState", "terminated")):
            yield from (
                ("containerStatuses", at, part, state, key) for key in ("startedAt", "finishedAt")
            )
    yield ("startTime",)


def put(pod: Document, path: tuple[Any, ...], value: Any) -> Document:
    """Returns the pod with a value at a path of its status; a new terminated state gets exit code
    1.
    """
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


@pytest.mark.parametrize("odd", INVALID.values(), ids=INVALID)
def test_each_invalid_time_neither_deletes_a_pod_nor_prevents_its_move_from_a_lost_node(
    odd: Any,
) -> None:
    """Puts an invalid time into each field in turn, for an available pod and for one on a silent
    node.

    The available pod stays, and the other one is moved after five minutes.
    """
    began = tapp_with_foreign_gate()
    for path in time_fields(began.pod(0)):
        world = restored_world(began)
        world.modify(0, lambda pod, path=path: put(pod, path, odd))
        for _ in range(3):
            assert "web-0" in desired(world.hook.sync(world.request()), "Pod"), path
            world.hook.now += 400
        ours = condition(world.sync(), "Ready")
        assert ours is not None
        assert ours["lastTransitionTime"] <= timestamp(world.hook.now + 60)
        world = restored_world(began)
        world.stop_reporting(0).modify(0, lambda pod, path=path: put(pod, path, odd))
        after = seconds_until_lost(world)
        assert after is not None, path
        assert 300 <= after <= 310, path


@pytest.mark.parametrize("field", ["message", "reason"])
def test_invalid_condition_does_not_hide_other_conditions(field: str) -> None:
    """Adds a condition with a field of a wrong type to a pod on a silent node: the node is still
    lost in time.

    An invalid condition of another controller once hid all conditions of the pod.
    """
    world = WorldOfNodes(1)

    def odd(pod: Document) -> Document:
        other = {"type": "example.com/other", "status": "True", field: 5}
        return {**pod, "status": {**pod["status"], "conditions": [other, *_conditions(pod)]}}

    world.stop_reporting(0).modify(0, odd)
    after = seconds_until_lost(world)
    assert after is not None
    assert 300 <= after <= 310


def _conditions(pod: Document) -> list[Document]:
    found: list[Document] = running(pod)["status"]["conditions"]
    known = {item["type"]: item for item in pod["status"]["conditions"]}
    return [known.get(item["type"], item) for item in found]


def test_deletion_of_a_tapp_waits_for_a_lost_node_although_ready_has_no_time() -> None:
    world = WorldOfNodes(1)
    world.stop_reporting(0, ago=1_000).modify(0, with_condition_time("Ready", None))
    meta = {**world.parent["metadata"], "deletionTimestamp": timestamp(world.hook.now)}
    world.parent = {**world.parent, "metadata": meta}
    request = world.request(finalizing=True)
    kept = desired(world.hook.finalize(request), "Pod")["web-0"]
    assert LOST not in (kept["metadata"].get("annotations") or {})
    world.hook.now += 300
    kept = desired(world.hook.finalize(request), "Pod")["web-0"]
    assert kept["metadata"]["annotations"][LOST] == timestamp(world.hook.now - 300)
