"""Waits of pods that do not serve: what for, since when, and from when on a wait is trouble."""

from collections.abc import Callable
from copy import deepcopy
from typing import Any

import pytest

from tests.builders import NOW, Document, running, tapp, template, terminated
from tests.reading import desired
from tests.unit.decide.test_lost_node import LOST, Nodes, stamp
from tests.unit.world import Hook, World, condition, settled

BOUND = NOW - 20


def pending(*conditions: tuple[str, str], node: str = "node-1", **status: Any) -> Document:
    """Spec and status of a Pending pod, with conditions (type, status) that turned at `BOUND`."""
    found = [
        {"type": kind, "status": value, "lastTransitionTime": stamp(BOUND)}
        for kind, value in conditions
    ]
    return {"node": node, "status": {"phase": "Pending", "conditions": found, **status}}


def as_told(told: Document) -> Callable[[Document], Document]:
    def change(pod: Document) -> Document:
        spec = {key: value for key, value in pod["spec"].items() if key != "nodeName"}
        spec |= {"nodeName": told["node"]} if told["node"] else {}
        meta = {**pod["metadata"], "creationTimestamp": stamp(BOUND)}
        return {**pod, "metadata": meta, "spec": spec, "status": told["status"]}

    return change


def container(name: str, **state: Any) -> Document:
    return {"name": name, "image": "a:1", "restartCount": 0, "ready": False, "state": state}


CREATING = container("app", waiting={"reason": "ContainerCreating"})
INITIALIZING = container("app", waiting={"reason": "PodInitializing"})
RUNS = {"startedAt": stamp(BOUND)}
ENDED = {"exitCode": 0, "startedAt": stamp(BOUND), "finishedAt": stamp(BOUND)}
ON_NODE = (("PodScheduled", "True"), ("PodReadyToStartContainers", "True"))
INIT = template(initContainers=[{"name": "fetch", "image": "a:1"}])
SIDECAR = template(initContainers=[{"name": "fetch", "image": "a:1", "restartPolicy": "Always"}])

WAITS: dict[str, tuple[Document, Document, float, str]] = {
    "no node": (
        template(), pending(("PodScheduled", "False"), node=""), 300, "no node for its pod",
    ),
    "a kubelet that is dead": (
        template(), pending(("PodScheduled", "True")), 300,
        "its pod was bound to node node-1 at 2026-01-05T10:59:40Z, and the kubelet there has not "
        "acknowledged it",
    ),
    "a kubelet that is dead, without a condition": (
        template(), pending(), 300, "the kubelet there has not acknowledged it",
    ),
    "volumes": (
        template(),
        pending(("PodScheduled", "True"), ("PodReadyToStartContainers", "False"),
                containerStatuses=[CREATING]),
        60, "volumes or network of its pod are not ready on node node-1 since 2026-01-05T10:59:40Z",
    ),
    "an image": (
        template(), pending(*ON_NODE, containerStatuses=[CREATING]), 600,
        "container app has not started since 2026-01-05T10:59:40Z: its image nginx:1.25 is still "
        "being pulled",
    ),
    "volumes or an image, on a kubelet without the condition": (
        template(), pending(("PodScheduled", "True"), containerStatuses=[CREATING]), 600,
        "container app has not started since 2026-01-05T10:59:40Z",
    ),
    "the image of an init container": (
        INIT,
        pending(
            *ON_NODE, containerStatuses=[INITIALIZING],
            initContainerStatuses=[container("fetch", waiting={"reason": "PodInitializing"})],
        ),
        600, "init container fetch has not started since 2026-01-05T10:59:40Z: its image a:1",
    ),
    "an init container": (
        INIT,
        pending(
            *ON_NODE, containerStatuses=[INITIALIZING],
            initContainerStatuses=[container("fetch", running=RUNS)],
        ),
        600, "init container fetch runs since 2026-01-05T10:59:40Z and has not ended",
    ),
    "the startup probe of a native sidecar": (
        SIDECAR,
        pending(
            *ON_NODE, containerStatuses=[INITIALIZING],
            initContainerStatuses=[container("fetch", running=RUNS) | {"started": False}],
        ),
        600, "init container fetch runs since 2026-01-05T10:59:40Z, and its startup probe has not",
    ),
    "an image after init containers": (
        INIT,
        pending(
            *ON_NODE, containerStatuses=[CREATING],
            initContainerStatuses=[container("fetch", terminated=ENDED)],
        ),
        600, "container app has not started since 2026-01-05T10:59:40Z",
    ),
    "one of two containers": (
        template(sidecars=[{"name": "side", "image": "b:1"}]),
        pending(*ON_NODE, containerStatuses=[
            container("app", running=RUNS),
            container("side", waiting={"reason": "ContainerCreating"}),
        ]),
        600, "container side has not started since 2026-01-05T10:59:40Z: its image b:1",
    ),
    "containers of which the kubelet tells nothing": (
        template(), pending(("PodScheduled", "True"), startTime=stamp(BOUND)), 600,
        "no container of its pod has been created since 2026-01-05T10:59:40Z",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("body", "told", "patience", "says"), WAITS.values(), ids=WAITS)
def test_a_wait_is_said_after_half_a_minute_and_is_trouble_when_it_has_lasted(
    body: Document, told: Document, patience: float, says: str
) -> None:
    """And each time the service asks to be called again in time."""
    world = settled(template=body).modify(0, as_told(told))
    answer = world.sync()
    assert says not in str(answer["status"])
    assert answer["resyncAfterSeconds"] == 10
    world.hook.now = BOUND + 30
    answer = world.sync()
    if patience > 30:
        assert says in told_by(answer, "Progressing", "True", "WaitingForInstances")
        assert told_by(answer, "Degraded", "False", "AsExpected")
        assert condition(answer, "Stalled") is None
        assert answer["resyncAfterSeconds"] == patience - 30
    world.hook.now = BOUND + patience
    answer = world.sync()
    assert says in told_by(answer, "Degraded", "True", "InstancesBroken")
    assert condition(answer, "Stalled") is not None


def told_by(answer: Document, type: str, status: str, reason: str) -> str:
    """The message of a condition, which is so."""
    found = condition(answer, type)
    assert found is not None
    assert (found["status"], found["reason"]) == (status, reason)
    return str(found["message"])


@pytest.mark.parametrize(("wait", "setting"), [
    ("no node", "unschedulable_seconds"), ("an init container", "start_seconds"),
    ("a kubelet that is dead", "lost_node_seconds"),
])  # fmt: skip
def test_the_operator_says_how_long_a_wait_may_last(wait: str, setting: str) -> None:
    body, told, _, says = WAITS[wait]
    for seconds in (40, 3_600):
        world = World(tapp(template=body), hook=Hook(**{setting: seconds})).settle()
        world.modify(0, as_told(told))
        world.hook.now = BOUND + seconds - 1
        assert told_by(world.sync(), "Degraded", "False", "AsExpected")
        world.hook.now += 1
        assert says in told_by(world.sync(), "Degraded", "True", "InstancesBroken")


OTHERS = {
    "scheduling gates": (
        {"schedulingGates": [{"name": "example.com/quota"}, {"name": "example.com/team"}]},
        {"type": "PodScheduled", "status": "False", "reason": "SchedulingGated"},
        "its pod waits for others to remove its scheduling gates: example.com/quota, example.com",
    ),
    "a scheduler": (
        {"schedulerName": "nobody"}, None,
        "no scheduler has looked at its pod since 2026-01-05T10:59:40Z (spec.schedulerName: nobody",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("spec", "told", "says"), OTHERS.values(), ids=OTHERS)
def test_a_wait_for_others_is_said_and_never_trouble(
    spec: Document, told: Document | None, says: str
) -> None:
    def change(pod: Document) -> Document:
        pod = as_told(pending(node=""))(pod)
        known = [] if told is None else [{**told, "lastTransitionTime": stamp(BOUND)}]
        status = {"phase": "Pending", "conditions": known}
        return {**pod, "spec": {**pod["spec"], **spec}, "status": status}

    world = settled().modify(0, change)
    for later in (30, 100_000):
        world.hook.now = BOUND + later
        answer = world.sync()
        assert says in told_by(answer, "Progressing", "True", "WaitingForInstances")
        assert told_by(answer, "Degraded", "False", "AsExpected")


# --- a pod whose node died before its kubelet saw the pod -----------------------------------------


def unseen(world: Nodes, *ids: int) -> Nodes:
    """The world in which the pods of these instances were bound, and no kubelet has seen them."""
    for id in ids:
        world.modify(id, as_told(pending(("PodScheduled", "True"), node=f"node-{id}")))
    return world


def test_an_instance_leaves_a_node_that_died_before_its_kubelet_saw_the_pod() -> None:
    """Its pod has never run; its deletion would need the kubelet, so the pod is made Failed."""
    world = unseen(Nodes(3), 2)
    world.hook.now = BOUND + 299
    world.sync()
    assert not world.lost(2)
    world.hook.now = BOUND + 300
    world.sync()
    assert world.lost(2) == stamp(BOUND)
    assert world.pod_status() == ["web-2"]
    assert (world.pod(2)["status"]["phase"], world.pod(2)["status"]["reason"]) == (
        "Failed", "NodeLost",
    )  # fmt: skip
    assert world.decisions()[2] == "Delete/NodeLost"


def test_an_instance_stays_if_the_kubelet_sees_the_pod_after_all() -> None:
    world = unseen(Nodes(3), 2)
    world.hook.now = BOUND + 300
    world.sync()
    world.modify(2, running)
    assert world.pod_status() == []
    world.sync()
    assert not world.lost(2)


@pytest.mark.parametrize("spec", [{"forceDeletePod": False}, {"neverMigrate": True}])
def test_without_force_delete_pod_it_is_said_and_not_moved(spec: Document) -> None:
    world = unseen(Nodes(3, **spec), 2)
    world.hook.now = BOUND + 300
    said = told_by(world.sync(), "Degraded", "True", "InstancesBroken")
    assert "instance 2: its pod was bound to node node-2" in said
    assert not world.lost(2)


def test_while_most_nodes_do_not_acknowledge_pods_nothing_moves() -> None:
    world = unseen(Nodes(3), 1, 2)
    world.hook.now = BOUND + 300
    assert condition(world.sync(), "MostNodesSilent") is not None
    assert not world.lost(2)


@pytest.mark.parametrize(("age", "decision"), [
    (5, "Delete/Killed"), (30, "Keep/NodeSilent"), (300, "Mark/NodeLost"),
])  # fmt: skip
def test_a_deletion_waits_for_a_kubelet_that_has_not_acknowledged_the_pod(
    age: float, decision: str
) -> None:
    """It would leave a pod that is half deleted for as long as the node is down."""
    world = unseen(Nodes(3), 2)
    world.hook.now = BOUND + age
    assert world.change(statuses={"2": "Killed"}).decisions()[2] == decision


def test_the_end_of_a_tapp_does_not_hang_on_a_pod_that_no_kubelet_has_seen() -> None:
    world = unseen(Nodes(3), 2)
    world.hook.now = BOUND + 300
    answer = world.hook.finalize(world.request(finalizing=True))
    kept = desired(answer, "Pod")
    assert list(kept) == ["web-2"]
    assert kept["web-2"]["metadata"]["annotations"][LOST] == stamp(BOUND)


# --- containers that have ended for good ----------------------------------------------------------


def half_ended(code: int = 1, **ended: Any) -> Callable[[Document], Document]:
    """A pod of which the first container has ended, and the others run."""

    def change(pod: Document) -> Document:
        pod = deepcopy(running(pod, ready=False))
        first, *others = pod["status"]["containerStatuses"]
        first = deepcopy(terminated(first, code))
        first["state"]["terminated"] |= {"finishedAt": stamp(BOUND), **ended}
        return {**pod, "status": {**pod["status"], "containerStatuses": [first, *others]}}

    return change


SIDE = {"name": "side", "image": "b:1"}
FOR_GOOD: dict[str, tuple[Document, int, Document, str]] = {
    "failed": (
        template(sidecars=[SIDE], restartPolicy="Never"), 3, {"reason": "Error"},
        "container app has ended with exit code 3 at 2026-01-05T10:59:40Z, and does not start "
        "again (restartPolicy Never); its pod goes on with side and is not Ready",
    ),
    "out of memory": (
        template(sidecars=[SIDE], restartPolicy="Never"), 137, {"reason": "OOMKilled"},
        "container app has ended with exit code 137 (OOMKilled) at",
    ),
    "by a policy of its own": (
        template(sidecars=[SIDE], container={"restartPolicy": "Never"}), 3, {},
        "container app has ended with exit code 3",
    ),
    "by a rule of its own": (
        template(
            sidecars=[SIDE],
            container={"restartPolicy": "Never", "restartPolicyRules": [
                {"action": "Restart", "exitCodes": {"operator": "NotIn", "values": [42]}},
            ]},
        ),
        42, {}, "container app has ended with exit code 42",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("body", "code", "ended", "says"), FOR_GOOD.values(), ids=FOR_GOOD)
def test_a_container_that_has_failed_for_good_is_named_while_others_run(
    body: Document, code: int, ended: Document, says: str
) -> None:
    world = settled(template=body).modify(0, half_ended(code, **ended))
    answer = world.sync()
    assert answer["status"]["statuses"] == {"0": "Pending"}
    assert says in told_by(answer, "Degraded", "True", "InstancesBroken")


@pytest.mark.parametrize("policy", ["Never", "OnFailure"])
def test_a_container_that_has_succeeded_is_named_and_is_no_trouble(policy: str) -> None:
    """A job whose container ends first may be meant so; but its pod is never Ready again."""
    world = settled(template=template(sidecars=[SIDE], restartPolicy=policy))
    answer = world.modify(0, half_ended(0)).sync()
    says = "container app has ended with exit code 0 at 2026-01-05T10:59:40Z, and does not start"
    assert says in told_by(answer, "Progressing", "True", "WaitingForInstances")
    assert told_by(answer, "Degraded", "False", "AsExpected")


AGAIN = {
    "Always": (template(sidecars=[SIDE]), 1),
    "OnFailure": (template(sidecars=[SIDE], restartPolicy="OnFailure"), 1),
    "alone": (template(restartPolicy="Never"), 1),
    "beside a native sidecar": (
        template(restartPolicy="Never", initContainers=[{**SIDE, "restartPolicy": "Always"}]), 1,
    ),
}  # fmt: skip


@pytest.mark.parametrize(("body", "code"), AGAIN.values(), ids=AGAIN)
def test_a_container_that_starts_again_or_ends_its_pod_has_not_ended_for_good(
    body: Document, code: int
) -> None:
    world = settled(template=body).modify(0, half_ended(code))
    assert "does not start again" not in str(world.sync()["status"])


# --- readiness gates ------------------------------------------------------------------------------

ALB, OURS = "target-health.alb.example.com/web", "apps.tkestack.io/InPlaceUpdateReady"
GATES: dict[str, tuple[Document | None, str]] = {
    "no condition": (None, "is unmet: nobody has set its condition yet"),
    "False": (
        {"status": "False", "reason": "Target.NotRegistered", "message": "no target"},
        "is unmet: Target.NotRegistered: no target",
    ),
    "Unknown": ({"status": "Unknown"}, "is unmet: its condition is Unknown"),
}


@pytest.mark.parametrize(("known", "says"), GATES.values(), ids=GATES)
@pytest.mark.parametrize("gate", [ALB, OURS])
def test_a_readiness_gate_that_does_not_open_is_named(
    gate: str, known: Document | None, says: str
) -> None:
    world = settled()

    def gated(pod: Document) -> Document:
        pod = running(pod, since=stamp(BOUND))
        gates = {"readinessGates": [{"conditionType": gate}]}
        conditions = [
            {**item, "status": "False"} if item["type"] == "Ready" else item
            for item in pod["status"]["conditions"]
        ]
        conditions += [] if known is None else [{"type": gate, **known}]
        status = {**pod["status"], "conditions": conditions}
        return {**pod, "spec": {**pod["spec"], **gates}, "status": status}

    world.modify(0, gated).sync()  # which labels the pod, if the gate is one of ours
    world.hook.now = BOUND + 30
    said = told_by(world.sync(), "Progressing", "True", "WaitingForInstances")
    assert f"its pod is not Ready since 2026-01-05T10:59:40Z: its readiness gate {gate} " in said
    assert says in said


def test_a_probe_that_does_not_pass_is_named_with_its_container() -> None:
    def unready(pod: Document) -> Document:
        pod = deepcopy(running(pod, ready=False, since=stamp(BOUND)))
        pod["status"]["containerStatuses"][0]["ready"] = False
        return pod

    world = settled().modify(0, unready)
    world.hook.now = BOUND + 30
    said = told_by(world.sync(), "Progressing", "True", "WaitingForInstances")
    assert "container app: its readiness probe has not passed" in said
