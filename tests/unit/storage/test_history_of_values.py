"""Tests values in the history: a revision records those of the instances that run its template."""

from hashlib import sha256
from typing import Any

import msgspec
import pytest

from tests.builders import Document, tapp, template
from tests.unit.world import Hook, World

VALUES = "apps.tkestack.io/values"


def canary_spec(**values: Document) -> dict[str, Any]:
    """Returns a spec of four instances, two of them with a canary; both templates read the value
    `a`.

    `values` replace values of instances, by instance number.
    """
    return {
        "replicas": 4,
        "template": template_with_value("a:1"),
        "templatePool": {"canary": template_with_value("a:2")},
        "templates": {"2": "canary", "3": "canary"},
        "values": {str(number): {"a": f"v{number}"} for number in range(4)} | values,
    }


def template_with_value(image: str) -> Document:
    """Returns a template with this image and a placeholder for the value `a`."""
    return template(image, container={"env": [{"name": "A", "value": "$(tapp.values.a)"}]})


def tapp_with_history(**spec: Any) -> World:
    """Returns a TApp with a history, after it has settled."""
    return World(tapp(**spec), history=True).settle()


def recorded_values(found: World) -> dict[str, Document]:
    """Returns template name -> the values that its ControllerRevision has recorded, or None."""
    return {
        item["metadata"]["annotations"]["apps.tkestack.io/template"]: item["data"].get("values")
        for item in found.revisions.values()
    }


def with_values_of_all(found: World) -> World:
    """Changes the ControllerRevisions to those of an earlier release, with the values of all
    instances.
    """
    for name, item in list(found.revisions.items()):
        values = {"values": found.parent["spec"]["values"]}
        digest = sha256(msgspec.json.encode(values, order="sorted")).hexdigest()[:20]
        metadata = item["metadata"]
        annotations = {**metadata["annotations"], VALUES: digest}
        found.revisions[name] = {
            **item,
            "metadata": {**metadata, "annotations": annotations},
            "data": {"template": item["data"]["template"], **values},
        }
    return found


def test_revision_has_the_values_of_the_instances_that_run_its_template() -> None:
    assert recorded_values(tapp_with_history(**canary_spec())) == {
        "default": {"0": {"a": "v0"}, "1": {"a": "v1"}},
        "canary": {"2": {"a": "v2"}, "3": {"a": "v3"}},
    }


def test_size_of_all_revisions_grows_linearly_with_the_instances() -> None:
    sizes = []
    for count in (10, 100):
        spec = {
            "replicas": count,
            "templatePool": {f"t{number}": template_with_value("a:1") for number in range(count)},
            "templates": {str(number): f"t{number}" for number in range(count)},
            "values": {str(number): {"a": "x"} for number in range(count)},
        }
        world = World(tapp(**spec), history=True)
        world.sync()
        sizes.append(len(msgspec.json.encode([item["data"] for item in world.revisions.values()])))
    assert sizes[1] < 12 * sizes[0]


def test_revisions_of_an_earlier_release_stay_as_they_are() -> None:
    """Runs a sync with ControllerRevisions of an earlier release: it writes nothing, so an upgrade
    writes no pod.
    """
    found = with_values_of_all(tapp_with_history(**canary_spec()))
    found.sync()
    assert found.writes == []


def test_instance_that_leaves_a_template_creates_no_new_revision_of_it() -> None:
    found = tapp_with_history(**canary_spec())
    before = {name for name in found.revisions if "canary" not in str(found.revisions[name])}
    found.change(templates={"1": "canary", "2": "canary", "3": "canary"}).settle()
    assert before <= found.revisions.keys()
    assert recorded_values(found)["canary"] == {
        str(number): {"a": f"v{number}"} for number in (1, 2, 3)
    }


@pytest.mark.parametrize("number", [0, 2], ids=["default template", "canary"])
def test_changed_value_creates_a_revision_of_its_own_template_only(number: int) -> None:
    """Changes the value of an instance: only the template that it runs gets a new
    ControllerRevision.

    The old revisions are of an earlier release, and have the values of all instances.
    """
    found = with_values_of_all(tapp_with_history(**canary_spec()))
    before = set(found.revisions)
    found.change(values=canary_spec(**{str(number): {"a": "new"}})["values"]).settle()
    made = [found.revisions[name] for name in found.revisions.keys() - before]
    assert [item["data"]["values"][str(number)] for item in made] == [{"a": "new"}]


def test_new_revisions_count_for_the_size_limit_of_a_response() -> None:
    """Twelve templates need twelve ControllerRevisions: the first sync creates some, and the next
    ones the rest.
    """
    count = 12
    spec = {
        "replicas": count,
        "templatePool": {
            f"t{number}": template(annotations={"note": "x" * 4_000}) for number in range(count)
        },
        "templates": {str(number): f"t{number}" for number in range(count)},
    }
    found = World(tapp(**spec), history=True, hook=Hook(max_new_pods_bytes=20_000))
    answer = found.sync()
    assert 1 < len(found.revisions) < count
    assert len(found.pods) == 1
    assert answer["resyncAfterSeconds"] <= 1
    found.settle()
    assert len(found.revisions) == count == len(found.pods)


def test_updates_in_place_count_for_the_size_limit_of_a_response() -> None:
    """Adds a large annotation to the template: the pods get it in several syncs."""
    found = World(
        tapp(replicas=12, updateStrategy={"maxUnavailable": "100%"}),
        hook=Hook(max_new_pods_bytes=20_000),
    ).settle()
    uids = found.uids()
    found.change(template=template(annotations={"note": "x" * 4_000}))
    decisions = [*found.decisions().values()]
    assert decisions.count("Keep/WaitingForTurn") > 5
    assert "UpdateInPlace/TemplateChanged" in decisions
    found.settle()
    assert found.uids() == uids
    assert all("note" in pod["metadata"]["annotations"] for pod in found.pods.values())


def test_kept_instances_stay_kept_if_another_one_leaves_the_rolling_template() -> None:
    """Gives an instance another template while a partition keeps two instances: these stay at their
    revision.

    The content of the rolling template stays the same, and so does the rollout.
    """
    spec = {**canary_spec(), "templates": {}, "updateStrategy": {"maxUnavailable": "100%"}}
    found = tapp_with_history(**spec)
    strategy = {"maxUnavailable": "100%", "partition": 2}
    found.change(template=template_with_value("a:3"), updateStrategy=strategy).settle()
    assert images(found) == ["a:3", "a:3", "a:1", "a:1"]
    found.change(templates={"0": "canary"}).settle()
    assert images(found) == ["a:2", "a:3", "a:1", "a:1"]
    del found.pods["web-3"]
    found.settle()
    assert images(found) == ["a:2", "a:3", "a:1", "a:1"]
    assert found.container(3)["env"][0]["value"] == "v3"


def images(found: World) -> list[str]:
    """Returns the image that each of the four instances runs, by instance number."""
    return [found.container(id)["image"] for id in range(4)]
