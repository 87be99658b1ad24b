"""The history of values: a record has those of the instances that run its template."""

from hashlib import sha256
from typing import Any

import msgspec
import pytest

from tests.builders import Document, tapp, template
from tests.unit.world import Hook, World

VALUES = "apps.tkestack.io/values"


def pool(**values: Document) -> dict[str, Any]:
    """A TApp of four instances, of which 2 and 3 run a canary; both templates read `a`."""
    return {
        "replicas": 4,
        "template": reads("a:1"),
        "templatePool": {"canary": reads("a:2")},
        "templates": {"2": "canary", "3": "canary"},
        "values": {str(number): {"a": f"v{number}"} for number in range(4)} | values,
    }


def reads(image: str) -> Document:
    """A template that reads a value."""
    return template(image, container={"env": [{"name": "A", "value": "$(tapp.values.a)"}]})


def world(**spec: Any) -> World:
    """A TApp that has come to rest, with a history."""
    return World(tapp(**spec), history=True).settle()


def kept(found: World) -> dict[str, Document]:
    """Template -> the values in its record."""
    return {
        item["metadata"]["annotations"]["apps.tkestack.io/template"]: item["data"].get("values")
        for item in found.revisions.values()
    }


def as_before(found: World) -> World:
    """The same with records as they were: each has the values of all instances."""
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


def test_a_record_has_the_values_of_those_that_run_its_template() -> None:
    """Two templates that read the same key keep half of the instances each."""
    assert kept(world(**pool())) == {
        "default": {"0": {"a": "v0"}, "1": {"a": "v1"}},
        "canary": {"2": {"a": "v2"}, "3": {"a": "v3"}},
    }


def test_records_grow_with_the_instances_and_not_with_their_square() -> None:
    """Ten times as many templates with an instance each keep ten times as many values."""
    sizes = []
    for count in (10, 100):
        spec = {
            "replicas": count,
            "templatePool": {f"t{number}": reads("a:1") for number in range(count)},
            "templates": {str(number): f"t{number}" for number in range(count)},
            "values": {str(number): {"a": "x"} for number in range(count)},
        }
        world = World(tapp(**spec), history=True)
        world.sync()
        sizes.append(len(msgspec.json.encode([item["data"] for item in world.revisions.values()])))
    assert sizes[1] < 12 * sizes[0]


def test_records_with_the_values_of_all_are_known_and_stay() -> None:
    """After an upgrade of the service no record is made, none goes, and no pod is written."""
    found = as_before(world(**pool()))
    found.sync()
    assert found.writes == []


def test_who_leaves_a_template_makes_no_record_of_it() -> None:
    """An instance that goes to another template leaves the record of its old one as it is."""
    found = world(**pool())
    before = {name for name in found.revisions if "canary" not in str(found.revisions[name])}
    found.change(templates={"1": "canary", "2": "canary", "3": "canary"}).settle()
    assert before <= found.revisions.keys()
    assert kept(found)["canary"] == {str(number): {"a": f"v{number}"} for number in (1, 2, 3)}


@pytest.mark.parametrize("number", [0, 2])
def test_another_value_is_a_record_of_its_own_template_alone(number: int) -> None:
    """Also where the records are older, and have the values of all instances."""
    found = as_before(world(**pool()))
    before = set(found.revisions)
    found.change(values=pool(**{str(number): {"a": "new"}})["values"]).settle()
    made = [found.revisions[name] for name in found.revisions.keys() - before]
    assert [item["data"]["values"][str(number)] for item in made] == [{"a": "new"}]


def test_an_answer_has_so_many_bytes_of_records_and_the_next_ones_have_the_rest() -> None:
    """A recorded template counts as one that is made; nothing stays away for ever."""
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


def test_updates_in_place_count_as_what_is_made() -> None:
    """A large annotation reaches the pods with several answers, and all of them in the end."""
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


def test_who_leaves_a_template_lets_nobody_go_that_the_partition_keeps() -> None:
    """The content of the rolling template stays the same, and with it the roll."""
    spec = {**pool(), "templates": {}, "updateStrategy": {"maxUnavailable": "100%"}}
    found = world(**spec)
    strategy = {"maxUnavailable": "100%", "partition": 2}
    found.change(template=reads("a:3"), updateStrategy=strategy).settle()
    assert images(found) == ["a:3", "a:3", "a:1", "a:1"]
    found.change(templates={"0": "canary"}).settle()
    assert images(found) == ["a:2", "a:3", "a:1", "a:1"]
    del found.pods["web-3"]
    found.settle()
    assert images(found) == ["a:2", "a:3", "a:1", "a:1"]
    assert found.container(3)["env"][0]["value"] == "v3"


def images(found: World) -> list[str]:
    """The image that each instance runs."""
    return [found.container(id)["image"] for id in range(4)]
