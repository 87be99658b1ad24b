"""Restarts of a container with the image that it has, and when there can be none."""

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
)
def test_the_two_names_of_what_runs(
    image: str, image_id: str | None, expected: tuple[str, ...]
) -> None:
    names = pinned(image, image_id)
    assert names[:1] == expected[:1]
    assert len(names) == len(expected)
    assert len({*names}) == len(names)


def test_the_tag_of_the_template_stays_visible() -> None:
    assert pinned(f"web@{D}", HUB, "mirror.example/web:1.25") == (f"web:1.25@{D}", f"web@{D}")


def asking(text: str = "1", container: str = "", **more: Document) -> Document:
    key = f"{RESTART}.{container}" if container else RESTART
    return template(annotations={key: text}, **more)


def test_a_local_image_gets_a_new_pod_and_says_why() -> None:
    world = settled(replicas=1)
    assert world.change(template=asking()).decisions() == {0: "Recreate/NotInPlace"}
    plan = world.hook.answer("/plan", world.request())
    assert plan["instances"][0]["message"] == (
        "it cannot restart in place: the digest of container 'app''s image is not known"
    )


@pytest.mark.parametrize("container", ["prepare", "", "app"])
def test_a_plain_init_container_is_not_restarted(container: str) -> None:
    body = asking(container=container, initContainers=[{"name": "prepare", "image": "init:1"}])
    found = condition(World(tapp(template=body)).settle().sync(), "UnknownContainers")
    assert (found is not None) == (container == "prepare")


def test_a_text_that_is_too_long_leaves_the_pods_alone() -> None:
    world = settled(replicas=1)
    assert world.change(template=asking("x" * 200_000)).decisions() == {0: "Keep/TemplateNotFound"}
    found = condition(world.sync(), "TemplateNotFound")
    assert found is not None
    assert found["message"] == (
        f"template 'default' cannot be used: metadata.annotations['{RESTART}'] is longer than 1024 "
        "characters: write a checksum: instances 0 are kept as they are"
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
)
def test_what_an_annotation_asks_for(
    before: Document, after: Document, effects: list[Effect]
) -> None:
    one, other = (
        template(annotations=each, container={"env": [READS, OWN]}) for each in (before, after)
    )
    assert [found.effect for found in differences(one, other)] == effects


@pytest.mark.parametrize(
    "env",
    [None, "text", [None], [{"name": "A"}], [{"valueFrom": "x"}], [{"valueFrom": {"fieldRef": 1}}]],
)
def test_environments_of_a_wrong_shape_read_nothing(env: object) -> None:
    body = asking(container="app")
    body["spec"]["containers"][0]["env"] = env
    assert World(tapp(template=body)).decisions()[0].endswith(("NoPod", "Blocked"))


def test_what_admission_wrote_on_a_pod_is_no_reason_to_restart() -> None:
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
)
def test_what_an_image_is_known_by(
    one: tuple[str, str], other: tuple[str, str | None], same: bool
) -> None:
    assert bool(names_of(*one) & names_of(*other)) == same


def pod_with(container: Document, generation: int = 1) -> Callable[[Document], Document]:
    """The pod whose container's status has these fields, and whose kubelet has seen this."""

    def change(pod: Document) -> Document:
        pod = running(pod)
        item = {**pod["status"]["containerStatuses"][0], "imageID": f"docker.io/library/nginx@{D}"}
        item |= container
        status = {"containerStatuses": [item], "observedGeneration": generation}
        return {**pod, "status": {**pod["status"], **status}}

    return change


FORGOTTEN: Document = {"reason": "RestartingAllContainers", "exitCode": 137}
KNOWN: Document = {"reason": "Error", "exitCode": 1, "containerID": "containerd://between"}


@pytest.mark.parametrize(
    ("before", "word"),
    [(FORGOTTEN, "Updating"), (KNOWN, "Running")],
    ids=["its kubelet has forgotten it", "one in between"],
)
def test_a_pod_that_its_kubelet_starts_anew_as_a_whole_is_not_taken_for_the_restart(
    before: Document, word: str
) -> None:
    """With the spec that the kubelet knew: it stops what it has started once more."""
    world = settled(replicas=1).modify(0, pod_with({}))
    assert world.change(template=asking()).decisions() == {0: "UpdateInPlace/TemplateChanged"}
    world.sync()
    anew = {
        "containerID": "containerd://anew",
        "restartCount": 1,
        "lastState": {"terminated": before},
    }
    world.modify(0, pod_with(anew, generation=2))
    assert world.sync()["status"]["statuses"] == {"0": word}
