"""Tests restarts in place of a container with its current image, and when they are not possible."""

from collections.abc import Callable

import pytest

from tapp.declared.differences import Effect, differences
from tapp.kube.images import names_of, pinned
from tests.builders import Document, running, tapp, template
from tests.unit.world import World, condition, settled

D = "sha256:" + "d" * 64
HUB = f"docker.io/library/web@{D}"
RESTART = "apps.tkestack.io/restart-in-place"


@pytest.mark.parametrize(
    ("image", "image_id", "expected"),
    [
        ("web:1", HUB, (f"web:1@{D}", f"web@{D}")),
        ("web", HUB, (f"web:latest@{D}", f"web@{D}")),
        (f"web:1@{D}", HUB, (f"web:1@{D}", f"web@{D}")),
        (f"web@{D}", None, (f"web:latest@{D}", f"web@{D}")),
        ("host:5000/a/web:1", f"host:5000/a/web@{D}", (f"host:5000/a/web:1@{D}",) * 2),
        ("host:5000/a/web", f"host:5000/a/web@{D}", (f"host:5000/a/web:latest@{D}",) * 2),
        ("web:1", f"docker-pullable://web@{D}", (f"web:1@{D}", f"web@{D}")),
        ("index.docker.io/library/web:1", HUB, (f"index.docker.io/library/web:1@{D}",) * 2),
        ("web:1", "", ()),
        ("web:1", None, ()),
        ("web:1", D, ()),
        ("web:1", f"mirror.example/web@{D}", ()),
        ("web:1", "docker.io/library/web@md5:1", ()),
    ],
    ids=[
        "tag",
        "no tag",
        "tag and digest",
        "digest",
        "tag in a registry with a port",
        "no tag in a registry with a port",
        "image ID with a prefix",
        "full name of Docker Hub",
        "empty image ID",
        "no image ID",
        "image ID without a name",
        "image ID of another registry",
        "unknown digest algorithm",
    ],
)
def test_running_image_has_two_names_with_its_digest(
    image: str, image_id: str | None, expected: tuple[str, ...]
) -> None:
    names = pinned(image, image_id)
    assert names[:1] == expected[:1]
    assert len(names) == len(expected)
    assert len({*names}) == len(names)


def test_name_with_a_digest_keeps_the_tag_of_the_template() -> None:
    assert pinned(f"web@{D}", HUB, "mirror.example/web:1.25") == (f"web:1.25@{D}", f"web@{D}")


def template_with_restart(text: str = "1", container: str = "", **more: Document) -> Document:
    key = f"{RESTART}.{container}" if container else RESTART
    return template(annotations={key: text}, **more)


def test_pod_with_a_local_image_is_replaced_and_the_plan_says_why() -> None:
    world = settled(replicas=1)
    assert world.change(template=template_with_restart()).decisions() == {0: "Recreate/NotInPlace"}
    plan = world.hook.answer("/plan", world.request())
    assert plan["instances"][0]["message"] == (
        "its pod is replaced, because an update in place is not possible: the digest of container "
        "'app''s image is not known"
    )


@pytest.mark.parametrize("container", ["prepare", "", "app"])
def test_restart_of_an_init_container_sets_a_condition(container: str) -> None:
    body = template_with_restart(
        container=container, initContainers=[{"name": "prepare", "image": "init:1"}]
    )
    found = condition(World(tapp(template=body)).settle().sync(), "UnknownContainers")
    assert (found is not None) == (container == "prepare")


def test_restart_annotation_that_is_too_long_is_refused() -> None:
    world = settled(replicas=1)
    assert world.change(template=template_with_restart("x" * 200_000)).decisions() == {
        0: "Keep/TemplateNotFound"
    }
    found = condition(world.sync(), "TemplateNotFound")
    assert found is not None
    assert found["message"] == (
        f"template 'default' cannot be used: metadata.annotations['{RESTART}'] is longer than 1024 "
        "characters: write a checksum: instance 0 keeps its pod unchanged"
    )


READS = {"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "metadata.annotations['x.io/a']"}}}
OWN = {
    "name": "ID",
    "valueFrom": {"fieldRef": {"fieldPath": "metadata.labels['tapp_instance_key']"}},
}


@pytest.mark.parametrize(
    ("before", "after", "effects"),
    [
        ({}, {RESTART: "1"}, [Effect.IN_PLACE]),
        ({RESTART: "1"}, {}, [Effect.METADATA]),
        ({}, {f"{RESTART}.app": "1"}, [Effect.IN_PLACE]),
        ({}, {f"{RESTART}.typo": "1"}, [Effect.METADATA]),
        ({"x.io/a": "1"}, {"x.io/a": "2"}, [Effect.IN_PLACE]),
        ({"x.io/a": "1"}, {}, [Effect.IN_PLACE]),
        ({"x.io/b": "1"}, {"x.io/b": "2"}, [Effect.METADATA]),
    ],
    ids=[
        "restart added",
        "restart removed",
        "restart of a container",
        "restart of an unknown container",
        "read annotation changed",
        "read annotation removed",
        "unread annotation changed",
    ],
)
def test_changed_annotation_restarts_a_container_only_if_it_requests_that_or_is_read(
    before: Document, after: Document, effects: list[Effect]
) -> None:
    one, other = (
        template(annotations=each, container={"env": [READS, OWN]}) for each in (before, after)
    )
    assert [found.effect for found in differences(one, other)] == effects


@pytest.mark.parametrize(
    "env",
    [None, "text", [None], [{"name": "A"}], [{"valueFrom": "x"}], [{"valueFrom": {"fieldRef": 1}}]],
    ids=["null", "string", "null entry", "no value", "string source", "number reference"],
)
def test_invalid_environment_reads_no_annotation(env: object) -> None:
    body = template_with_restart(container="app")
    body["spec"]["containers"][0]["env"] = env
    assert World(tapp(template=body)).decisions()[0].endswith(("NoPod", "Blocked"))


def test_annotation_by_admission_does_not_restart_a_container_that_reads_it() -> None:
    body = template(container={"env": [READS]})

    def annotate(operation: str, pod: Document) -> Document:
        if operation != "CREATE":
            return pod
        notes = {**pod["metadata"]["annotations"], "x.io/a": "theirs"}
        return {**pod, "metadata": {**pod["metadata"], "annotations": notes}}

    world = World(tapp(replicas=1, template=body), policies=(annotate,)).settle()
    other = template(labels={"v": "2"}, container={"env": [READS]})
    plan = world.hook.answer("/plan", world.change(template=other).request())
    assert plan["instances"][0]["message"].endswith("changes labels and annotations in place")


OF_WEB = "sha256:" + "7" * 64


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        (("web:1", ""), ("docker.io/library/web:1", f"docker.io/library/web@{OF_WEB}"), True),
        ((f"web@{OF_WEB}", ""), ("web:1", f"example.com/mirror/web@{OF_WEB}"), True),
        (("web:2", ""), ("web:1", f"docker.io/library/web@{OF_WEB}"), False),
        (("web:1", ""), ("", ""), False),
        (("web", ""), ("web:latest", None), True),
    ],
    ids=["same name", "same digest", "other tag", "empty image", "default tag"],
)
def test_images_are_equal_if_they_share_a_name_or_a_digest(
    one: tuple[str, str], other: tuple[str, str | None], same: bool
) -> None:
    assert bool(names_of(*one) & names_of(*other)) == same


def with_container_status(
    container: Document, generation: int = 1
) -> Callable[[Document], Document]:
    """Returns a function that sets fields of a pod's container status, and the observed
    generation.
    """

    def change(pod: Document) -> Document:
        pod = running(pod)
        item = {**pod["status"]["containerStatuses"][0], "imageID": f"docker.io/library/nginx@{D}"}
        item |= container
        status = {"containerStatuses": [item], "observedGeneration": generation}
        return {**pod, "status": {**pod["status"], **status}}

    return change


UNKNOWN_CONTAINER: Document = {"reason": "RestartingAllContainers", "exitCode": 137}
KNOWN_CONTAINER: Document = {
    "reason": "Error",
    "exitCode": 1,
    "containerID": "containerd://between",
}


@pytest.mark.parametrize(
    ("before", "word"),
    [(UNKNOWN_CONTAINER, "Updating"), (KNOWN_CONTAINER, "Running")],
    ids=["previous container unknown", "previous container known"],
)
def test_restart_of_all_containers_does_not_complete_a_requested_restart(
    before: Document, word: str
) -> None:
    """All containers have restarted because of their restart rules: a restart that a user requests
    is not complete yet.

    The kubelet may have restarted them with the old spec, and will stop the container again.
    """
    world = settled(replicas=1).modify(0, with_container_status({}))
    assert world.change(template=template_with_restart()).decisions() == {
        0: "UpdateInPlace/TemplateChanged"
    }
    world.sync()
    restarted = {
        "containerID": "containerd://restarted",
        "restartCount": 1,
        "lastState": {"terminated": before},
    }
    world.modify(0, with_container_status(restarted, generation=2))
    assert world.sync()["status"]["statuses"] == {"0": word}
