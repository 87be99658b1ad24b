"""Tests pods that are not Ready: the reasons for the wait, and when that makes the TApp
degraded.
"""

from collections.abc import Callable
from copy import deepcopy
from typing import Any

import pytest

from tests.builders import Document, running, tapp, template, terminated
from tests.unit.nodes import timestamp
from tests.unit.pod.waiting import BOUND, message_of, pending, with_state
from tests.unit.world import Hook, World, condition, settled


def container(name: str, **state: Any) -> Document:
    return {"name": name, "image": "a:1", "restartCount": 0, "ready": False, "state": state}


def ended_pod(*statuses: Document, phase: str = "Running", **status: Any) -> Document:
    """Returns node and status of a pod that was Ready until `BOUND`."""
    known = (*ON_NODE, ("Ready", "False"))
    return pending(*known, phase=phase, containerStatuses=[*statuses], **status)


ON_NODE = (("PodScheduled", "True"), ("PodReadyToStartContainers", "True"))
CREATING = container("app", waiting={"reason": "ContainerCreating"})
INITIALIZING = container("app", waiting={"reason": "PodInitializing"})
RUNS = {"startedAt": timestamp(BOUND)}
ENDED = {"exitCode": 0, "startedAt": timestamp(BOUND), "finishedAt": timestamp(BOUND)}
INIT = template(initContainers=[{"name": "fetch", "image": "a:1"}])
SIDECAR = template(initContainers=[{"name": "fetch", "image": "a:1", "restartPolicy": "Always"}])

WAITS: dict[str, tuple[Document, Document, float, str]] = {
    "no node": (
        template(), pending(("PodScheduled", "False"), node=""), 300, "its pod has no node yet",
    ),
    "dead kubelet": (
        template(), pending(("PodScheduled", "True")), 300,
        "its pod was bound to node node-1 at 2026-01-05T10:59:40Z, and the kubelet there has not "
        "acknowledged it",
    ),
    "dead kubelet, no condition": (
        template(), pending(), 300, "the kubelet there has not acknowledged it",
    ),
    "volumes": (
        template(),
        pending(("PodScheduled", "True"), ("PodReadyToStartContainers", "False"),
                containerStatuses=[CREATING]),
        60, "volumes or network of its pod are not ready on node node-1 since 2026-01-05T10:59:40Z",
    ),
    "image": (
        template(), pending(*ON_NODE, containerStatuses=[CREATING]), 600,
        "container app has not started since 2026-01-05T10:59:40Z: its image nginx:1.25 is still "
        "being pulled",
    ),
    "volumes or image, older kubelet": (
        template(), pending(("PodScheduled", "True"), containerStatuses=[CREATING]), 600,
        "container app has not started since 2026-01-05T10:59:40Z",
    ),
    "image of an init container": (
        INIT,
        pending(
            *ON_NODE, containerStatuses=[INITIALIZING],
            initContainerStatuses=[container("fetch", waiting={"reason": "PodInitializing"})],
        ),
        600, "init container fetch has not started since 2026-01-05T10:59:40Z: its image a:1",
    ),
    "init container": (
        INIT,
        pending(
            *ON_NODE, containerStatuses=[INITIALIZING],
            initContainerStatuses=[container("fetch", running=RUNS)],
        ),
        600, "init container fetch runs since 2026-01-05T10:59:40Z and has not ended",
    ),
    "startup probe of a native sidecar": (
        SIDECAR,
        pending(
            *ON_NODE, containerStatuses=[INITIALIZING],
            initContainerStatuses=[container("fetch", running=RUNS) | {"started": False}],
        ),
        600, "init container fetch runs since 2026-01-05T10:59:40Z, and its startup probe has not",
    ),
    "image after init containers": (
        INIT,
        pending(
            *ON_NODE, containerStatuses=[CREATING],
            initContainerStatuses=[container("fetch", terminated=ENDED)],
        ),
        600, "container app has not started since 2026-01-05T10:59:40Z",
    ),
    "image or node after init containers": (
        INIT,
        pending(
            *ON_NODE, containerStatuses=[INITIALIZING],
            initContainerStatuses=[container("fetch", terminated=ENDED)],
        ),
        600, "init container fetch has ended with exit code 0 at 2026-01-05T10:59:40Z; its image "
        "nginx:1.25 is still being pulled, or it is being created, or node node-1 is down",
    ),
    "restart of an init container": (
        INIT,
        pending(
            *ON_NODE, containerStatuses=[INITIALIZING],
            initContainerStatuses=[container("fetch", terminated={**ENDED, "exitCode": 137})],
        ),
        600, "init container fetch has ended with exit code 137 at 2026-01-05T10:59:40Z, and the "
        "kubelet on node node-1 has not started it again: the node may be down",
    ),
    "restart of a native sidecar that has succeeded": (
        SIDECAR,
        pending(
            *ON_NODE, containerStatuses=[INITIALIZING],
            initContainerStatuses=[container("fetch", terminated=ENDED)],
        ),
        600, "init container fetch has ended with exit code 0 at 2026-01-05T10:59:40Z, and the "
        "kubelet on node node-1 has not started it again: the node may be down",
    ),
    "end of the pod after an init container": (
        template(restartPolicy="Never", initContainers=[{"name": "fetch", "image": "a:1"}]),
        pending(
            *ON_NODE, containerStatuses=[INITIALIZING],
            initContainerStatuses=[container("fetch", terminated={**ENDED, "exitCode": 3})],
        ),
        600, "init container fetch has ended with exit code 3 at 2026-01-05T10:59:40Z, and the "
        "kubelet on node node-1 has not ended its pod: the node may be down",
    ),
    "second init container": (
        template(initContainers=[{"name": "fetch", "image": "a:1"}, {"name": "b", "image": "b:1"}]),
        pending(
            *ON_NODE, containerStatuses=[INITIALIZING],
            initContainerStatuses=[
                container("fetch", terminated=ENDED),
                container("b", waiting={"reason": "PodInitializing"}),
            ],
        ),
        600, "init container b has not started since 2026-01-05T10:59:40Z: init container fetch "
        "has ended with exit code 0 at 2026-01-05T10:59:40Z; its image b:1",
    ),
    "one of two containers": (
        template(sidecars=[{"name": "side", "image": "b:1"}]),
        pending(*ON_NODE, containerStatuses=[
            container("app", running=RUNS),
            container("side", waiting={"reason": "ContainerCreating"}),
        ]),
        600, "container side has not started since 2026-01-05T10:59:40Z: its image b:1",
    ),
    "failure that only newer kubelets have": (
        template(),
        pending(*ON_NODE, containerStatuses=[
            container("app", waiting={"reason": "NewFailure", "message": "no luck"}),
        ]),
        600, "container app has not started since 2026-01-05T10:59:40Z: NewFailure: no luck",
    ),
    "restart that does not come": (
        template(), ended_pod(container("app", terminated={**ENDED, "exitCode": 1})),
        600, "container app has ended with exit code 1 at 2026-01-05T10:59:40Z, and the kubelet "
        "has not started it again",
    ),
    "restart that waits": (
        template(),
        ended_pod(
            container("app", waiting={"reason": "NewFailure"})
            | {"lastState": {"terminated": ENDED}, "restartCount": 1}
        ),
        600, "and the kubelet has not started it again: NewFailure",
    ),
    "restart of a native sidecar": (
        SIDECAR,
        ended_pod(
            container("app", running=RUNS),
            initContainerStatuses=[container("fetch", terminated={**ENDED, "exitCode": 1})],
        ),
        600, "container fetch has ended with exit code 1",
    ),
    "end of the pod": (
        template(restartPolicy="Never"), ended_pod(container("app", terminated=ENDED)),
        600, "container app has ended with exit code 0 at 2026-01-05T10:59:40Z, and its pod has "
        "not completed",
    ),
    "no container statuses": (
        template(), pending(("PodScheduled", "True"), startTime=timestamp(BOUND)), 600,
        "no container of its pod has been created since 2026-01-05T10:59:40Z",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("body", "state", "patience", "message"), WAITS.values(), ids=WAITS)
def test_wait_is_reported_after_half_a_minute_and_makes_the_tapp_degraded_later(
    body: Document, state: Document, patience: float, message: str
) -> None:
    """A pod waits for one step: Progressing names the step after 30 seconds, Degraded after
    `patience` seconds.

    The service also requests a resync for both of these times.
    """
    world = settled(template=body).modify(0, with_state(state))
    answer = world.sync()
    assert message not in str(answer["status"])
    assert answer["resyncAfterSeconds"] == 10
    world.hook.now = BOUND + 30
    answer = world.sync()
    if patience > 30:
        assert message in message_of(answer, "Progressing", "True", "WaitingForInstances")
        assert message_of(answer, "Degraded", "False", "AsExpected")
        assert condition(answer, "Stalled") is None
        assert answer["resyncAfterSeconds"] == patience - 30
    world.hook.now = BOUND + patience
    answer = world.sync()
    assert message in message_of(answer, "Degraded", "True", "InstancesBroken")
    assert condition(answer, "Stalled") is not None


def test_pod_with_unknown_phase_makes_the_tapp_degraded_after_the_patience_with_nodes() -> None:
    """A pod has the phase Unknown: the TApp is Degraded after 300 seconds, with the node in the
    message.

    Only control planes before Kubernetes 1.21, and some virtual kubelets, write this phase.
    """
    world = settled()
    world.modify(0, with_state(ended_pod(container("app", running=RUNS), phase="Unknown")))
    world.hook.now = BOUND + 299
    assert message_of(world.sync(), "Degraded", "False", "AsExpected")
    world.hook.now = BOUND + 300
    said = message_of(world.sync(), "Degraded", "True", "InstancesBroken")
    assert "the phase of its pod is Unknown: node node-1 has stopped reporting" in said


@pytest.mark.parametrize(("wait", "setting"), [
    ("no node", "unschedulable_seconds"), ("init container", "start_seconds"),
    ("dead kubelet", "lost_node_seconds"),
])  # fmt: skip
def test_setting_of_the_service_determines_when_a_wait_makes_the_tapp_degraded(
    wait: str, setting: str
) -> None:
    body, state, _, message = WAITS[wait]
    for seconds in (40, 3_600):
        world = World(tapp(template=body), hook=Hook(**{setting: seconds})).settle()
        world.modify(0, with_state(state))
        world.hook.now = BOUND + seconds - 1
        assert message_of(world.sync(), "Degraded", "False", "AsExpected")
        world.hook.now += 1
        assert message in message_of(world.sync(), "Degraded", "True", "InstancesBroken")


OTHERS = {
    "scheduling gates": (
        {"schedulingGates": [{"name": "example.com/quota"}, {"name": "example.com/team"}]},
        {"type": "PodScheduled", "status": "False", "reason": "SchedulingGated"},
        "its pod waits until other controllers remove its scheduling gates: example.com/quota, "
        "example.com",
    ),
    "missing scheduler": (
        {"schedulerName": "nobody"}, None,
        "no scheduler has looked at its pod since 2026-01-05T10:59:40Z (spec.schedulerName: nobody",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("spec", "scheduled", "message"), OTHERS.values(), ids=OTHERS)
def test_wait_for_another_component_is_reported_and_never_degraded(
    spec: Document, scheduled: Document | None, message: str
) -> None:
    def change(pod: Document) -> Document:
        pod = with_state(pending(node=""))(pod)
        known = [] if scheduled is None else [{**scheduled, "lastTransitionTime": timestamp(BOUND)}]
        status = {"phase": "Pending", "conditions": known}
        return {**pod, "spec": {**pod["spec"], **spec}, "status": status}

    world = settled().modify(0, change)
    for later in (30, 100_000):
        world.hook.now = BOUND + later
        answer = world.sync()
        assert message in message_of(answer, "Progressing", "True", "WaitingForInstances")
        assert message_of(answer, "Degraded", "False", "AsExpected")


@pytest.mark.parametrize(("ready", "message"), [
    ((), "its kubelet has not written the condition Ready"),
    ((("Ready", "False"),), "its pod is not Ready since 2026-01-05T10:59:40Z: NotServing"),
], ids=["no condition Ready", "reason of Ready"])  # fmt: skip
def test_unready_pod_without_unmet_gates_and_probes_is_reported(
    ready: tuple[tuple[str, str], ...], message: str
) -> None:
    runs = container("app", running=RUNS) | {"ready": True, "started": True}
    state = pending(*ON_NODE, *ready, phase="Running", containerStatuses=[runs])
    for each in state["status"]["conditions"]:
        each["reason"] = "NotServing"
    world = settled().modify(0, with_state(state))
    world.hook.now = BOUND + 30
    assert message in message_of(world.sync(), "Progressing", "True", "WaitingForInstances")


# --- containers that have ended and will not restart ----------------------------------------------


def with_first_container_ended(code: int = 1, **ended: Any) -> Callable[[Document], Document]:
    """Returns a function that ends the first container of a pod with this exit code, while the
    others run.

    `ended` has further fields of its terminated state.
    """

    def change(pod: Document) -> Document:
        pod = deepcopy(running(pod, ready=False))
        first, *others = pod["status"]["containerStatuses"]
        first = deepcopy(terminated(first, code))
        first["state"]["terminated"] |= {"finishedAt": timestamp(BOUND), **ended}
        return {**pod, "status": {**pod["status"], "containerStatuses": [first, *others]}}

    return change


SIDE = {"name": "side", "image": "b:1"}
FAILED: dict[str, tuple[Document, int, Document, str]] = {
    "failed": (
        template(sidecars=[SIDE], restartPolicy="Never"), 3, {"reason": "Error"},
        "container app has ended with exit code 3 at 2026-01-05T10:59:40Z, and does not start "
        "again (restartPolicy Never); container side still runs, and its pod is not Ready",
    ),
    "out of memory": (
        template(sidecars=[SIDE], restartPolicy="Never"), 137, {"reason": "OOMKilled"},
        "container app has ended with exit code 137 (OOMKilled) at",
    ),
    "own policy": (
        template(sidecars=[SIDE], container={"restartPolicy": "Never"}), 3, {},
        "container app has ended with exit code 3",
    ),
    "own rule": (
        template(
            sidecars=[SIDE],
            container={"restartPolicy": "Never", "restartPolicyRules": [
                {"action": "Restart", "exitCodes": {"operator": "NotIn", "values": [42]}},
            ]},
        ),
        42, {}, "container app has ended with exit code 42",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("body", "code", "ended", "message"), FAILED.values(), ids=FAILED)
def test_failed_container_that_will_not_restart_is_reported_while_others_run(
    body: Document, code: int, ended: Document, message: str
) -> None:
    world = settled(template=body).modify(0, with_first_container_ended(code, **ended))
    answer = world.sync()
    assert answer["status"]["statuses"] == {"0": "Pending"}
    assert message in message_of(answer, "Degraded", "True", "InstancesBroken")


@pytest.mark.parametrize("policy", ["Never", "OnFailure"])
def test_succeeded_container_is_reported_and_does_not_make_the_tapp_degraded(policy: str) -> None:
    """The first of two containers has succeeded: Progressing says so, and Degraded is False.

    A job may be meant that way, but its pod is never Ready again.
    """
    world = settled(template=template(sidecars=[SIDE], restartPolicy=policy))
    answer = world.modify(0, with_first_container_ended(0)).sync()
    says = "container app has ended with exit code 0 at 2026-01-05T10:59:40Z, and does not start"
    assert says in message_of(answer, "Progressing", "True", "WaitingForInstances")
    assert message_of(answer, "Degraded", "False", "AsExpected")


RESTARTING = {
    "Always": (template(sidecars=[SIDE]), 1),
    "OnFailure": (template(sidecars=[SIDE], restartPolicy="OnFailure"), 1),
    "only container": (template(restartPolicy="Never"), 1),
    "next to a native sidecar": (
        template(restartPolicy="Never", initContainers=[{**SIDE, "restartPolicy": "Always"}]), 1,
    ),
}  # fmt: skip


@pytest.mark.parametrize(("body", "code"), RESTARTING.values(), ids=RESTARTING)
def test_container_that_restarts_or_ends_its_pod_is_not_reported(body: Document, code: int) -> None:
    world = settled(template=body).modify(0, with_first_container_ended(code))
    assert "does not start again" not in str(world.sync()["status"])


# --- readiness gates ------------------------------------------------------------------------------

ALB, OURS = "target-health.alb.example.com/web", "apps.tkestack.io/InPlaceUpdateReady"
GATES: dict[str, tuple[Document | None, str]] = {
    "no condition": (None, "is unmet: no controller has set its condition yet"),
    "False": (
        {"status": "False", "reason": "Target.NotRegistered", "message": "no target"},
        "is unmet: Target.NotRegistered: no target",
    ),
    "Unknown": ({"status": "Unknown"}, "is unmet: its condition is Unknown"),
}


@pytest.mark.parametrize(("known", "message"), GATES.values(), ids=GATES)
@pytest.mark.parametrize("gate", [ALB, OURS], ids=["of another controller", "of the service"])
def test_closed_readiness_gate_is_reported(gate: str, known: Document | None, message: str) -> None:
    world = settled()

    def gated(pod: Document) -> Document:
        pod = running(pod, since=timestamp(BOUND))
        gates = {"readinessGates": [{"conditionType": gate}]}
        conditions = [
            {**item, "status": "False"} if item["type"] == "Ready" else item
            for item in pod["status"]["conditions"]
        ]
        conditions += [] if known is None else [{"type": gate, **known}]
        status = {**pod["status"], "conditions": conditions}
        return {**pod, "spec": {**pod["spec"], **gates}, "status": status}

    world.modify(0, gated).sync()  # labels the pod if the gate is ours
    world.hook.now = BOUND + 30
    said = message_of(world.sync(), "Progressing", "True", "WaitingForInstances")
    assert f"its pod is not Ready since 2026-01-05T10:59:40Z: its readiness gate {gate} " in said
    assert message in said


def test_failing_readiness_probe_is_reported_with_its_container() -> None:
    def unready(pod: Document) -> Document:
        pod = deepcopy(running(pod, ready=False, since=timestamp(BOUND)))
        pod["status"]["containerStatuses"][0]["ready"] = False
        return pod

    world = settled().modify(0, unready)
    world.hook.now = BOUND + 30
    said = message_of(world.sync(), "Progressing", "True", "WaitingForInstances")
    assert "container app: its readiness probe has not passed" in said
