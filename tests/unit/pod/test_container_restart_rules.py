"""Tests which containers with their own restart policies and rules the kubelet runs again."""

from collections.abc import Callable
from typing import Any

import pytest

from tapp.kube.restarts import restarts_of
from tests.builders import CREATED, Document, running, template, terminated
from tests.unit.world import World, settled


def rule(operator: str, *codes: int, action: str = "Restart") -> Document:
    """Returns a restart policy rule of a container for these exit codes."""
    return {"action": action, "exitCodes": {"operator": operator, "values": list(codes)}}


def own_policy(policy: str, *rules: Document) -> Document:
    """Returns the fields of a container with this restart policy and these rules."""
    return {"restartPolicy": policy, **({"restartPolicyRules": [*rules]} if rules else {})}


SIDE: Document = {"name": "side", "image": "side:1"}
LOG: Document = {"name": "log", "image": "log:1", "restartPolicy": "Always"}
INIT: Document = {"name": "init", "image": "init:1"}
ALL = "RestartAllContainers"


def ended(phase: str, **codes: int | None) -> Callable[[Document], Document]:
    """Returns a function that ends a pod in this phase.

    `codes` maps container names to exit codes; None stands for a container that never ran.
    """

    def complete(pod: Document) -> Document:
        pod = running(pod, ready=False)
        status = {**pod["status"], "phase": phase}
        for part in ("initContainerStatuses", "containerStatuses"):
            if part in status:
                status[part] = [_ended(item, codes.get(item["name"], 0)) for item in status[part]]
        return {**pod, "status": status}

    return complete


def _ended(status: Document, code: int | None) -> Document:
    if code is not None:
        return terminated(status, code)
    bare = {key: value for key, value in status.items() if key != "containerID"}
    return {**bare, "ready": False, "state": {"waiting": {"reason": "PodInitializing"}}}


ONE = {
    "Never, succeeded": (own_policy("Never"), ended("Succeeded", app=0), False),
    "Never, failed": (own_policy("Never"), ended("Failed", app=1), False),
    "Never, evicted": (own_policy("Never"), ended("Failed", app=137), False),
    "OnFailure, succeeded": (own_policy("OnFailure"), ended("Succeeded", app=0), False),
    "OnFailure, evicted": (own_policy("OnFailure"), ended("Failed", app=137), True),
    "OnFailure, evicted with exit code 0": (own_policy("OnFailure"), ended("Failed", app=0), True),
    "Always, evicted": (own_policy("Always"), ended("Failed", app=137), True),
    "rule for another exit code, failed": (
        own_policy("Never", rule("In", 42)),
        ended("Failed", app=1),
        False,
    ),
    "rule for another exit code, succeeded": (
        own_policy("Never", rule("In", 42)),
        ended("Succeeded", app=0),
        False,
    ),
    "rule for the exit code": (own_policy("Never", rule("In", 42)), ended("Failed", app=42), True),
    "rule for all other exit codes": (
        own_policy("Never", rule("NotIn", 1)),
        ended("Failed", app=1),
        False,
    ),
    "rule for failures, evicted": (
        own_policy("Never", rule("NotIn", 0)),
        ended("Failed", app=137),
        True,
    ),
    "rule for success": (own_policy("OnFailure", rule("In", 0)), ended("Succeeded", app=0), True),
    "rule that restarts all containers": (
        own_policy("Never", rule("In", 7, action=ALL)),
        ended("Failed", app=7),
        True,
    ),
    "first matching rule counts": (
        own_policy("Never", rule("In", 5, action="Unknown"), rule("In", 5)),
        ended("Failed", app=5),
        False,
    ),
}


@pytest.mark.parametrize("policy", ["Always", "Never", "OnFailure", None])
@pytest.mark.parametrize(("container", "end", "replaced"), ONE.values(), ids=ONE)
def test_policy_of_a_container_overrides_that_of_its_pod(
    container: Document, end: Callable[[Document], Document], replaced: bool, policy: str | None
) -> None:
    """Ends the only container of a pod: its own policy says whether the pod is replaced.

    An instance is finished if its kubelet would not restart the container.
    """
    pod = {} if policy is None else {"restartPolicy": policy}
    world = settled(replicas=1, template=template(container=container, **pod)).modify(0, end)
    assert_replaced_or_finished(world, replaced=replaced)


MIXED: dict[str, tuple[Document, Callable[[Document], Document], bool]] = {
    "Never, and one with the pod's Always": (
        {"container": own_policy("Never"), "sidecars": [SIDE]},
        ended("Failed", app=0, side=137),
        True,
    ),
    "all Never, one failed": (
        {"container": own_policy("Never"), "sidecars": [{**SIDE, **own_policy("Never")}]},
        ended("Failed", app=0, side=1),
        False,
    ),
    "Never and OnFailure, both succeeded": (
        {"container": own_policy("Never"), "sidecars": [{**SIDE, **own_policy("OnFailure")}]},
        ended("Succeeded", app=0, side=0),
        False,
    ),
    "Never and OnFailure, the latter evicted": (
        {"container": own_policy("Never"), "sidecars": [{**SIDE, **own_policy("OnFailure")}]},
        ended("Failed", app=0, side=137),
        True,
    ),
    "native sidecar killed at the end": (
        {"container": own_policy("Never"), "initContainers": [LOG]},
        ended("Succeeded", app=0, log=137),
        False,
    ),
    "pod Never, container Always": (
        {"container": own_policy("Always"), "sidecars": [SIDE], "restartPolicy": "Never"},
        ended("Failed", app=137, side=0),
        True,
    ),
    "init container Never, failed": (
        {"initContainers": [{**INIT, **own_policy("Never")}]},
        ended("Failed", init=1, app=None),
        False,
    ),
    "init container with a rule for another exit code, failed": (
        {"initContainers": [{**INIT, **own_policy("Never", rule("In", 3))}]},
        ended("Failed", init=1, app=None),
        False,
    ),
    "init container OnFailure, evicted": (
        {"initContainers": [{**INIT, **own_policy("OnFailure")}]},
        ended("Failed", init=137, app=None),
        True,
    ),
    "init container Never, succeeded": (
        {"initContainers": [{**INIT, **own_policy("Never")}]},
        ended("Failed", init=0, app=137),
        True,
    ),
}


@pytest.mark.parametrize(("parts", "end", "replaced"), MIXED.values(), ids=MIXED)
def test_pod_is_replaced_if_one_of_its_containers_would_restart(
    parts: dict[str, Any], end: Callable[[Document], Document], replaced: bool
) -> None:
    """Ends pods with several containers: the pod is replaced if the kubelet would restart one of
    them.

    Sidecars do not count; init containers count unless they are done.
    """
    world = settled(replicas=1, template=template(**parts)).modify(0, end)
    assert_replaced_or_finished(world, replaced=replaced)


def assert_replaced_or_finished(world: World, *, replaced: bool) -> None:
    """Checks that the pod is replaced, or that the instance is finished for good."""
    phase = world.pod(0)["status"]["phase"]
    if replaced:
        assert world.decisions() == {0: "Delete/Completed"}
        return
    word = {"Succeeded": "Succ", "Failed": "Failed"}[phase]
    assert world.decisions() == {0: "Keep/Finished"}
    world.settle()
    assert world.pods == {}
    assert world.parent["status"]["statuses"] == {"0": word}
    assert world.decisions() == {0: "Absent/Finished"}


def test_pod_that_is_evicted_while_all_its_containers_restart_is_replaced() -> None:
    """Evicts a pod during a restart of all its containers: a container that was stopped for it has
    not finished.
    """

    def restarting(pod: Document) -> Document:
        pod = ended("Failed", app=137)(pod)
        state = pod["status"]["containerStatuses"][0]["state"]
        state["terminated"]["reason"] = "RestartingAllContainers"
        return pod

    assert_replaced_or_finished(
        settled(replicas=1, template=template(container=own_policy("Never"))).modify(0, restarting),
        replaced=True,
    )


@pytest.mark.parametrize(
    ("container", "code", "in_place"),
    [
        pytest.param(own_policy("Never"), 0, False, id="Never, succeeded"),
        pytest.param(
            own_policy("Never", rule("In", 42)), 1, False, id="rule for another exit code, failed"
        ),
        pytest.param(own_policy("Never", rule("In", 42)), 42, True, id="rule for the exit code"),
        pytest.param(own_policy("OnFailure"), 1, True, id="OnFailure, failed"),
        pytest.param(
            own_policy("OnFailure", rule("In", 0)), 0, True, id="OnFailure with a rule for success"
        ),
        pytest.param({}, 0, True, id="Always of the pod"),
    ],
)
def test_container_that_would_not_restart_is_updated_by_replacing_the_pod(
    container: Document, code: int, in_place: bool
) -> None:
    def half(pod: Document) -> Document:
        first, *rest = pod["status"]["containerStatuses"]
        status = {**pod["status"], "containerStatuses": [terminated(first, code), *rest]}
        return {**pod, "status": status}

    world = settled(replicas=1, template=template(container=container, sidecars=[SIDE]))
    world.modify(0, half).change(template=template("nginx:2", container=container, sidecars=[SIDE]))
    assert world.decisions() == {
        0: "UpdateInPlace/TemplateChanged" if in_place else "Recreate/NotInPlace"
    }


@pytest.mark.parametrize(
    "rules",
    [7, {}, [7], [{}], [{"exitCodes": 1}], [{"exitCodes": {"operator": "In", "values": "1"}}]],
    ids=str,
)
def test_invalid_rules_have_no_effect(rules: Any) -> None:
    found = restarts_of({"restartPolicy": "Never", "restartPolicyRules": rules}, "Always")
    assert not found.restarts_after(1)


def test_pod_that_succeeds_within_a_second_is_finished_and_does_not_count_as_failed() -> None:
    world = settled(replicas=1, template=template(container=own_policy("Never")))
    world.modify(0, ended("Succeeded", app=0))
    assert world.pod(0)["metadata"]["creationTimestamp"] == CREATED
    world.settle()
    assert "failures" not in world.parent["status"]
