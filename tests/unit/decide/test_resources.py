"""Tests changed resources of a template without `resources: InPlace`."""

from typing import Any

import pytest

from simulator.objects.objects import with_meta
from tapp.declared.differences import Effect, differences
from tapp.declared.lookup import resolve_templates
from tapp.declared.model import TAppSpec
from tapp.declared.revision import revisions
from tapp.declared.templates import Template
from tapp.kube.resources import canonical_resources
from tests.builders import Document, tapp, template
from tests.unit.world import Hook, World

IGNORE = {"inPlaceUpdateStrategy": {"resources": "Ignore"}}
LESS, MORE = ({"requests": {"cpu": cpu}} for cpu in ("1", "2"))


def template_with_resources(
    resources: Document | None, image: str = "web:1", **more: Any
) -> Document:
    container = {} if resources is None else {"resources": resources}
    return template(image, container=container, **more)


def pod_resized_by_others(resources: Document, **spec: Any) -> World:
    """Returns a TApp whose only pod has other resources than its template, because somebody has
    resized it.
    """
    spec = {"template": template_with_resources(LESS), **spec}
    return (
        World(tapp(**spec), history=True)
        .settle()
        .modify(0, lambda pod: with_resources(pod, resources))
    )


def with_resources(pod: Document, resources: Document) -> Document:
    containers = [{**pod["spec"]["containers"][0], "resources": resources}]
    return {**pod, "spec": {**pod["spec"], "containers": containers}}


def decision(world: World) -> str:
    """Returns the decision of the next sync on the only instance, as `Action/Reason: message`."""
    (found,) = world.hook.answer("/plan", world.request())["instances"]
    world.decisions()
    return f"{found['action']}/{found['reason']}: {found['message']}"


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ({"limits": {"cpu": "1"}}, {"limits": {"cpu": "1"}, "requests": {"cpu": "1000m"}}, True),
        ({"limits": {"cpu": 1}}, {"limits": {"cpu": "1"}, "requests": {"cpu": "0.5"}}, False),
        (None, {}, True),
        ({"limits": {}, "requests": None}, {}, True),
        ({"requests": {"memory": "1Gi"}}, {"requests": {"memory": "1024Mi"}}, True),
        ({"requests": {"cpu": "1"}}, {"requests": {"cpu": "1"}, "limits": {"cpu": "1"}}, False),
        ({"requests": {"cpu": "1"}}, {"requests": {"cpu": "1", "memory": "1Gi"}}, False),
        ({"claims": [{"name": "gpu"}]}, {}, False),
        ("wrong", "wrong", True),
        ({"limits": "wrong"}, {"limits": {"cpu": "1"}}, False),
    ],
    ids=[
        "requests default to limits",
        "request below the limit",
        "none and empty",
        "empty parts",
        "equal quantities",
        "limit added",
        "request added",
        "claim removed",
        "same invalid value",
        "invalid limits",
    ],
)
def test_resources_are_equal_if_the_kubelet_would_give_a_pod_the_same(
    one: Any, other: Any, same: bool
) -> None:
    assert (canonical_resources(one) == canonical_resources(other)) == same


IN_PLACE = "UpdateInPlace/TemplateChanged: template 'default' "
HAS_RESOURCES = "its pod has the resources of the template already"
REPLACED = "Recreate/TemplateChanged: template 'default' differs from its pod in "


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (
            template_with_resources(MORE),
            IN_PLACE + "changes labels and annotations in place; " + HAS_RESOURCES,
        ),
        (
            template_with_resources(MORE, "web:2"),
            IN_PLACE + "changes the image of container app in place; " + HAS_RESOURCES,
        ),
        (
            template_with_resources({"limits": {"cpu": "2"}}),
            REPLACED + "the resources of container 'app', so the pod is replaced",
        ),
        (
            template_with_resources(None),
            REPLACED + ("the resources of container 'app', so the pod is replaced"),
        ),
        (
            template_with_resources(MORE, hostNetwork=True),
            REPLACED + "more than images and metadata, so the pod is replaced",
        ),
        (template_with_resources(LESS), "Keep/UpToDate: its pod matches its template"),
    ],
    ids=[
        "same as the pod",
        "same and a new image",
        "other resources",
        "no resources",
        "same and more",
        "no edit",
    ],
)
def test_template_that_gets_the_resources_of_its_pod_is_updated_in_place(
    body: Document, expected: str
) -> None:
    assert decision(pod_resized_by_others(MORE).change(template=body)) == expected


BROKEN: dict[str, Document] = {
    "no such revision": {"metadata": {"labels": {"tapp_template_hash_key": "v1-0"}}},
    "no data": {"data": None},
    "no template": {"data": {}},
    "invalid template": {"data": {"template": {"spec": {"containers": [1]}}}},
    "template is a string": {"data": {"template": "x"}},
    "template does not match the label": {
        "data": {"template": template_with_resources(LESS, "web:7")}
    },
}


@pytest.mark.parametrize("broken", BROKEN.values(), ids=BROKEN.keys())
def test_pod_is_replaced_if_the_history_does_not_show_its_old_resources(broken: Document) -> None:
    world = pod_resized_by_others(MORE)
    for name, record in world.revisions.items():
        metadata = {**record["metadata"], **broken.get("metadata", {})}
        world.revisions[name] = {**record, **broken, "metadata": metadata}
    assert decision(world.change(template=template_with_resources(MORE))).startswith(REPLACED)


@pytest.mark.parametrize(
    "values", [3, None, {"0": 1}, "x"], ids=["number", "null", "number as value", "string"]
)
def test_recorded_template_is_used_although_its_recorded_values_are_invalid(values: Any) -> None:
    world = pod_resized_by_others(MORE)
    for name, record in world.revisions.items():
        data = {
            "template": template_with_resources(LESS),
            "values": values,
            "defaultValues": values,
        }
        world.revisions[name] = {**record, "data": data}
    assert decision(world.change(template=template_with_resources(MORE))).startswith(IN_PLACE)


def test_resources_of_a_pod_are_never_written_with_resources_ignore() -> None:
    world = pod_resized_by_others(MORE, updateStrategy=IGNORE)
    for body in (
        template_with_resources(LESS),
        template_with_resources(None),
        template_with_resources({"limits": {"cpu": "9"}}, "web:2"),
    ):
        world.change(template=body).settle()
        assert world.container(0)["resources"] == MORE
    assert world.container(0)["image"] == "web:2"


@pytest.mark.parametrize("ignoring", [False, True], ids=["default", "Ignore"])
def test_pods_of_the_old_controller_with_other_resources_are_adopted_with_resources_ignore(
    ignoring: bool,
) -> None:
    world = World(
        tapp(template=template_with_resources(LESS), updateStrategy=IGNORE if ignoring else {})
    )
    old = {"app": "web", "tapp_template_hash_key": "1", "tapp_uniq_hash_key": "2"}
    world.settle().modify(0, lambda pod: with_resources(with_meta(pod, labels=old), MORE))
    assert decision(world).startswith("Adopt/Adopted" if ignoring else REPLACED)


@pytest.mark.parametrize(
    "body",
    [template_with_resources(LESS), template_with_resources(None), template("x:1")],
    ids=["with resources", "without resources", "another image"],
)
def test_revisions_do_not_change_without_the_setting(body: Document) -> None:
    found = resolve_templates(TAppSpec.model_validate({"template": body})).named("default")
    assert isinstance(found, Template)
    revision, uniq = revisions(body)
    assert found.revision == revision
    assert found.uniq == uniq


@pytest.mark.parametrize(
    "value",
    ["Foo", "", "ignore", 1, True, {}, ["Ignore"]],
    ids=["unknown name", "empty", "lower case", "number", "boolean", "mapping", "list"],
)
def test_unknown_resources_mode_is_refused_with_its_field_path(value: Any) -> None:
    strategy = {"inPlaceUpdateStrategy": {"resources": value}}
    response = Hook().post("/sync", World(tapp(updateStrategy=strategy)).request())
    assert response.status_code == 400
    assert b"parent.spec.updateStrategy.inPlaceUpdateStrategy.resources" in response.data
    assert b"'Ignore' or 'InPlace'" in response.data


@pytest.mark.parametrize(
    ("ignores", "before", "after", "effect"),
    [
        (False, LESS, MORE, Effect.RESOURCES),
        (False, None, MORE, Effect.RESOURCES),
        (True, LESS, MORE, Effect.NEW_PODS),
        (True, LESS, None, Effect.NEW_PODS),
    ],
    ids=["changed", "added", "changed and ignored", "removed and ignored"],
)
def test_effect_of_changed_resources_depends_on_the_mode(
    ignores: bool, before: Document | None, after: Document | None, effect: Effect
) -> None:
    found = differences(
        template_with_resources(before), template_with_resources(after), ignores_resources=ignores
    )
    assert [item.effect for item in found] == [effect]


@pytest.mark.parametrize(
    "odd",
    ["x", [1], {"limits": 1}, {"limits": {"cpu": 10**40}}, 1e300],
    ids=["text", "list", "limits are a number", "huge number", "float"],
)
def test_invalid_resources_of_a_pod_differ_from_those_of_every_template(odd: Any) -> None:
    assert decision(pod_resized_by_others(odd)).startswith("Keep/UpToDate")
    assert decision(
        pod_resized_by_others(odd).change(template=template_with_resources(MORE))
    ).startswith(REPLACED)


@pytest.mark.parametrize("ignores", [False, True], ids=["default", "Ignore"])
def test_changed_resources_of_an_init_container_replace_the_pod(ignores: bool) -> None:
    """Changes the resources of an init container: the pod is replaced, also with `Ignore`.

    An init container has ended, so it cannot be resized.
    """
    init = {"name": "init", "image": "i"}
    one, other = (template(initContainers=[{**init, "resources": each}]) for each in (LESS, MORE))
    (found,) = differences(one, other, ignores_resources=ignores)
    assert found.effect is Effect.RECREATE
    world = World(tapp(template=one, updateStrategy=IGNORE if ignores else {}), history=True)
    assert decision(world.settle().change(template=other)).startswith(REPLACED)
