"""Containers with restart policies and rules of their own: what runs again, as its kubelet has it.

Sources: pkg/kubelet, getPhase; pkg/api/v1/pod, ContainerShouldRestart.
"""

from collections.abc import Callable
from typing import Any

import pytest

from tapp.kube.restarts import restarts_of
from tests.builders import CREATED, Document, running, template, terminated
from tests.unit.world import World, settled


def rule(operator: str, *codes: int, action: str = "Restart") -> Document:
    """One of a container's restart policy rules."""
    return {"action": action, "exitCodes": {"operator": operator, "values": list(codes)}}


def own(policy: str, *rules: Document) -> Document:
    """A container's own policy."""
    return {"restartPolicy": policy, **({"restartPolicyRules": [*rules]} if rules else {})}


SIDE: Document = {"name": "side", "image": "side:1"}
LOG: Document = {"name": "log", "image": "log:1", "restartPolicy": "Always"}
INIT: Document = {"name": "init", "image": "init:1"}
ALL = "RestartAllContainers"


def ended(phase: str, **codes: int | None) -> Callable[[Document], Document]:
    """A pod that has completed, with the exit codes of its containers; None: it never ran."""

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
    "Never, done": (own("Never"), ended("Succeeded", app=0), False),
    "Never, failed": (own("Never"), ended("Failed", app=1), False),
    "Never, evicted": (own("Never"), ended("Failed", app=137), False),
    "OnFailure, done": (own("OnFailure"), ended("Succeeded", app=0), False),
    "OnFailure, evicted": (own("OnFailure"), ended("Failed", app=137), True),
    "OnFailure, evicted and ended well": (own("OnFailure"), ended("Failed", app=0), True),
    "Always, evicted": (own("Always"), ended("Failed", app=137), True),
    "a rule for others than it": (own("Never", rule("In", 42)), ended("Failed", app=1), False),
    "a rule for others, done": (own("Never", rule("In", 42)), ended("Succeeded", app=0), False),
    "a rule for it, evicted": (own("Never", rule("In", 42)), ended("Failed", app=42), True),
    "a rule for all but it": (own("Never", rule("NotIn", 1)), ended("Failed", app=1), False),
    "a rule for failures, evicted": (
        own("Never", rule("NotIn", 0)),
        ended("Failed", app=137),
        True,
    ),
    "a rule for success": (own("OnFailure", rule("In", 0)), ended("Succeeded", app=0), True),
    "the whole pod again": (own("Never", rule("In", 7, action=ALL)), ended("Failed", app=7), True),
    "the first rule counts": (
        own("Never", rule("In", 5, action="Unknown"), rule("In", 5)),
        ended("Failed", app=5),
        False,
    ),
}


@pytest.mark.parametrize("policy", ["Always", "Never", "OnFailure", None])
@pytest.mark.parametrize(("container", "end", "replaced"), ONE.values(), ids=ONE)
def test_a_containers_own_policy_decides_whatever_the_pods_is(
    container: Document, end: Callable[[Document], Document], replaced: bool, policy: str | None
) -> None:
    """An instance is finished if its kubelet would not start the container again."""
    pod = {} if policy is None else {"restartPolicy": policy}
    world = settled(replicas=1, template=template(container=container, **pod)).modify(0, end)
    check(world, replaced=replaced)


MIXED: dict[str, tuple[Document, Callable[[Document], Document], bool]] = {
    "Never, and one that follows the pod's Always": (
        {"container": own("Never"), "sidecars": [SIDE]},
        ended("Failed", app=0, side=137),
        True,
    ),
    "all Never, one failed": (
        {"container": own("Never"), "sidecars": [{**SIDE, **own("Never")}]},
        ended("Failed", app=0, side=1),
        False,
    ),
    "Never and OnFailure, both done": (
        {"container": own("Never"), "sidecars": [{**SIDE, **own("OnFailure")}]},
        ended("Succeeded", app=0, side=0),
        False,
    ),
    "Never and OnFailure, the latter evicted": (
        {"container": own("Never"), "sidecars": [{**SIDE, **own("OnFailure")}]},
        ended("Failed", app=0, side=137),
        True,
    ),
    "a native sidecar that was killed at the end": (
        {"container": own("Never"), "initContainers": [LOG]},
        ended("Succeeded", app=0, log=137),
        False,
    ),
    "a pod that never restarts, and one that does": (
        {"container": own("Always"), "sidecars": [SIDE], "restartPolicy": "Never"},
        ended("Failed", app=137, side=0),
        True,
    ),
    "an init container that failed for good": (
        {"initContainers": [{**INIT, **own("Never")}]},
        ended("Failed", init=1, app=None),
        False,
    ),
    "an init container that failed by its rule for good": (
        {"initContainers": [{**INIT, **own("Never", rule("In", 3))}]},
        ended("Failed", init=1, app=None),
        False,
    ),
    "an init container whose pod was evicted": (
        {"initContainers": [{**INIT, **own("OnFailure")}]},
        ended("Failed", init=137, app=None),
        True,
    ),
    "an init container that never runs again, and has done its work": (
        {"initContainers": [{**INIT, **own("Never")}]},
        ended("Failed", init=0, app=137),
        True,
    ),
}


@pytest.mark.parametrize(("parts", "end", "replaced"), MIXED.values(), ids=MIXED)
def test_of_several_containers_each_is_asked(
    parts: dict[str, Any], end: Callable[[Document], Document], replaced: bool
) -> None:
    """One that would be started again is enough; sidecars do not count, init containers may."""
    world = settled(replicas=1, template=template(**parts)).modify(0, end)
    check(world, replaced=replaced)


def check(world: World, *, replaced: bool) -> None:
    """The instance gets another pod, or is finished and stays so, with its pod gone."""
    phase = world.pod(0)["status"]["phase"]
    if replaced:
        assert world.decisions() == {0: "Delete/Completed"}
        return
    word = {"Succeeded": "Succ", "Failed": "Failed"}[phase]
    assert world.decisions() == {0: "Keep/Finished"}
    world.settle()
    assert (world.pods, world.parent["status"]["statuses"]) == ({}, {"0": word})
    assert world.decisions() == {0: "Absent/Finished"}


def test_a_pod_that_begins_anew_while_it_is_evicted_is_replaced() -> None:
    """A container that was ended because all of its pod start again has not finished."""

    def anew(pod: Document) -> Document:
        pod = ended("Failed", app=137)(pod)
        state = pod["status"]["containerStatuses"][0]["state"]
        state["terminated"]["reason"] = "RestartingAllContainers"
        return pod

    check(
        settled(replicas=1, template=template(container=own("Never"))).modify(0, anew),
        replaced=True,
    )


@pytest.mark.parametrize(
    ("container", "code", "in_place"),
    [
        pytest.param(own("Never"), 0, False, id="done for good"),
        pytest.param(own("Never", rule("In", 42)), 1, False, id="failed for good"),
        pytest.param(own("Never", rule("In", 42)), 42, True, id="by a rule it starts again"),
        pytest.param(own("OnFailure"), 1, True, id="it starts again"),
        pytest.param(own("OnFailure", rule("In", 0)), 0, True, id="even after success"),
        pytest.param({}, 0, True, id="the pod's Always"),
    ],
)
def test_what_is_not_started_again_is_not_updated_in_place(
    container: Document, code: int, in_place: bool
) -> None:
    """A container that has ended for good in a pod that runs: another image needs another pod."""

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
def test_rules_that_no_api_server_takes_change_nothing(rules: Any) -> None:
    """A rule that cannot be read is about no exit code."""
    found = restarts_of({"restartPolicy": "Never", "restartPolicyRules": rules}, "Always")
    assert not found.follow(1)


def test_a_finished_pod_is_remembered_from_its_creation_on() -> None:
    """A pod that ended within a second of its creation is finished, too: nothing is counted."""
    world = settled(replicas=1, template=template(container=own("Never")))
    world.modify(0, ended("Succeeded", app=0))
    assert world.pod(0)["metadata"]["creationTimestamp"] == CREATED
    world.settle()
    assert "failures" not in world.parent["status"]
