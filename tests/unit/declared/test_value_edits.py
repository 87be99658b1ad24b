"""Tests edits of values: which instances are updated, in place or by replacement, and which are
not.
"""

import json
from copy import deepcopy
from typing import Any

import pytest
from hypothesis import given, settings

from tests.builders import Document, tapp, template
from tests.sizes import size
from tests.unit.declared.values import new_pods, template_with_variable
from tests.unit.strategies import templates
from tests.unit.world import Hook, World, settled, with_spec

WRITTEN = "apps.tkestack.io/written-template"
HASH = "tapp_template_hash_key"


VALUES = {"0": {"a": "x"}, "1": {"a": "y"}}


def test_unused_value_causes_no_write() -> None:
    world = settled(replicas=2, template=template_with_variable("$(tapp.index)"))
    world.change(values=VALUES)
    world.sync()
    assert world.writes == []


def test_changed_value_updates_only_its_instance() -> None:
    world = settled(replicas=2, template=template_with_variable("$(tapp.values.a)"), values=VALUES)
    before = world.uids()
    world.change(values={**VALUES, "1": {"a": "z"}}).settle()
    after = world.uids()
    assert after["web-0"] == before["web-0"]
    assert after["web-1"] != before["web-1"]


@pytest.mark.parametrize(
    "body",
    [
        template("web:$(tapp.values.a)"),
        template(labels={"app": "web", "shard": "$(tapp.values.a)"}),
        template(annotations={"note": "$(tapp.values.a)"}),
    ],
    ids=["image", "label", "annotation"],
)
def test_changed_value_in_an_image_or_in_metadata_is_updated_in_place(body: Document) -> None:
    world = settled(replicas=2, template=body, values=VALUES)
    before = world.uids()
    world.change(values={**VALUES, "1": {"a": "z"}}).settle()
    assert world.uids() == before
    assert '"z"' in json.dumps(world.pod(1)) or "web:z" in json.dumps(world.pod(1))


def test_replacing_many_templates_by_one_with_values_causes_no_update() -> None:
    pool = {"a": template_with_variable("x"), "b": template_with_variable("y")}
    world = settled(replicas=2, templatePool=pool, templates={"0": "a", "1": "b"}, template=None)
    world.change(
        templatePool=None,
        templates=None,
        template=template_with_variable("$(tapp.values.a)"),
        values=VALUES,
    ).sync()
    assert world.writes == []
    assert world.hook.decisions(world.request()) == {0: "Keep/UpToDate", 1: "Keep/UpToDate"}


def test_instances_with_equal_values_have_the_same_revision_and_name_their_template() -> None:
    values = {"0": {"a": "x"}, "1": {"a": "x"}, "2": {"a": "y"}}
    world = World(
        tapp(replicas=3, template=template_with_variable("$(tapp.values.a)"), values=values),
        history=True,
    ).settle()
    pods = [world.pod(id)["metadata"] for id in range(3)]
    hashes = [pod["labels"][HASH] for pod in pods]
    assert hashes[0] == hashes[1] != hashes[2]
    (record,) = world.revisions.values()
    of = {pod["annotations"][WRITTEN].split()[0] for pod in pods}
    assert of == {record["metadata"]["labels"][HASH]}


def test_pod_of_a_template_without_placeholders_does_not_name_its_template() -> None:
    (pod,) = new_pods().values()
    assert WRITTEN not in pod["metadata"]["annotations"]


@settings(max_examples=size(15, 60))
@given(templates())
def test_values_do_not_change_pods_of_a_template_without_placeholders(body: Document) -> None:
    parent, hook = tapp(replicas=2, template=body), Hook()
    before = World(parent, hook=hook).request()
    after = deepcopy(before)
    after["parent"] = with_spec(parent, values={"0": {"a": "x"}}, defaultValues={"b": "y"})
    after["parent"]["metadata"]["generation"] = parent["metadata"]["generation"]
    one, other = hook.sync(before), hook.sync(after)
    assert other["children"] == one["children"]


def with_placeholders(part: Any, own: dict[str, str], key: str = "") -> Any:
    """Returns a copy of a template in which placeholders stand for all texts except names.

    The replaced texts are added to `own`, by the key of their value. `key` is the key of `part` in
    its parent.
    """
    if isinstance(part, dict):
        return {name: with_placeholders(item, own, name) for name, item in part.items()}
    if isinstance(part, list):
        return [with_placeholders(item, own, key) for item in part]
    if not isinstance(part, str) or key == "name" or "\0" in part:
        return part
    own[str(len(own))] = part
    return f"$(tapp.values.{len(own) - 1})"


@settings(max_examples=size(10, 40))
@given(templates())
def test_filled_in_template_results_in_the_same_pod_as_a_literal_one(body: Document) -> None:
    own: dict[str, str] = {}
    holed = with_placeholders(body, own)
    (plain,) = new_pods(replicas=1, template=body).values()
    (filled,) = new_pods(replicas=1, template=holed, defaultValues=own).values()
    assert filled["metadata"]["labels"] == plain["metadata"]["labels"]
    assert filled["spec"] == plain["spec"]
