"""Tests how instances stand: each counts once in Progressing, and a stalled rollout says since
when.
"""

from typing import Any

import pytest

from tests.builders import NOW, READY_SINCE, Document, running, tapp, template
from tests.unit.decide.pods import annotated
from tests.unit.world import World, condition, settled

NEW = template("nginx:2", container={"command": ["run"]})
HOLD = annotated("apps.tkestack.io/hold", "match 42")
LIMIT = 600


def progressing(world: World) -> tuple[str, str, str]:
    """Returns status, reason and message of Progressing after the next sync."""
    found: Any = condition(world.sync()["status"], "Progressing")
    return found["status"], found["reason"], found["message"]


def test_created_instances_count_only_as_created() -> None:
    assert progressing(World(tapp(replicas=3))) == ("True", "Creating", "creating instances 0-2")


def test_updated_instance_counts_only_as_updated_while_its_pod_ends() -> None:
    world = settled(replicas=1).change(template=NEW)
    assert progressing(world) == ("True", "Updating", "updating instance 0")
    assert progressing(world) == ("True", "Deleting", "deleting the pod of instance 0")


def test_unready_instance_on_hold_counts_only_as_on_hold() -> None:
    world = settled(replicas=2).modify(0, HOLD).settle().change(template=NEW)
    world.modify(0, lambda pod: running(pod, ready=False, since="2026-01-05T10:59:55Z"))
    world.modify(1, lambda pod: running(pod, ready=False, since="2026-01-05T10:59:55Z"))
    assert progressing(world) == ("True", "Updating", "updating instance 1; instance 0 is on hold")


def test_unready_instance_whose_update_is_paused_counts_as_unavailable() -> None:
    """An unready instance keeps Progressing True, because its pod may become Ready without an
    update.
    """
    world = settled(replicas=2).change(template=NEW, updateStrategy={"paused": True})
    world.modify(0, lambda pod: running(pod, ready=False, since="2026-01-05T10:59:55Z"))
    expected = ("True", "WaitingForInstances", "instance 0 is not yet available")
    assert progressing(world) == expected


def unscheduled(pod: Document) -> Document:
    """Returns a pod for which the scheduler has found no node for two minutes."""
    condition = {
        "type": "PodScheduled",
        "status": "False",
        "reason": "Unschedulable",
        "lastTransitionTime": "2026-01-05T10:58:00Z",
    }
    spec = {key: value for key, value in pod["spec"].items() if key != "nodeName"}
    return {**pod, "spec": spec, "status": {"phase": "Pending", "conditions": [condition]}}


def test_wait_of_an_updated_instance_is_shown_beside_its_update() -> None:
    world = settled(replicas=1).change(template=NEW).modify(0, unscheduled)
    message = "updating instance 0 (instance 0: its pod has no node yet: Unschedulable)"
    assert progressing(world) == ("True", "Updating", message)


@pytest.mark.parametrize(
    ("state", "sentence"),
    [
        ("ending", "instance 0: its pod is ending since 2026-01-05T11:00:00Z"),
        ("unready", f"instance 0: its pod is not Ready since {READY_SINCE}"),
        ("missing", "instance 0: it has no pod since 2026-01-05T11:00:00Z"),
    ],
)
def test_stalled_message_says_since_when_a_pod_is_in_its_state(state: str, sentence: str) -> None:
    world = settled(replicas=1).change(template=NEW)
    world.sync()
    if state == "ending":
        ended = {"deletionGracePeriodSeconds": 3600, "deletionTimestamp": "2026-01-05T12:00:00Z"}
        world.modify(0, lambda pod: {**pod, "metadata": {**pod["metadata"], **ended}})
    else:
        world.kubelet(ready=False)
        world.sync()
        world.kubelet(ready=False)
        if state == "missing":
            del world.pods["web-0"]
    for _ in range(3):
        world.sync()
        if state == "missing":
            world.pods.pop("web-0", None)
    world.hook.now = NOW + LIMIT + 60
    found: Any = condition(world.sync()["status"], "Stalled")
    assert sentence in found["message"]
