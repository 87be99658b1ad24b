"""Tests how the verbs of the plugin edit a TApp, and the JSON patches for these edits."""

import copy
from typing import Any

import jsonpatch
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubectl_tapp.base.errors import CommandError, Exit
from kubectl_tapp.edit import edits
from tests.builders import tapp, template

Document = dict[str, Any]
AT = "2026-01-05T11:00:00Z"
POOLED = {"replicas": 6, "templatePool": {"v2": template("nginx:2"), "a/b~c": template("nginx:3")}}


def spec(**fields: Any) -> Document:
    return {"replicas": 6, "template": template(), **fields}


@pytest.mark.parametrize(
    ("before", "ids", "expected"),
    [
        ({}, [3], {"3": "Killed"}),
        ({"statuses": None}, [3], {"3": "Killed"}),
        ({"statuses": {"1": "Killed"}}, [0, 1], {"0": "Killed", "1": "Killed"}),
        ({"statuses": {"1": "killed"}}, [1], {"1": "Killed"}),  # which the old controller ignored
    ],
    ids=["no statuses", "null statuses", "other entries", "entry in lower case"],
)
def test_kill_adds_entries(before: Document, ids: list[int], expected: Document) -> None:
    edited = edits.killed(tapp(**spec(**before)), ids)
    assert edited["spec"]["statuses"] == expected


@pytest.mark.parametrize(
    ("before", "expected"),
    [
        ({"statuses": {"1": "Killed", "2": "Killed"}}, {"2": "Killed"}),
        ({"statuses": {"1": "Killed"}}, {}),
        ({"statuses": {"1": "killed"}}, {}),
        ({"statuses": {"2": "Killed"}}, {"2": "Killed"}),
        ({}, None),
    ],
    ids=[
        "one of two entries",
        "only entry",
        "entry in lower case",
        "no entry of the instance",
        "no statuses",
    ],
)
def test_start_removes_entries(before: Document, expected: Document | None) -> None:
    edited = edits.started(tapp(**spec(**before)), [1])
    assert edited["spec"].get("statuses") == expected


@pytest.mark.parametrize(
    ("fields", "name", "expected"),
    [
        ({}, "v2", {"0": "v2", "5": "v2"}),
        ({"templates": {"0": "gone", "1": "v2"}}, "v2", {"0": "v2", "1": "v2", "5": "v2"}),
        ({"templates": {"0": "v2", "1": "v2"}}, "default", {"1": "v2"}),
        ({"defaultTemplateName": "v2", "templates": {"0": "default"}}, "v2", {}),
        ({"DefaultTemplateName": "v2", "templates": {"0": "default"}}, "v2", {}),
        ({"defaultTemplateName": "v2"}, "default", {"0": "default", "5": "default"}),
        ({}, "a/b~c", {"0": "a/b~c", "5": "a/b~c"}),
    ],
    ids=[
        "no entries",
        "other entries",
        "back to the default",
        "default template of the pool",
        "default template in the old spelling",
        "template other than the default of the pool",
        "name with a slash and a tilde",
    ],
)
def test_use_writes_entries_only_for_other_templates_than_the_default(
    fields: Document, name: str, expected: Document
) -> None:
    edited = edits.with_assigned_template(tapp(**spec(**POOLED | fields)), name, [0, 5])
    assert edited["spec"].get("templates") == expected


@pytest.mark.parametrize(
    ("images", "name", "place"),
    [
        ({"app": "nginx:9"}, None, ("template",)),
        ({"app": "nginx:9"}, "v2", ("templatePool", "v2")),
        ({"*": "nginx:9"}, "a/b~c", ("templatePool", "a/b~c")),
    ],
    ids=["default template", "template of the pool", "every container"],
)
def test_image_is_set_in_one_template(
    images: dict[str, str], name: str | None, place: tuple[str, ...]
) -> None:
    before = tapp(**spec(**POOLED))
    after = edits.with_images(before, images, name)
    path = "/spec/" + "/".join(jsonpatch.JsonPointer.from_parts(place).path.split("/")[1:])
    assert edits.json_patch(before, after) == [
        {"op": "replace", "path": f"{path}/spec/containers/0/image", "value": "nginx:9"}
    ]


def test_image_of_a_default_template_in_the_pool_is_set_in_the_pool() -> None:
    before = tapp(**spec(**POOLED | {"DefaultTemplateName": "v2"}))
    after = edits.with_images(before, {"app": "nginx:9"})
    assert after["spec"]["template"] == before["spec"]["template"]
    assert after["spec"]["templatePool"]["v2"]["spec"]["containers"][0]["image"] == "nginx:9"


def test_default_template_is_found_in_the_pool() -> None:
    before = tapp(**spec(template=None, templatePool={"default": template()}))
    after = edits.with_images(before, {"app": "nginx:9"})
    assert "template" not in after["spec"]
    assert after["spec"]["templatePool"]["default"] == template("nginx:9")


def test_images_of_init_containers_and_of_all_containers_are_set() -> None:
    init = [{"name": "migrate", "image": "tool:1"}]
    before = tapp(**spec(template=template(initContainers=init)))
    after = edits.with_images(before, {"*": "all:2", "migrate": "tool:2"})
    assert after["spec"]["template"]["spec"]["initContainers"][0]["image"] == "tool:2"
    assert after["spec"]["template"]["spec"]["containers"][0]["image"] == "all:2"


@pytest.mark.parametrize(
    "metadata",
    [None, {}, {"annotations": None}, {"annotations": {"a": "b"}}],
    ids=["no metadata", "empty metadata", "null annotations", "another annotation"],
)
def test_restart_is_an_annotation_of_the_template(metadata: Document | None) -> None:
    body = template() | {"metadata": metadata}
    edited = edits.restarted(tapp(**spec(template=body)), ["default"], AT)
    annotations = edited["spec"]["template"]["metadata"]["annotations"]
    kept = ((metadata or {}).get("annotations")) or {}
    assert annotations == kept | {"kubectl.kubernetes.io/restartedAt": AT}


def test_copy_of_a_template_gets_an_unused_name() -> None:
    before = tapp(**spec(**POOLED, templates={"3": "v2"}))
    copy_of_default = edits.with_copied_template(before, "default", "canary")
    assert copy_of_default["spec"]["templatePool"]["canary"] == template()
    for name in ("v2", "default"):
        with pytest.raises(CommandError, match="in use"):
            edits.with_copied_template(before, "default", name)


@pytest.mark.parametrize("name", ["", "Bad Name!", "a=b", "-v2", "v2.", "v" * 64, "v\n"])
def test_copy_of_a_template_refuses_names_that_are_hard_to_type(name: str) -> None:
    """The copy of a template must have a name that is easy to type.

    The API server accepts any text, but users have to type the name for `use` and `--template`.
    """
    with pytest.raises(CommandError, match="is not a valid template name") as raised:
        edits.with_copied_template(tapp(**spec()), "default", name)
    assert raised.value.code is Exit.USAGE


# --- general rules --------------------------------------------------------------------------------

IDS = st.lists(st.integers(0, 5), min_size=1, max_size=6)
EDITS = st.one_of(
    st.builds(lambda ids: lambda it: edits.killed(it, ids), IDS),
    st.builds(lambda ids: lambda it: edits.started(it, ids), IDS),
    st.builds(
        lambda name, ids: lambda it: edits.with_assigned_template(it, name, ids),
        st.sampled_from(["default", "v2", "a/b~c"]),
        IDS,
    ),
    st.builds(
        lambda name, image: lambda it: edits.with_images(it, {"app": image}, name),
        st.sampled_from([None, "default", "v2", "a/b~c"]),
        st.sampled_from(["nginx:1.25", "nginx:9", "a@sha256:0"]),
    ),
    st.builds(lambda name: lambda it: edits.restarted(it, [name], AT), st.sampled_from(["v2"])),
    st.builds(
        lambda name: lambda it: edits.with_copied_template(it, name, "new"), st.just("a/b~c")
    ),
    st.builds(lambda number: lambda it: edits.scaled(it, number), st.integers(6, 9)),
    st.sampled_from([edits.paused, edits.resumed]),
    st.just(lambda it: edits.with_cause(it, "because")),
)
SPECS = st.fixed_dictionaries(
    {},
    optional={
        "statuses": st.none() | st.dictionaries(st.sampled_from("012"), st.just("Killed")),
        "templates": st.none() | st.dictionaries(st.sampled_from("0123"), st.just("v2")),
        "updateStrategy": st.sampled_from([None, {}, {"paused": True}, {"maxUnavailable": "30%"}]),
        "defaultTemplateName": st.sampled_from(["default", "v2"]),
        "DefaultTemplateName": st.sampled_from(["v2"]),
    },
)


@given(SPECS, st.lists(EDITS, min_size=1, max_size=4))
def test_patch_contains_only_the_edit(fields: Document, chosen: list[Any]) -> None:
    before = tapp(**spec(**POOLED | fields), status={"ready": "6/6"})
    seen = copy.deepcopy(before)
    after = before
    for edit in chosen:
        after = edit(after)
    assert before == seen
    assert jsonpatch.apply_patch(before, edits.guarded_patch(before, after)) == after
    for operation in edits.json_patch(before, after):
        assert operation["path"].startswith(("/spec", "/metadata/annotations"))
    assert {**after, "spec": 0, "metadata": 0} == {**before, "spec": 0, "metadata": 0}


@given(EDITS)
def test_repeated_edit_changes_nothing(edit: Any) -> None:
    once = edit(tapp(**spec(**POOLED)))
    assert edits.json_patch(once, edit(once)) == []


def test_guard_refuses_a_changed_spec_but_not_a_changed_status() -> None:
    before = tapp(**spec(), generation=4)
    patch = edits.guarded_patch(before, edits.killed(before, [1]))
    status = before | {"status": {"ready": "1/6"}}
    status["metadata"] = status["metadata"] | {"resourceVersion": "1002"}
    assert jsonpatch.apply_patch(status, patch)["spec"]["statuses"] == {"1": "Killed"}
    for other in ({"generation": 5}, {"uid": "another"}):
        changed = before | {"metadata": before["metadata"] | other}
        with pytest.raises(jsonpatch.JsonPatchTestFailed):
            jsonpatch.apply_patch(changed, patch)
