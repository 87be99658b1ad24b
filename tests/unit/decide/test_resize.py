"""Other resources in a template, given to the pod that runs (`resources: InPlace`)."""

from collections.abc import Callable
from typing import Any

import pytest

from hooks.app import create_app
from hooks.service.settings import Settings
from hooks.wire.memo import Memo
from hooks.wire.request import Request, world_of
from tapp.answer.resizes import patches
from tapp.declared.model import TApp
from tapp.kube.resources import quality
from tapp.plan import plan
from tapp.world import Options
from tests.builders import NOW, Document, as_sent, tapp, template
from tests.holds import HELD, HOLD, HOLD_FOR, WANTED
from tests.reading import note
from tests.unit.world import Hook, World, condition

IN_PLACE = {"inPlaceUpdateStrategy": {"resources": "InPlace"}}
LESS, MORE = ({"requests": {"cpu": cpu, "memory": "1Gi"}} for cpu in ("1", "2"))
GUARANTEED = {"limits": {"cpu": "1", "memory": "1Gi"}}


def asking(resources: Document | None, image: str = "web:1", **more: Any) -> Document:
    container = {} if resources is None else {"resources": resources}
    return template(image, container={**container, **more.pop("container", {})}, **more)


def resizing(
    body: Document | None = None,
    *,
    tells: bool = True,
    resize: bool = True,
    replicas: int = 1,
    **spec: Any,
) -> World:
    """A settled TApp whose kubelets tell the resources of containers."""
    spec = {"template": body or asking(LESS), "replicas": replicas, **spec}
    spec["updateStrategy"] = {**IN_PLACE, **spec.get("updateStrategy", {})}
    world = World(tapp(**spec), history=True).settle()
    world.hook = _hook(resize)
    if tells:
        for id in range(replicas):
            world.modify(id, said)
    return world


def _hook(resize: bool) -> Hook:
    """A service whose sender does nothing."""
    hook = Hook()
    settings = Settings(log_level="ERROR", resize=resize)
    app = create_app(settings, lambda: hook.now, resize=lambda _plan: None)
    hook.client = app.test_client()
    return hook


def said(pod: Document, resources: Document | None = None, **conditions: str) -> Document:
    """The pod as its kubelet tells of it: with these resources, or those of the spec."""
    status = pod["status"]
    own = pod["spec"]["containers"][0].get("resources") or {}
    found = [
        {**item, "resources": own if resources is None else resources}
        for item in status["containerStatuses"]
    ]
    more = [
        {"type": f"PodResize{kind}", "status": "True", "reason": reason, "message": "the words"}
        for kind, reason in conditions.items()
    ]
    generation = pod["metadata"]["generation"]
    status = {**status, "containerStatuses": found, "observedGeneration": generation}
    return {**pod, "status": {**status, "conditions": [*status["conditions"], *more]}}


def given(pod: Document, resources: Document) -> Document:
    """The pod after a PATCH that its kubelet has not seen yet."""
    containers = [{**pod["spec"]["containers"][0], "resources": resources}]
    meta = {**pod["metadata"], "generation": pod["metadata"]["generation"] + 1}
    return {**pod, "metadata": meta, "spec": {**pod["spec"], "containers": containers}}


def decision(world: World, id: int = 0) -> str:
    """`Action/Reason: message` of an instance."""
    found = world.hook.answer("/plan", world.request())["instances"][id]
    world.hook.sync(world.request())
    return f"{found['action']}/{found['reason']}: {found['message']}"


RESIZED = "UpdateInPlace/TemplateChanged: template 'default' changes resources of app in place"
ANEW = "Recreate/NotInPlace: "


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        (LESS, MORE, RESIZED),
        (LESS, {**LESS, "limits": {"cpu": "4"}}, RESIZED),
        (GUARANTEED, {"limits": {"cpu": "2", "memory": "1Gi"}}, RESIZED),
        (LESS, {"requests": {"cpu": "2"}}, ANEW + "requests.memory of container 'app' cannot be"),
        (LESS, None, ANEW + "requests.cpu of container 'app' cannot be taken away"),
        (
            GUARANTEED,
            {**GUARANTEED, "requests": {"cpu": "500m"}},
            ANEW + "its QoS class would be Burstable, and is Guaranteed",
        ),
        (None, LESS, ANEW + "its QoS class would be Burstable, and is BestEffort"),
        (
            LESS,
            {"requests": {"cpu": "1", "memory": "1Gi", "nvidia.com/gpu": 1}},
            ANEW + "nvidia.com/gpu of container 'app' cannot be resized",
        ),
        (LESS, {**MORE, "claims": [{"name": "x"}]}, ANEW + "the claims of container 'app' differ"),
        (
            LESS,
            {**LESS, "limits": {"cpu": "500m"}},
            "Keep/Blocked: template 'default': container 'app' requests more cpu than its limit",
        ),
        (
            LESS,
            {"requests": {"cpu": "much", "memory": "1Gi"}},
            "Keep/Blocked: template 'default': requests.cpu of container 'app' is no quantity",
        ),
        (
            LESS,
            {"requests": {"cpu": "-1", "memory": "1Gi"}},
            "Keep/Blocked: template 'default': requests.cpu of container 'app' is no quantity",
        ),
    ],
)
def test_what_a_running_pod_can_be_given(
    before: Document | None, after: Document | None, expected: str
) -> None:
    # A container without any resources is told of as {}.
    world = resizing(asking(before))
    assert decision(world.change(template=asking(after))).startswith(expected)


def test_an_image_that_changes_too_needs_a_new_pod() -> None:
    found = decision(resizing().change(template=asking(MORE, "web:2")))
    assert found == ANEW + "images change, too, of app: a resize changes nothing else"


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"tells": False}, "its kubelet tells no resources"),
        ({"resize": False}, "resources: InPlace needs the component resize"),
    ],
)
def test_who_cannot_be_resized_gets_a_new_pod(options: Document, why: str) -> None:
    world = resizing(**options)
    assert decision(world).startswith("Keep/UpToDate")
    assert decision(world.change(template=asking(MORE))).startswith(ANEW + why)


@pytest.mark.parametrize("again", [False, True])
@pytest.mark.parametrize("tells", [False, True])
def test_a_memory_limit_falls_only_where_kubernetes_lets_it(again: bool, tells: bool) -> None:
    policy = [{"resourceName": "memory", "restartPolicy": "RestartContainer"}]
    more: Document = {"container": {"resizePolicy": policy}} if again else {}
    one, other = ({**LESS, "limits": {"memory": size}} for size in ("3Gi", "2Gi"))
    world = resizing(asking(one, **more))
    if not tells:
        world.modify(0, lambda pod: {**pod, "status": _without(pod["status"])})
    found = decision(world.change(template=asking(other, **more)))
    restart = "; by its resizePolicy it restarts app"
    assert found == (
        RESIZED + (restart if again else "")
        if again or tells
        else ANEW + "a memory limit cannot fall before Kubernetes 1.34"
    )


def _without(status: Document) -> Document:
    return {key: value for key, value in status.items() if key != "observedGeneration"}


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (lambda pod: said(given(pod, MORE)), "UpdateInPlace/TemplateChanged: template 'default' c"),
        (lambda pod: given(pod, MORE), "UpdateInPlace/TemplateChanged: template 'default' changes"),
        (lambda pod: said(given(pod, MORE), LESS, Pending="Infeasible"), ANEW + "its node can"),
    ],
)
def test_a_pod_that_has_them_in_its_spec_gets_its_labels(change: Any, expected: str) -> None:
    world = resizing().change(template=asking(MORE)).modify(0, change)
    assert decision(world).startswith(expected)


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (lambda pod: pod, "Keep/Resizing: its kubelet gives"),
        (lambda pod: said(pod, LESS), "Keep/Resizing: its kubelet gives"),
        (lambda pod: said(pod, InProgress=""), "Keep/Resizing: its kubelet gives"),
        (lambda pod: said(pod, InProgress="Error"), "Keep/Resizing: its kubelet gives its contain"),
        (lambda pod: said(pod, LESS, Pending="Deferred"), "Keep/ResizeDeferred: its node has no r"),
        (lambda pod: said(pod, LESS, Pending="Infeasible"), ANEW + "its node can never give it"),
        (said, "Keep/UpToDate: runs its template"),
    ],
)
def test_what_is_left_of_a_resize_at_the_new_revision(change: Any, expected: str) -> None:
    world = resizing().change(template=asking(MORE))
    world.modify(0, lambda pod: given(pod, MORE)).sync()
    assert decision(world.modify(0, change)).startswith(expected)


def test_infeasible_is_believed_of_the_newest_spec_only() -> None:
    huge = {"requests": {"cpu": "200", "memory": "1Gi"}}
    world = resizing().change(template=asking(MORE))
    world.modify(0, lambda pod: said(given(pod, huge), LESS, Pending="Infeasible"))
    assert decision(world).startswith(RESIZED)
    world.modify(0, lambda pod: given(pod, MORE))
    assert decision(world).startswith("UpdateInPlace/TemplateChanged: template 'default' changes l")


@pytest.mark.parametrize("restarts", [False, True])
def test_a_resize_takes_a_place_in_the_budget(restarts: bool) -> None:
    policy = [{"resourceName": "cpu", "restartPolicy": "RestartContainer"}]
    more: Document = {"container": {"resizePolicy": policy}} if restarts else {}
    world = resizing(asking(LESS, **more), replicas=3).change(template=asking(MORE, **more))
    found = world.hook.answer("/plan", world.request())["instances"]
    waits = ["WaitingForBudget"] * 2
    assert [item["reason"] for item in found] == ["TemplateChanged", *waits]
    world.sync()
    world.modify(0, lambda pod: given(pod, MORE))
    found = world.hook.answer("/plan", world.request())["instances"]
    assert [item["reason"] for item in found[1:]] == waits
    assert found[0]["available"] is not restarts


def test_a_resize_under_way_keeps_its_place_when_its_template_asks_for_others_still() -> None:
    """The kubelet of 2 is at work on the last ones: beside it no other pod is resized."""
    world = resizing(replicas=3)
    world.modify(2, lambda pod: said(given(pod, MORE), LESS, InProgress=""))
    before = world.parent["metadata"]["generation"]
    world.change(template=asking({"requests": {"cpu": "3", "memory": "1Gi"}}))
    world.parent["status"]["observedGeneration"] = before + 1
    found = world.hook.answer("/plan", world.request())["instances"]
    expected = ["WaitingForBudget", "WaitingForBudget", "TemplateChanged"]
    assert [item["reason"] for item in found] == expected


def test_what_lasts_is_said_in_a_condition() -> None:
    world = resizing().change(template=asking(MORE))
    answer = world.sync()
    (key,) = answer["status"]["resizing"]
    assert key.startswith("0/v1-")
    assert answer["resyncAfterSeconds"] == 10
    assert condition(answer, "PodsNotResized") is None
    world.hook.now += 61
    found = condition(world.sync(), "PodsNotResized")
    assert found is not None
    assert (found["reason"], "asked since" in found["message"]) == ("NotResized", True)
    world.modify(0, lambda pod: said(given(pod, MORE), LESS, Pending="Deferred"))
    found = condition(world.sync(), "PodsNotResized")
    assert found is not None
    assert found["reason"] == "ResizeDeferred"
    world.modify(0, lambda pod: said(given(pod, MORE), MORE))
    world.pods["web-0"]["status"]["conditions"] = [
        item
        for item in world.pods["web-0"]["status"]["conditions"]
        if not item["type"].startswith("PodResize")
    ]
    answer = world.sync()
    assert "resizing" not in answer["status"]
    assert condition(answer, "PodsNotResized") is None


def test_what_the_api_server_refuses_for_long_means_a_new_pod() -> None:
    """Such as more than the node has, since Kubernetes 1.36; an outage before that counts once."""
    world = resizing().change(template=asking(MORE))
    world.sync()
    world.hook.now += 3600
    assert decision(world).startswith(RESIZED)
    world.sync()
    world.hook.now += 15
    assert decision(world).startswith(RESIZED)
    world.hook.now += 10
    assert decision(world).startswith(ANEW + "it is asked since ")
    other = {"requests": {"cpu": "3", "memory": "1Gi"}}
    changed = world.request()["parent"]["metadata"]["generation"]
    world.parent["status"]["observedGeneration"] = changed + 1
    assert decision(world.change(template=asking(other))).startswith(RESIZED)


def test_a_new_pod_for_a_refused_resize_waits_like_any_other() -> None:
    world = resizing().change(template=asking(MORE))
    world.sync()
    world.hook.now += 61
    world.sync()
    world.hook.now += 30
    world.change(updateStrategy={**IN_PLACE, "paused": True}).sync()
    assert decision(world).startswith("Keep/Paused")
    assert len(world.parent["status"]["resizing"]) == 2


def test_the_patch_is_guarded_and_has_whole_resources() -> None:
    native = {"name": "native", "image": "n:1", "restartPolicy": "Always", "resources": LESS}
    world = resizing(asking(GUARANTEED, initContainers=[native]))
    pod = world.pod(0)
    after = {"limits": {"cpu": "1500m", "memory": "1Gi"}}
    native = {**native, "resources": MORE}
    world.change(template=asking(after, initContainers=[native]))
    asked = Request(as_sent(world.request()), TApp, Memo(0))
    (patch,) = patches(plan(world_of(asked), Options(resize=True), world.hook.now))
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
)
def test_qos_classes(containers: list[Any], expected: str) -> None:
    assert quality(containers) == expected


def test_a_pod_on_hold_is_not_resized_until_it_is_released() -> None:
    world = resizing(updateStrategy={})
    world.modify(0, annotated(HOLD, "match 42")).change(template=asking(MORE))
    assert sent(world) == []
    assert world.decisions()[0] == "Mark/Held"
    world.sync()
    assert note(world.pod(0), WANTED) == "Update"
    world.modify(0, annotated(HOLD, ""))
    world.sync()
    assert HELD not in world.pod(0)["metadata"]["labels"]
    assert len(sent(world)) == 1


def test_the_label_of_a_hold_does_not_wait_for_a_resize_that_is_refused() -> None:
    """A program that waits for it would wait until there is a new pod instead."""
    world = resizing().change(template=asking(MORE))
    world.sync()
    began = world.parent["status"]["resizing"]
    assert len(sent(world)) == 1
    world.hook.now = NOW + 50
    world.modify(0, annotated(HOLD, "match 42")).modify(0, annotated(HOLD_FOR, "delete"))
    assert decision(world) == RESIZED.replace("UpdateInPlace", "Mark")
    assert condition(world.sync(), "Progressing")["reason"] == "Updating"  # type: ignore[index]
    assert world.pod(0)["metadata"]["labels"][HELD] == "true"
    assert world.parent["status"]["resizing"] == began
    assert len(sent(world)) == 1


def annotated(key: str, text: str) -> Callable[[Document], Document]:
    """A program or a person sets an annotation."""

    def change(pod: Document) -> Document:
        notes = {**pod["metadata"]["annotations"], key: text}
        return {**pod, "metadata": {**pod["metadata"], "annotations": notes}}

    return change


def sent(world: World) -> list[Any]:
    """The resizes that a sync asks for."""
    asked = Request(as_sent(world.request()), TApp, Memo(1 << 24))
    return patches(plan(world_of(asked), Options(resize=True), world.hook.now))
