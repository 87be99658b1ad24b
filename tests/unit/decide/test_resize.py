"""Tests `resources: InPlace`: changed resources of a template are given to running pods."""

from typing import Any

import pytest

from hooks.wire.memo import Memo
from hooks.wire.request import Request, world_of
from tapp.answer.resize_patches import patches
from tapp.declared.model import TApp
from tapp.kube.resources import qos_class
from tapp.plan import make_plan
from tapp.world import Options
from tests.builders import NOW, Document, as_sent
from tests.holds import HELD, HOLD, HOLD_FOR, WANTED
from tests.hook_calls import note
from tests.unit.decide.pods import annotated
from tests.unit.decide.resizing import (
    IN_PLACE,
    LESS,
    MORE,
    RESIZED,
    decision,
    tapp_with_resizing,
    template_with_resources,
    with_reported_resources,
    with_resources,
)
from tests.unit.world import World, condition

GUARANTEED = {"limits": {"cpu": "1", "memory": "1Gi"}}


REPLACED = "Recreate/NotInPlace: its pod is replaced, because an update in place is not possible: "


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        (LESS, MORE, RESIZED),
        (LESS, {**LESS, "limits": {"cpu": "4"}}, RESIZED),
        (GUARANTEED, {"limits": {"cpu": "2", "memory": "1Gi"}}, RESIZED),
        (
            LESS,
            {"requests": {"cpu": "2"}},
            REPLACED + "requests.memory of container 'app' cannot be",
        ),
        (LESS, None, REPLACED + "requests.cpu of container 'app' cannot be removed by a resize"),
        (
            GUARANTEED,
            {**GUARANTEED, "requests": {"cpu": "500m"}},
            REPLACED + "its QoS class would change from Guaranteed to Burstable",
        ),
        (None, LESS, REPLACED + "its QoS class would change from BestEffort to Burstable"),
        (
            LESS,
            {**LESS, "limits": {"nvidia.com/gpu": 1}},
            REPLACED + "nvidia.com/gpu of container 'app' cannot be resized",
        ),
        (
            LESS,
            {**MORE, "claims": [{"name": "x"}]},
            REPLACED + "resources.claims of container 'app' changes, which a resize cannot do",
        ),
        (
            LESS,
            {**LESS, "limits": {"cpu": "500m"}},
            "Keep/Blocked: template 'default': "
            "spec.containers[0].resources has more requests than limits of 'cpu'",
        ),
        (
            LESS,
            {"requests": {"cpu": "much", "memory": "1Gi"}},
            "Keep/Blocked: template 'default': "
            "spec.containers[0].resources has requests of 'cpu' 'much': it must be a quantity",
        ),
        (
            LESS,
            {"requests": {"cpu": "-1", "memory": "1Gi"}},
            "Keep/Blocked: template 'default': "
            "spec.containers[0].resources has requests of 'cpu' '-1': it must be a quantity",
        ),
    ],
    ids=[
        "requests changed",
        "limit added",
        "limits changed",
        "one request removed",
        "all resources removed",
        "Guaranteed to Burstable",
        "BestEffort to Burstable",
        "extended resource added",
        "claim added",
        "request above limit",
        "invalid quantity",
        "negative quantity",
    ],
)
def test_changed_resources_are_resized_or_replace_the_pod_or_are_blocked(
    before: Document | None, after: Document | None, expected: str
) -> None:
    # The kubelet reports {} for a container without any resources.
    first, second = (template_with_resources(each) for each in (before, after))
    for each in (first, second):
        each["spec"]["resourceClaims"] = [{"name": "x", "resourceClaimName": "x"}]
    world = tapp_with_resizing(first)
    assert decision(world.change(template=second)).startswith(expected)


def test_change_of_image_and_resources_replaces_the_pod() -> None:
    found = decision(tapp_with_resizing().change(template=template_with_resources(MORE, "web:2")))
    assert (
        found == REPLACED + "the image of container app changes as well, which a resize cannot do"
    )


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"reports": False}, "the kubelet reports no resources"),
        ({"resize": False}, "resources: InPlace needs the component resize"),
    ],
    ids=["kubelet too old", "component missing"],
)
def test_pod_is_replaced_if_resizes_are_not_supported(options: Document, why: str) -> None:
    world = tapp_with_resizing(**options)
    assert decision(world).startswith("Keep/UpToDate")
    assert decision(world.change(template=template_with_resources(MORE))).startswith(REPLACED + why)


@pytest.mark.parametrize("restarts", [False, True], ids=["no restart", "RestartContainer"])
@pytest.mark.parametrize(
    "observes", [False, True], ids=["before Kubernetes 1.34", "since Kubernetes 1.34"]
)
def test_memory_limit_is_lowered_in_place_only_if_kubernetes_supports_it(
    restarts: bool, observes: bool
) -> None:
    policy = [{"resourceName": "memory", "restartPolicy": "RestartContainer"}]
    more: Document = {"container": {"resizePolicy": policy}} if restarts else {}
    one, other = ({**LESS, "limits": {"memory": size}} for size in ("3Gi", "2Gi"))
    world = tapp_with_resizing(template_with_resources(one, **more))
    if not observes:
        world.modify(0, lambda pod: {**pod, "status": _without(pod["status"])})
    found = decision(world.change(template=template_with_resources(other, **more)))
    restart = "; the resizePolicy restarts container app"
    assert found == (
        RESIZED + (restart if restarts else "")
        if restarts or observes
        else REPLACED + "a memory limit cannot be decreased in place before Kubernetes 1.34"
    )


def _without(status: Document) -> Document:
    return {key: value for key, value in status.items() if key != "observedGeneration"}


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (
            lambda pod: with_reported_resources(with_resources(pod, MORE)),
            "UpdateInPlace/TemplateChanged: template 'default' c",
        ),
        (
            lambda pod: with_resources(pod, MORE),
            "UpdateInPlace/TemplateChanged: template 'default' changes",
        ),
        (
            lambda pod: with_reported_resources(
                with_resources(pod, MORE), LESS, Pending="Infeasible"
            ),
            REPLACED + "its node can",
        ),
    ],
    ids=["resized", "not observed yet", "infeasible"],
)
def test_pod_whose_spec_has_the_new_resources_gets_only_its_labels(
    change: Any, expected: str
) -> None:
    world = tapp_with_resizing().change(template=template_with_resources(MORE)).modify(0, change)
    assert decision(world).startswith(expected)


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (lambda pod: pod, "Keep/Resizing: the kubelet is resizing"),
        (lambda pod: with_reported_resources(pod, LESS), "Keep/Resizing: the kubelet is resizing"),
        (
            lambda pod: with_reported_resources(pod, InProgress=""),
            "Keep/Resizing: the kubelet is resizing",
        ),
        (
            lambda pod: with_reported_resources(pod, InProgress="Error"),
            "Keep/Resizing: the kubelet is resizing its contain",
        ),
        (
            lambda pod: with_reported_resources(pod, LESS, Pending="Deferred"),
            "Keep/ResizeDeferred: its node has no r",
        ),
        (
            lambda pod: with_reported_resources(pod, LESS, Pending="Infeasible"),
            REPLACED + "its node can never provide",
        ),
        (with_reported_resources, "Keep/UpToDate: its pod matches its template"),
    ],
    ids=[
        "not observed yet",
        "old resources reported",
        "in progress",
        "in progress with an error",
        "deferred",
        "infeasible",
        "resized",
    ],
)
def test_state_of_a_resize_is_shown_after_the_pod_has_the_new_revision(
    change: Any, expected: str
) -> None:
    world = tapp_with_resizing().change(template=template_with_resources(MORE))
    world.modify(0, lambda pod: with_resources(pod, MORE)).sync()
    assert decision(world.modify(0, change)).startswith(expected)


def test_infeasible_counts_only_for_the_current_spec_of_the_pod() -> None:
    huge = {"requests": {"cpu": "200", "memory": "1Gi"}}
    world = tapp_with_resizing().change(template=template_with_resources(MORE))
    world.modify(
        0,
        lambda pod: with_reported_resources(with_resources(pod, huge), LESS, Pending="Infeasible"),
    )
    assert decision(world).startswith(RESIZED)
    world.modify(0, lambda pod: with_resources(pod, MORE))
    assert decision(world).startswith("UpdateInPlace/TemplateChanged: template 'default' changes l")


@pytest.mark.parametrize("restarts", [False, True], ids=["no restart", "RestartContainer"])
def test_resize_uses_the_budget_until_it_is_done(restarts: bool) -> None:
    policy = [{"resourceName": "cpu", "restartPolicy": "RestartContainer"}]
    more: Document = {"container": {"resizePolicy": policy}} if restarts else {}
    world = tapp_with_resizing(template_with_resources(LESS, **more), replicas=3).change(
        template=template_with_resources(MORE, **more)
    )
    found = world.hook.answer("/plan", world.request())["instances"]
    waits = ["WaitingForBudget"] * 2
    assert [item["reason"] for item in found] == ["TemplateChanged", *waits]
    world.sync()
    world.modify(0, lambda pod: with_resources(pod, MORE))
    found = world.hook.answer("/plan", world.request())["instances"]
    assert [item["reason"] for item in found[1:]] == waits
    assert found[0]["available"] is not restarts


def test_running_resize_uses_the_budget_after_a_further_change_of_the_resources() -> None:
    """Changes the resources again while the kubelet works on a resize of instance 2: no other pod
    is resized.
    """
    world = tapp_with_resizing(replicas=3)
    world.modify(
        2, lambda pod: with_reported_resources(with_resources(pod, MORE), LESS, InProgress="")
    )
    before = world.parent["metadata"]["generation"]
    world.change(template=template_with_resources({"requests": {"cpu": "3", "memory": "1Gi"}}))
    world.parent["status"]["observedGeneration"] = before + 1
    found = world.hook.answer("/plan", world.request())["instances"]
    expected = ["WaitingForBudget", "WaitingForBudget", "TemplateChanged"]
    assert [item["reason"] for item in found] == expected


def test_condition_names_pods_that_are_not_resized_for_a_minute() -> None:
    world = tapp_with_resizing().change(template=template_with_resources(MORE))
    answer = world.sync()
    (key,) = answer["status"]["resizing"]
    assert key.startswith("0/v1-")
    assert answer["resyncAfterSeconds"] == 10
    assert condition(answer, "PodsNotResized") is None
    world.hook.now += 61
    found = condition(world.sync(), "PodsNotResized")
    assert found is not None
    assert found["reason"] == "NotResized"
    assert "was requested at" in found["message"]
    world.modify(
        0, lambda pod: with_reported_resources(with_resources(pod, MORE), LESS, Pending="Deferred")
    )
    found = condition(world.sync(), "PodsNotResized")
    assert found is not None
    assert found["reason"] == "ResizeDeferred"
    world.modify(0, lambda pod: with_reported_resources(with_resources(pod, MORE), MORE))
    world.pods["web-0"]["status"]["conditions"] = [
        item
        for item in world.pods["web-0"]["status"]["conditions"]
        if not item["type"].startswith("PodResize")
    ]
    answer = world.sync()
    assert "resizing" not in answer["status"]
    assert condition(answer, "PodsNotResized") is None


def test_pod_is_replaced_if_the_api_server_refuses_its_resize_for_long() -> None:
    """A requested resize is not accepted within 25 seconds of syncs: the pod is replaced.

    Since Kubernetes 1.36 the API server refuses requests for more than the node has. An hour
    without a sync does not count as a refusal for an hour.
    """
    world = tapp_with_resizing().change(template=template_with_resources(MORE))
    world.sync()
    world.hook.now += 3600
    assert decision(world).startswith(RESIZED)
    world.sync()
    world.hook.now += 15
    assert decision(world).startswith(RESIZED)
    world.hook.now += 10
    assert decision(world).startswith(REPLACED + "a resize of its pod was requested at ")
    other = {"requests": {"cpu": "3", "memory": "1Gi"}}
    changed = world.request()["parent"]["metadata"]["generation"]
    world.parent["status"]["observedGeneration"] = changed + 1
    assert decision(world.change(template=template_with_resources(other))).startswith(RESIZED)


def test_replacement_after_a_refused_resize_waits_while_updates_are_paused() -> None:
    world = tapp_with_resizing().change(template=template_with_resources(MORE))
    world.sync()
    world.hook.now += 61
    world.sync()
    world.hook.now += 30
    world.change(updateStrategy={**IN_PLACE, "paused": True}).sync()
    assert decision(world).startswith("Keep/Paused")
    assert len(world.parent["status"]["resizing"]) == 2


def test_resize_patch_has_uid_resource_version_and_complete_resources() -> None:
    native = {"name": "native", "image": "n:1", "restartPolicy": "Always", "resources": LESS}
    world = tapp_with_resizing(template_with_resources(GUARANTEED, initContainers=[native]))
    pod = world.pod(0)
    after = {"limits": {"cpu": "1500m", "memory": "1Gi"}}
    native = {**native, "resources": MORE}
    world.change(template=template_with_resources(after, initContainers=[native]))
    asked = Request(as_sent(world.request()), TApp, Memo(0))
    (patch,) = patches(make_plan(world_of(asked), Options(resize=True), world.hook.now))
    assert patch.document == {
        "metadata": {
            "uid": pod["metadata"]["uid"],
            "resourceVersion": pod["metadata"].get("resourceVersion", ""),
        },
        "spec": {
            "containers": [{"name": "app", "resources": {**after, "requests": after["limits"]}}],
            "initContainers": [{"name": "native", "resources": MORE}],
        },
    }


@pytest.mark.parametrize(
    ("containers", "expected"),
    [
        ([{}, None], "BestEffort"),
        ([{"requests": {"nvidia.com/gpu": "1"}}], "BestEffort"),
        ([{"limits": {"cpu": "0"}}], "BestEffort"),
        ([{"requests": {"cpu": "1"}}], "Burstable"),
        ([{**GUARANTEED, "requests": GUARANTEED["limits"]}], "Guaranteed"),
        ([{**GUARANTEED, "requests": GUARANTEED["limits"]}, {}], "Burstable"),
    ],
    ids=[
        "no resources",
        "extended resource",
        "zero limit",
        "requests",
        "equal limits and requests",
        "one container without",
    ],
)
def test_qos_class_depends_on_the_resources_of_all_containers(
    containers: list[Any], expected: str
) -> None:
    assert qos_class(containers) == expected


def test_pod_on_hold_is_resized_when_the_hold_is_removed() -> None:
    world = tapp_with_resizing(updateStrategy={})
    world.modify(0, annotated(HOLD, "match 42")).change(template=template_with_resources(MORE))
    assert requested_resizes(world) == []
    assert world.decisions()[0] == "Mark/Held"
    world.sync()
    assert note(world.pod(0), WANTED) == "Update"
    world.modify(0, annotated(HOLD, ""))
    world.sync()
    assert HELD not in world.pod(0)["metadata"]["labels"]
    assert len(requested_resizes(world)) == 1


def test_hold_label_is_written_while_the_api_server_refuses_a_resize() -> None:
    """Sets a hold on a pod whose resize is not accepted: the label is written, and the resize is
    still requested.

    A program that waits for the label would otherwise wait until its pod is replaced.
    """
    world = tapp_with_resizing().change(template=template_with_resources(MORE))
    world.sync()
    began = world.parent["status"]["resizing"]
    assert len(requested_resizes(world)) == 1
    world.hook.now = NOW + 50
    world.modify(0, annotated(HOLD, "match 42")).modify(0, annotated(HOLD_FOR, "delete"))
    assert decision(world) == RESIZED.replace("UpdateInPlace", "Mark")
    assert condition(world.sync(), "Progressing")["reason"] == "Updating"  # type: ignore[index]
    assert world.pod(0)["metadata"]["labels"][HELD] == "true"
    assert world.parent["status"]["resizing"] == began
    assert len(requested_resizes(world)) == 1


def requested_resizes(world: World) -> list[Any]:
    """Returns the PATCHes with which the next sync requests resizes."""
    asked = Request(as_sent(world.request()), TApp, Memo(1 << 24))
    return patches(make_plan(world_of(asked), Options(resize=True), world.hook.now))
