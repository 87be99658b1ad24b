"""The image first, in the words of a decision (docs/design.md, "The image first")."""

import pytest

from tests.builders import NOW, Document, template
from tests.unit.world import Hook, World, condition, settled

FIRST = {"inPlaceUpdateStrategy": {"prePull": True}}


def messages(world: World) -> list[str]:
    """Words of `/plan` on each instance, and with it of `kubectl tapp why`."""
    plan: Document = world.hook.answer("/plan", world.request())
    return [instance["message"] for instance in plan["instances"]]


def test_a_node_pulls_by_a_pod_that_is_there() -> None:
    """And is only to have the image while that pod is asked for."""
    world = settled(replicas=1, updateStrategy=FIRST).change(template=template("nginx:2"))
    (asked,) = messages(world)
    assert asked.startswith("node node-1 is to have nginx:2 first; pod web-pull-x")
    assert asked.endswith(" is asked for, and is not there yet")
    world.sync()
    (pulls,) = messages(world)
    assert pulls.startswith("node node-1 first pulls nginx:2, by pod web-pull-x")


OWN = "example.com/pause:1"


def waiting(pod: Document, reason: str, message: str) -> Document:
    """The puller on its node, whose container waits for this reason."""
    state = {"waiting": {"reason": reason, "message": message}}
    status = {"name": "wait", "image": "", "imageID": "", "restartCount": 0, "state": state}
    return {**pod, "status": {"phase": "Pending", "containerStatuses": [status]}}


def pulled(reason: str, message: str, image: str = "nginx:2") -> World:
    """An update whose puller waits for this reason, since 31 seconds."""
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
)
def test_an_update_goes_on_after_30_s_if_the_puller_has_trouble_of_its_own(
    reason: str, message: str
) -> None:
    world = pulled(reason, message)
    assert world.decisions() == {0: "UpdateInPlace/TemplateChanged"}
    status = world.sync()["status"]
    said = condition(status, "PullersNotRun")
    assert said is not None
    assert reason.replace("ErrImagePull", "ImagePullBackOff") in said["message"]
    assert "No update waits for that again until" in said["message"]
    assert condition(status, "Degraded")["status"] == "False"  # type: ignore[index]


@pytest.mark.parametrize(
    ("image", "message"),
    [
        ("nginx:2", 'failed to resolve reference "docker.io/library/nginx:2": not found'),
        ("nginx:2", "toomanyrequests: the registry has enough"),
        (f"{OWN}-debug", f'Back-off pulling image "{OWN}-debug"'),
        (OWN, f'Back-off pulling image "{OWN}"'),
    ],
)
def test_an_update_waits_if_the_wanted_image_cannot_be_pulled(image: str, message: str) -> None:
    world = pulled("ImagePullBackOff", message, image)
    assert world.decisions() == {0: "Keep/PullFailed"}
    assert condition(world.sync(), "ImagesNotPulled") is not None


def test_an_update_waits_for_a_puller_whose_container_is_being_created() -> None:
    assert pulled("ContainerCreating", "").decisions() == {0: "Keep/PullingImages"}
