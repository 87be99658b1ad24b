"""Tests decisions and messages about pulling images before an update.

A *puller* is a short-lived pod that makes the kubelet of a node pull images. docs/in-place.md,
"Pull the image first", has the rules.
"""

import copy
from collections.abc import Callable

import pytest

from tapp.words.times import written
from tests.builders import NOW, Document, template
from tests.unit.world import Hook, World, condition, settled

FIRST = {"inPlaceUpdateStrategy": {"prePull": True}}


def messages(world: World) -> list[str]:
    """Returns the message of `/plan` for each instance, which `kubectl tapp why` shows, too."""
    plan: Document = world.hook.answer("/plan", world.request())
    return [instance["message"] for instance in plan["instances"]]


def test_message_names_the_puller_pod_before_and_after_its_creation() -> None:
    world = settled(replicas=1, updateStrategy=FIRST).change(template=template("nginx:2"))
    (asked,) = messages(world)
    assert asked.startswith("node node-1 pulls nginx:2 before the update; pod web-pull-x")
    assert asked.endswith(" is requested and does not exist yet")
    world.sync()
    (pulls,) = messages(world)
    assert pulls.startswith("node node-1 pulls nginx:2 before the update, in pod web-pull-x")


OWN = "example.com/pause:1"


def waiting(pod: Document, reason: str, message: str) -> Document:
    """Returns the puller pod on its node, whose container waits for this reason with this
    message.
    """
    state = {"waiting": {"reason": reason, "message": message}}
    status = {"name": "wait", "image": "", "imageID": "", "restartCount": 0, "state": state}
    return {**pod, "status": {"phase": "Pending", "containerStatuses": [status]}}


def puller_waits(reason: str, message: str, image: str = "nginx:2") -> World:
    """Returns a TApp whose update has waited 31 seconds for a puller whose container waits for this
    reason.

    `image` is the new image of the TApp.
    """
    world = settled(replicas=1, updateStrategy=FIRST)
    world.hook = Hook(puller_image=OWN)
    world.change(template=template(image)).sync()
    world.sync()
    (name,) = [name for name in world.pods if "-pull-x" in name]
    world.pods[name] = waiting(world.pods[name], reason, message)
    world.sync()
    world.hook.now = NOW + 29
    assert world.decisions()[0].startswith("Keep/")
    world.hook.now = NOW + 31
    return world


@pytest.mark.parametrize(
    ("reason", "message"),
    [
        ("ImagePullBackOff", f'Back-off pulling image "{OWN}"'),
        ("ErrImagePull", f'failed to resolve reference "{OWN}": not found'),
        ("InvalidImageName", f'Failed to apply default image tag "{OWN}"'),
        ("CreateContainerConfigError", "container has runAsNonRoot and image has non-numeric user"),
        ("CreateContainerError", "failed to mount the image volume"),
        ("RunContainerError", "exec: no such file"),
    ],
    ids=lambda text: text if text.isalpha() else "",
)
def test_update_continues_after_30_seconds_if_the_puller_itself_fails(
    reason: str, message: str
) -> None:
    world = puller_waits(reason, message)
    assert world.decisions() == {0: "UpdateInPlace/TemplateChanged"}
    status = world.sync()["status"]
    said = condition(status, "PullersNotRun")
    assert said is not None
    assert reason.replace("ErrImagePull", "ImagePullBackOff") in said["message"]
    assert "Updates continue without this until" in said["message"]
    assert condition(status, "Degraded")["status"] == "False"  # type: ignore[index]


def with_status(**status: object) -> Callable[[Document], Document]:
    """Returns a function that replaces the status of a pod."""
    return lambda pod: {**pod, "status": status}


GATED = {"type": "PodScheduled", "status": "False", "reason": "SchedulingGated"}
IDLE = {
    "evicted": with_status(phase="Failed", reason="Evicted", message="The node was low on disk"),
    "refused": with_status(phase="Failed", reason="OutOfpods", message="Pod was rejected"),
    "not acknowledged": with_status(phase="Pending"),
    "without a node": with_status(phase="Pending", conditions=[GATED]),
}


@pytest.mark.parametrize("state", IDLE.values(), ids=IDLE)
def test_update_continues_after_30_seconds_if_no_kubelet_runs_the_puller(
    state: Callable[[Document], Document],
) -> None:
    world = puller_waits("ContainerCreating", "")
    (name,) = [name for name in world.pods if "-pull-x" in name]
    world.pods[name] = state(world.pods[name])
    assert world.decisions() == {0: "UpdateInPlace/TemplateChanged"}
    assert condition(world.sync(), "PullersNotRun") is not None


@pytest.mark.parametrize(
    ("image", "message"),
    [
        ("nginx:2", 'failed to resolve reference "docker.io/library/nginx:2": not found'),
        ("nginx:2", "toomanyrequests: the registry has enough"),
        (f"{OWN}-debug", f'Back-off pulling image "{OWN}-debug"'),
        (OWN, f'Back-off pulling image "{OWN}"'),
    ],
    ids=[
        "not found",
        "too many requests",
        "name starts like the puller's",
        "the puller's own image",
    ],
)
def test_update_waits_if_the_new_image_cannot_be_pulled(image: str, message: str) -> None:
    world = puller_waits("ImagePullBackOff", message, image)
    assert world.decisions() == {0: "Keep/PullFailed"}
    assert condition(world.sync(), "ImagesNotPulled") is not None


def test_update_waits_for_a_puller_whose_container_is_being_created() -> None:
    assert puller_waits("ContainerCreating", "").decisions() == {0: "Keep/PullingImages"}


ODD_TIMES = {
    "ordinary": "2026-01-01T00:00:00Z",
    "missing": None,
    "not a time": "yesterday",
    "to come": "2099-01-01T00:00:00Z",
}


@pytest.mark.parametrize("time", ODD_TIMES.values(), ids=ODD_TIMES)
def test_update_goes_on_without_its_puller_for_any_age_of_another_puller(time: str | None) -> None:
    """The puller of an update is gone, and another puller is being deleted on a lost node: the
    update continues.

    A missing puller is waited for while a young puller may still use its resources. The age of the
    other puller must not be computed from its creationTimestamp, which comes from another clock.
    """
    world = settled(replicas=1, updateStrategy=FIRST).change(template=template("nginx:2"))
    world.sync()
    (name,) = [name for name in world.pods if "-pull-x" in name]
    other = copy.deepcopy(world.pods.pop(name))
    other["metadata"] |= {"name": "web-pull-x0123456789", "deletionTimestamp": written(NOW - 600)}
    other["metadata"]["creationTimestamp"] = time
    other["spec"]["nodeName"] = "node-9"
    world.pods[other["metadata"]["name"]] = other
    world.sync()
    world.pods.pop(name, None)
    world.hook.now = NOW + 31
    assert world.decisions() == {0: "UpdateInPlace/TemplateChanged"}
