"""Other resources in a template, as an update of its pods."""

from typing import Any

import pytest

from simulator.objects.objects import with_meta
from tapp.declared.differences import Effect, differences
from tapp.declared.lookup import Templates
from tapp.declared.model import TAppSpec
from tapp.declared.revision import revisions
from tapp.declared.templates import Template
from tapp.kube.resources import asked_for
from tests.builders import Document, tapp, template
from tests.unit.world import Hook, World

IGNORE = {"inPlaceUpdateStrategy": {"resources": "Ignore"}}
LESS, MORE = ({"requests": {"cpu": cpu}} for cpu in ("1", "2"))


def asking(resources: Document | None, image: str = "web:1", **more: Any) -> Document:
    container = {} if resources is None else {"resources": resources}
    return template(image, container=container, **more)


def resized(resources: Document, **spec: Any) -> World:
    """An instance that somebody has given other resources than its template."""
    spec = {"template": asking(LESS), **spec}
    return World(tapp(**spec), history=True).settle().modify(0, lambda pod: given(pod, resources))


def given(pod: Document, resources: Document) -> Document:
    containers = [{**pod["spec"]["containers"][0], "resources": resources}]
    return {**pod, "spec": {**pod["spec"], "containers": containers}}


def decision(world: World) -> str:
    """`Action/Reason: message` of the only instance."""
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
)
def test_resources_are_the_same_if_a_pod_is_given_the_same(
    one: Any, other: Any, same: bool
) -> None:
    assert (asked_for(one) == asked_for(other)) == same


IN_PLACE = "UpdateInPlace/TemplateChanged: template 'default' "
HAS = "its pod has the resources already"
ANEW = "Recreate/TemplateChanged: template 'default' differs from its pod in "


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (asking(MORE), IN_PLACE + "changes labels and annotations in place; " + HAS),
        (asking(MORE, "web:2"), IN_PLACE + "changes images of app in place; " + HAS),
        (asking({"limits": {"cpu": "2"}}), ANEW + "resources, and container 'app' has others"),
        (asking(None), ANEW + "resources, and container 'app' has others"),
        (asking(MORE, hostNetwork=True), ANEW + "more than images and metadata"),
        (asking(LESS), "Keep/UpToDate: runs its template"),
    ],
)
def test_a_template_that_asks_for_what_its_pod_has(body: Document, expected: str) -> None:
    assert decision(resized(MORE).change(template=body)) == expected


BROKEN: dict[str, Document] = {
    "no such revision": {"metadata": {"labels": {"tapp_template_hash_key": "v1-0"}}},
    "no data": {"data": None},
    "no template": {"data": {}},
    "a template of another shape": {"data": {"template": {"spec": {"containers": [1]}}}},
    "no object": {"data": {"template": "x"}},
    "another template than its label says": {"data": {"template": asking(LESS, "web:7")}},
}


@pytest.mark.parametrize("broken", BROKEN.values(), ids=BROKEN.keys())
def test_a_history_that_does_not_tell_means_a_new_pod(broken: Document) -> None:
    world = resized(MORE)
    for name, record in world.revisions.items():
        metadata = {**record["metadata"], **broken.get("metadata", {})}
        world.revisions[name] = {**record, **broken, "metadata": metadata}
    assert decision(world.change(template=asking(MORE))).startswith(ANEW)


@pytest.mark.parametrize("values", [3, None, {"0": 1}, "x"])
def test_odd_values_beside_a_recorded_template_hide_it_from_nobody(values: Any) -> None:
    world = resized(MORE)
    for name, record in world.revisions.items():
        data = {"template": asking(LESS), "values": values, "defaultValues": values}
        world.revisions[name] = {**record, "data": data}
    assert decision(world.change(template=asking(MORE))).startswith(IN_PLACE)


def test_an_answer_never_writes_resources_that_are_left_to_others() -> None:
    world = resized(MORE, updateStrategy=IGNORE)
    for body in (asking(LESS), asking(None), asking({"limits": {"cpu": "9"}}, "web:2")):
        world.change(template=body).settle()
        assert world.container(0)["resources"] == MORE
    assert world.container(0)["image"] == "web:2"


@pytest.mark.parametrize("ignoring", [False, True])
def test_pods_of_the_old_controller_are_adopted_with_resources_that_are_ignored(
    ignoring: bool,
) -> None:
    world = World(tapp(template=asking(LESS), updateStrategy=IGNORE if ignoring else {}))
    old = {"app": "web", "tapp_template_hash_key": "1", "tapp_uniq_hash_key": "2"}
    world.settle().modify(0, lambda pod: given(with_meta(pod, labels=old), MORE))
    assert decision(world).startswith("Adopt/Adopted" if ignoring else ANEW)


@pytest.mark.parametrize("body", [asking(LESS), asking(None), template("x:1")])
def test_without_the_setting_the_revisions_are_the_frozen_ones(body: Document) -> None:
    found = Templates(TAppSpec.model_validate({"template": body})).named("default")
    assert isinstance(found, Template)
    assert (found.revision, found.uniq) == revisions(body)


@pytest.mark.parametrize("value", ["Foo", "", "ignore", 1, True, {}, ["Ignore"]])
def test_another_word_than_ignore_is_refused_with_its_path(value: Any) -> None:
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
)
def test_what_other_resources_ask_for(
    ignores: bool, before: Document | None, after: Document | None, effect: Effect
) -> None:
    found = differences(asking(before), asking(after), ignores_resources=ignores)
    assert [item.effect for item in found] == [effect]


@pytest.mark.parametrize("odd", ["x", [1], {"limits": 1}, {"limits": {"cpu": 10**40}}, 1e300])
def test_a_pod_with_resources_of_a_wrong_shape_has_others(odd: Any) -> None:
    assert decision(resized(odd)).startswith("Keep/UpToDate")
    assert decision(resized(odd).change(template=asking(MORE))).startswith(ANEW)


@pytest.mark.parametrize("ignores", [False, True])
def test_resources_of_a_plain_init_container_always_need_a_new_pod(ignores: bool) -> None:
    """It has ended, and nobody can resize it."""
    init = {"name": "init", "image": "i"}
    one, other = (template(initContainers=[{**init, "resources": each}]) for each in (LESS, MORE))
    (found,) = differences(one, other, ignores_resources=ignores)
    assert found.effect is Effect.RECREATE
    world = World(tapp(template=one, updateStrategy=IGNORE if ignores else {}), history=True)
    assert decision(world.settle().change(template=other)).startswith(ANEW)
