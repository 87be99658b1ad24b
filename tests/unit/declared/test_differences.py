"""Tests that the differences between two templates and their effects agree with the revisions."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tapp.declared.differences import Effect, differences
from tapp.declared.revision import revisions, without_resources
from tapp.words.vocabulary import RESTARTED_AT

Document = dict[str, Any]


def body(
    container: Document | None = None, metadata: Document | None = None, **spec: Any
) -> Document:
    main = {"name": "web", "image": "web:1", **(container or {})}
    return {"metadata": metadata or {}, "spec": {"containers": [main], **spec}}


CASES = {
    "image of a container": (
        body(), body({"image": "web:2"}),
        [("spec.containers[web].image", "web:1", "web:2", Effect.IN_PLACE)],
    ),
    "variable": (
        body({"env": [{"name": "A", "value": "1"}]}),
        body({"env": [{"name": "A", "value": "2"}]}),
        [("spec.containers[web].env[A].value", "1", "2", Effect.RECREATE)],
    ),
    "field added": (
        body(), body(nodeSelector={"disk": "ssd"}),
        [("spec.nodeSelector", None, {"disk": "ssd"}, Effect.RECREATE)],
    ),
    "image of an init container": (
        body(initContainers=[{"name": "prepare", "image": "a"}]),
        body(initContainers=[{"name": "prepare", "image": "b"}]),
        [("spec.initContainers[prepare].image", "a", "b", Effect.RECREATE)],
    ),
    "image of a native sidecar": (
        body(initContainers=[{"name": "log", "image": "a", "restartPolicy": "Always"}]),
        body(initContainers=[{"name": "log", "image": "b", "restartPolicy": "Always"}]),
        [("spec.initContainers[log].image", "a", "b", Effect.IN_PLACE)],
    ),
    "label": (
        body(metadata={"labels": {"app": "a"}}), body(metadata={"labels": {"app": "b"}}),
        [("metadata.labels.app", "a", "b", Effect.METADATA)],
    ),
    "annotation with a prefix": (
        body(), body(metadata={"annotations": {"x.io/sum": "1"}}),
        [('metadata.annotations["x.io/sum"]', None, "1", Effect.METADATA)],
    ),
    "restart added": (
        body(), body(metadata={"annotations": {RESTARTED_AT: "now"}}),
        [(f'metadata.annotations["{RESTARTED_AT}"]', None, "now", Effect.RECREATE)],
    ),
    "restart removed": (
        body(metadata={"annotations": {RESTARTED_AT: "now"}}), body(),
        [(f'metadata.annotations["{RESTARTED_AT}"]', "now", None, Effect.METADATA)],
    ),
    "finalizer": (
        body(), body(metadata={"finalizers": ["x.io/wait"]}),
        [("metadata.finalizers", None, ["x.io/wait"], Effect.NEW_PODS)],
    ),
    "equivalent quantity": (
        body({"resources": {"limits": {"cpu": "1000m"}}}),
        body({"resources": {"limits": {"cpu": "1"}}}),
        [],
    ),
    "argument": (
        body({"args": ["a", "b"]}), body({"args": ["a", "c"]}),
        [("spec.containers[web].args[1]", "b", "c", Effect.RECREATE)],
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_each_difference_has_path_values_and_effect(case: str) -> None:
    before, after, expected = CASES[case]
    found = [
        (item.path, item.before, item.after, item.effect) for item in differences(before, after)
    ]
    assert found == expected


def test_reordered_containers_are_one_difference() -> None:
    names = [{"name": "a", "image": "x"}, {"name": "b", "image": "x"}]
    one, other = ({"spec": {"containers": items}} for items in (names, names[::-1]))
    assert [(item.path, item.effect) for item in differences(one, other)] == [
        ("spec.containers", Effect.RECREATE)
    ]


images = st.sampled_from(["a:1", "a:2", "b"])
containers = st.lists(
    st.fixed_dictionaries(
        {"name": st.sampled_from(["a", "b", "c"]), "image": images},
        optional={
            "env": st.lists(
                st.fixed_dictionaries({"name": st.sampled_from("XYZ"), "value": images}),
                max_size=2,
                unique_by=lambda item: item["name"],
            ),
            "args": st.lists(images, max_size=2),
            "resources": st.fixed_dictionaries(
                {"limits": st.fixed_dictionaries({"cpu": st.sampled_from(["1", "1000m", "2"])})}
            ),
        },
    ),
    min_size=1,
    max_size=3,
    unique_by=lambda item: item["name"],
)
bodies = st.builds(
    lambda main, labels, host: {
        "metadata": {"labels": labels},
        "spec": {"containers": main, "hostNetwork": host},
    },
    containers,
    st.dictionaries(st.sampled_from(["x", "y"]), images, max_size=2),
    st.booleans(),
)


@given(bodies, bodies)
def test_effects_of_random_differences_agree_with_the_revisions(
    before: Document, after: Document
) -> None:
    """Compares random templates: they have a difference if, and only if, their full revisions
    differ.

    If their second revisions (without images) differ, the difference replaces pods. A difference of
    resources is an exception, because a pod may already have the new ones.
    """
    old, new = revisions(before), revisions(after)
    effects = {item.effect for item in differences(before, after)}
    assert bool(effects) == (old[0] != new[0])
    assert bool(effects & {Effect.RECREATE, Effect.RESOURCES}) == (old[1] != new[1])
    old, new = (
        revisions(each | {"spec": without_resources(each["spec"])}) for each in (before, after)
    )
    assert (Effect.RECREATE in effects) == (old[1] != new[1])
    ignoring = {item.effect for item in differences(before, after, ignores_resources=True)}
    assert (Effect.RECREATE in ignoring) == (old[1] != new[1])
    assert bool(ignoring - {Effect.NEW_PODS}) == (old[0] != new[0])
