"""A pod is made of a template as it is written, whatever fields Kubernetes has."""

from random import Random
from typing import Any

from tapp.kube.canonical import canonical
from tests.builders import Document, tapp, template
from tests.reading import desired
from tests.schemas import at_random, every_field
from tests.sizes import size
from tests.unit.world import World, condition, settled

_DEFAULTS = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
VOLUME: Document = {"name": "model", "image": {"reference": "registry.example.com/models/small:1"}}


def of_all(specs: list[Document]) -> World:
    """A TApp with an instance for each of these pod specs."""
    pool = {f"t{id}": {"spec": spec} for id, spec in enumerate(specs)}
    names = {str(id): f"t{id}" for id in range(len(specs))}
    return World(tapp(replicas=len(specs), templatePool=pool, templates=names))


def with_images(spec: Document) -> Document:
    """A pod's spec whose containers all have an image, for the kubelet."""
    lists = {
        key: [{"image": "app:1", **container} for container in spec[key]]
        for key in ("containers", "initContainers")
        if key in spec
    }
    return {**spec, **lists}


def made(answer: Document, id: int) -> Document | None:
    """The spec of the pod that an answer makes, without the tolerations that admission adds."""
    pod = desired(answer, "Pod").get(f"web-{id}")
    if pod is None:
        return None
    spec: dict[str, Any] = dict(pod["spec"])
    tolerations = [i for i in spec.pop("tolerations", []) if i.get("key") not in _DEFAULTS]
    return {**spec, "tolerations": tolerations} if tolerations else spec


def test_every_field_that_kubernetes_knows_comes_through_unchanged() -> None:
    """A property of the published schema, of each field alone, and of what it demands beside."""
    found = list(every_field())
    answer = of_all([spec for _, spec in found]).sync()
    assert [path for id, (path, spec) in enumerate(found) if made(answer, id) != spec] == []
    assert condition(answer, "TemplateNotFound") is None


def test_pods_of_every_field_are_read_again_and_left_alone() -> None:
    """The stored form of them makes no pod unreadable, and is no difference."""
    found = list(every_field())
    world = of_all([with_images(spec) for _, spec in found])
    world.sync()
    world.kubelet()
    decisions = world.decisions()
    assert {decisions[id] for id in range(len(found))} == {"Keep/UpToDate"}


def test_fields_come_through_together() -> None:
    """Any of them beside any others; objects that Kubernetes takes as absent when empty may go."""
    specs = [at_random(Random(seed)) for seed in range(size(20, 200))]
    answer = of_all(specs).sync()
    for id, spec in enumerate(specs):
        assert made(answer, id) == canonical(spec)


def test_only_containers_images_are_pulled_first() -> None:
    """An image volume's is there already: in place it never changes."""
    strategy = {"inPlaceUpdateStrategy": {"prePull": True}}
    world = settled(template=template("nginx:1", volumes=[VOLUME]), updateStrategy=strategy)
    answer = world.change(template=template("nginx:2", volumes=[VOLUME])).sync()
    (puller,) = [pod for name, pod in desired(answer, "Pod").items() if "-pull-" in name]
    pulled = [volume["image"]["reference"] for volume in puller["spec"]["volumes"]]
    assert pulled == ["nginx:2"]


def test_an_image_volume_is_a_volume() -> None:
    """It may be added; another image in it makes another pod, and in place containers go on."""
    world = settled(template=template("nginx:1"))
    world.change(template=template("nginx:1", volumes=[VOLUME]))
    assert world.decisions() == {0: "Recreate/TemplateChanged"}
    world.settle()
    assert world.pod(0)["spec"]["volumes"][0]["image"]["reference"] == VOLUME["image"]["reference"]
    world.change(template=template("nginx:2", volumes=[VOLUME]))
    assert world.decisions() == {0: "UpdateInPlace/TemplateChanged"}
    world.settle()
    newer = {**VOLUME, "image": {"reference": "registry.example.com/models/small:2"}}
    world.change(template=template("nginx:2", volumes=[newer]))
    assert world.decisions() == {0: "Recreate/TemplateChanged"}
