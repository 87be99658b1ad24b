"""Tests that new pods have all fields of their template, including any that Kubernetes has."""

from random import Random
from typing import Any

import pytest

from tapp.declared import templates
from tapp.kube.canonical import canonical
from tests.builders import Document, tapp, template
from tests.hook_calls import desired
from tests.schemas import at_random, every_field
from tests.sizes import size
from tests.unit.world import World, condition, settled

_DEFAULTS = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
VOLUME: Document = {"name": "model", "image": {"reference": "registry.example.com/models/small:1"}}


def tapp_of_specs(specs: list[Document]) -> World:
    """Returns a TApp with one instance for each of these pod specs."""
    pool = {f"t{id}": {"spec": spec} for id, spec in enumerate(specs)}
    names = {str(id): f"t{id}" for id in range(len(specs))}
    return World(tapp(replicas=len(specs), templatePool=pool, templates=names))


def with_images(spec: Document) -> Document:
    """Returns the pod spec with an image added to each container without an image, for the
    simulated kubelet.
    """
    lists = {
        key: [{"image": "app:1", **container} for container in spec[key]]
        for key in ("containers", "initContainers")
        if key in spec
    }
    return {**spec, **lists}


def spec_of_new_pod(answer: Document, id: int) -> Document | None:
    """Returns the spec of an instance's new pod in a response, without the tolerations that
    admission adds.

    Returns None if the response does not have the pod.
    """
    pod = desired(answer, "Pod").get(f"web-{id}")
    if pod is None:
        return None
    spec: dict[str, Any] = dict(pod["spec"])
    tolerations = [i for i in spec.pop("tolerations", []) if i.get("key") not in _DEFAULTS]
    return {**spec, "tolerations": tolerations} if tolerations else spec


@pytest.fixture
def without_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Turns off the limits of values, because the generated texts and numbers violate many."""
    monkeypatch.setattr(templates, "limit_problem", lambda *_: "")


@pytest.mark.usefixtures("without_limits")
def test_every_field_of_the_kubernetes_schema_reaches_the_pod_unchanged() -> None:
    """Creates a pod for each field of Kubernetes' published schema, and compares its spec with the
    template's.

    Each spec has the field, and the fields that this one requires.
    """
    found = list(every_field())
    answer = tapp_of_specs([spec for _, spec in found]).sync()
    assert [
        path for id, (path, spec) in enumerate(found) if spec_of_new_pod(answer, id) != spec
    ] == []
    assert condition(answer, "TemplateNotFound") is None


@pytest.mark.usefixtures("without_limits")
def test_stored_pods_with_every_field_are_up_to_date() -> None:
    found = list(every_field())
    world = tapp_of_specs([with_images(spec) for _, spec in found])
    world.sync()
    world.kubelet()
    decisions = world.decisions()
    assert {decisions[id] for id in range(len(found))} == {"Keep/UpToDate"}


@pytest.mark.usefixtures("without_limits")
def test_random_combinations_of_fields_reach_the_pod_unchanged() -> None:
    """Creates pods from random specs; only empty objects that Kubernetes treats as absent may be
    removed.
    """
    specs = [at_random(Random(seed)) for seed in range(size(20, 200))]
    answer = tapp_of_specs(specs).sync()
    for id, spec in enumerate(specs):
        assert spec_of_new_pod(answer, id) == canonical(spec)


def test_images_of_image_volumes_are_not_pulled_before_an_update() -> None:
    """With `prePull`, only the image of the container is pulled first: no update in place changes a
    volume.
    """
    strategy = {"inPlaceUpdateStrategy": {"prePull": True}}
    world = settled(template=template("nginx:1", volumes=[VOLUME]), updateStrategy=strategy)
    answer = world.change(template=template("nginx:2", volumes=[VOLUME])).sync()
    (puller,) = [pod for name, pod in desired(answer, "Pod").items() if "-pull-" in name]
    pulled = [volume["image"]["reference"] for volume in puller["spec"]["volumes"]]
    assert pulled == ["nginx:2"]


def test_changed_image_volume_replaces_the_pod() -> None:
    """Adds and changes an image volume: each time the pod is replaced, because a container would
    keep the old one.
    """
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
