"""Tests the history of a TApp: which templates are kept as ControllerRevisions, and for how
long.
"""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests import builders
from tests.builders import Document, tapp, template
from tests.hook_calls import desired
from tests.sizes import size
from tests.unit.storage.history import (
    LABEL,
    REVISION,
    TEMPLATE,
    roll_out,
    tapp_with_history,
    verbs_of_revision_writes,
)
from tests.unit.world import World, with_spec

CAUSE = "kubernetes.io/change-cause"


def revisions_in_order(found: World) -> list[str]:
    """Returns a line for each ControllerRevision, by number, such as `2 default web:2`."""
    ordered = sorted(found.revisions.values(), key=lambda item: item["revision"])
    return [f"{item['revision']} {_template(item)} {_image(item)}" for item in ordered]


def _template(revision: Document) -> str:
    return str(revision["metadata"]["annotations"][TEMPLATE])


def _image(revision: Document) -> str:
    return str(revision["data"]["template"]["spec"]["containers"][0]["image"])


# --- which templates are kept ---------------------------------------------------------------------


def test_revision_has_the_template_as_its_author_wrote_it() -> None:
    body = template("web:1", annotations={"note": "x"}, terminationGracePeriodSeconds=5)
    parent = tapp(template=body)
    (child,) = desired(World(parent, history=True).sync(), REVISION).values()
    meta = child["metadata"]
    assert child["data"] == {"template": body, "serviceName": "", "volumeClaimTemplates": []}
    assert child["revision"] == 1
    assert meta["annotations"] == {TEMPLATE: "default"}
    assert meta["name"].startswith("web-")
    pods = World(parent, history=True).settle().pods
    assert meta["labels"] == {LABEL: pods["web-0"]["metadata"]["labels"][LABEL]}


def test_revision_has_the_change_cause_with_at_most_1000_characters() -> None:
    parent = tapp()
    parent["metadata"]["annotations"] = {CAUSE: "nginx 1.25, for the new cipher " + "x" * 5_000}
    found = World(parent, history=True).settle()
    (kept,) = found.revisions.values()
    cause = kept["metadata"]["annotations"][CAUSE]
    assert cause.startswith("nginx 1.25")
    assert len(cause) == 1_000
    parent = with_spec(found.parent, template=template("web:2"))
    parent["metadata"]["annotations"] = {CAUSE: ["no", "text"]}
    found.parent = parent
    found.settle()
    assert [CAUSE in item["metadata"]["annotations"] for item in found.revisions.values()] == [
        True,
        False,
    ]


def test_only_templates_that_an_instance_runs_are_kept() -> None:
    pool = {"a": template("a:1"), "b": template("b:1"), "unused": template("c:1")}
    found = tapp_with_history(replicas=2, templatePool=pool, templates={"1": "a", "7": "b"})
    assert revisions_in_order(found) == ["1 a a:1", "2 default nginx:1.25"]


@pytest.mark.parametrize(
    "broken",
    [
        {"spec": {}},
        {"spec": {"containers": "none"}},
        template(
            container={
                "env": [
                    {"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
                    {"name": "A", "value": "$(A)"},
                ]
            }
        ),
    ],
    ids=["no containers", "containers are a string", "variable twice"],
)
def test_invalid_template_is_not_kept(broken: Document) -> None:
    found = World(tapp(replicas=2, templatePool={"bad": broken}, templates={"1": "bad"}))
    found.history = True
    found.sync()
    assert revisions_in_order(found) == ["1 default nginx:1.25"]


@pytest.mark.parametrize(
    "text", ["x" * (129 << 10), "<&>" * (8 << 10)], ids=["plain", "characters that Go escapes"]
)
def test_template_that_is_too_long_for_the_last_applied_annotation_is_not_kept(text: str) -> None:
    r"""A template of more than 128 KiB gets no ControllerRevision.

    The length is that of Go's JSON, which has `\u003c` for `<`.
    """
    long = template(annotations={"text": text})
    found = World(tapp(template=long), history=True)
    found.sync()
    assert found.revisions == {}


def test_template_of_a_killed_instance_is_kept() -> None:
    found = tapp_with_history(
        templatePool={"a": template("a:1")}, templates={"0": "a"}, statuses={"0": "Killed"}
    )
    assert revisions_in_order(found) == ["1 a a:1"]


def test_equivalent_template_creates_no_revision() -> None:
    found = tapp_with_history()
    body = template()
    body["spec"] |= {"nodeSelector": {}, "volumes": []}
    found.change(template=body)
    assert verbs_of_revision_writes(found) == []


# --- rollouts and rollbacks -----------------------------------------------------------------------


def test_each_rollout_adds_a_revision() -> None:
    found = roll_out(tapp_with_history(), "web:2", "web:3")
    assert revisions_in_order(found) == [
        "1 default nginx:1.25",
        "2 default web:2",
        "3 default web:3",
    ]


def test_rollback_recreates_the_old_revision_with_the_newest_number() -> None:
    found = roll_out(tapp_with_history(template=template("web:1")), "web:2", "web:3")
    found.change(template=template("web:1"))
    found.sync()
    both = ["1 default web:1", "2 default web:2", "3 default web:3", "4 default web:1"]
    assert revisions_in_order(found) == both
    assert verbs_of_revision_writes(found) == ["delete"]
    assert revisions_in_order(found) == both[1:]
    found.settle()
    assert revisions_in_order(found) == both[1:]


def test_revision_of_a_rollback_stays_after_the_next_rollout() -> None:
    found = roll_out(tapp_with_history(template=template("web:1")), "web:2")
    found.change(template=template("web:1"))
    found.sync()
    found.change(template=template("web:3")).settle()
    assert revisions_in_order(found) == ["2 default web:2", "3 default web:1", "4 default web:3"]


def test_only_the_newest_of_two_equal_revisions_stays() -> None:
    """Two ControllerRevisions have the same content and different numbers: the lower one is
    deleted.

    A stale cache in two syncs may have caused the second one.
    """
    found = roll_out(tapp_with_history(template=template("web:1")), "web:2")
    for name, item in list(found.revisions.items()):
        number = item["revision"] + 10
        again = builders.with_meta({**item, "revision": number}, name=f"{name}-{number}")
        found.revisions[f"{name}-{number}"] = again
    assert verbs_of_revision_writes(found) == ["delete", "delete"]
    assert revisions_in_order(found) == ["11 default web:1", "12 default web:2"]
    assert verbs_of_revision_writes(found) == []


def test_repeated_rollbacks_keep_two_revisions() -> None:
    found = roll_out(tapp_with_history(template=template("web:1")), *["web:2", "web:1"] * 5)
    assert revisions_in_order(found) == ["10 default web:2", "11 default web:1"]


def test_promoted_canary_is_a_new_revision_of_the_default_template() -> None:
    """Gives the default template the content of the canary: it gets a new ControllerRevision.

    A revision belongs to a template name, so an equal template of another name has its own.
    """
    found = tapp_with_history(template=template("web:1"), replicas=3)
    found.change(templatePool={"canary": template("web:2")}, templates={"2": "canary"}).settle()
    assert revisions_in_order(found) == ["1 default web:1", "2 canary web:2"]
    found.change(template=template("web:2"), templates=None, templatePool=None).settle()
    assert revisions_in_order(found) == ["1 default web:1", "2 canary web:2", "3 default web:2"]


def test_unused_template_gets_a_new_number_only_when_it_is_used_again() -> None:
    pool = {"a": template("a:1")}
    found = tapp_with_history(templatePool=pool, templates={"0": "a"})
    found.change(templatePool={"a": template("a:2")}).settle()
    found.change(templatePool=pool, templates=None).settle()
    assert revisions_in_order(found) == ["1 a a:1", "2 a a:2", "3 default nginx:1.25"]
    found.change(templates={"0": "a"}).settle()
    assert revisions_in_order(found) == ["2 a a:2", "3 default nginx:1.25", "4 a a:1"]


def test_current_revision_is_recreated_if_another_one_has_the_same_number() -> None:
    """Two ControllerRevisions have the same number: the current one is created again with a higher
    number.

    A stale cache may have caused equal numbers.
    """
    found = roll_out(tapp_with_history(template=template("web:1")), "web:2")
    for name, item in found.revisions.items():
        found.revisions[name] = {**item, "revision": 5}
    found.settle()
    assert revisions_in_order(found) == ["5 default web:1", "6 default web:2"]


# --- revisionHistoryLimit -------------------------------------------------------------------------


@pytest.mark.parametrize(("limit", "superseded"), [(1, 2), (2, 3), (10, 6), (None, 6)])
def test_limit_applies_to_revisions_other_than_the_current_and_the_previous_one(
    limit: int | None, superseded: int
) -> None:
    more = {} if limit is None else {"revisionHistoryLimit": limit}
    found = tapp_with_history(template=template("web:0"), **more)
    roll_out(found, *[f"web:{number}" for number in range(1, 7)])
    assert revisions_in_order(found) == [
        f"{n + 1} default web:{n}" for n in range(6 - superseded, 7)
    ]


def test_limit_is_ten_by_default() -> None:
    found = roll_out(
        tapp_with_history(template=template("web:0")), *[f"web:{number}" for number in range(1, 15)]
    )
    assert len(found.revisions) == 1 + 1 + 10


def test_lower_limit_deletes_revisions_and_a_limit_of_0_deletes_all() -> None:
    found = roll_out(tapp_with_history(template=template("web:1")), "web:2", "web:3", "web:4")
    found.change(revisionHistoryLimit=1)
    assert verbs_of_revision_writes(found) == ["delete"]
    found.change(revisionHistoryLimit=0)
    assert verbs_of_revision_writes(found) == ["delete"] * 3
    assert verbs_of_revision_writes(found) == []
    found.change(revisionHistoryLimit=None).settle()
    assert revisions_in_order(found) == ["1 default web:4"]


def test_previous_revision_of_each_template_does_not_count_for_the_limit() -> None:
    pool = {name: template(f"{name}:1") for name in "abc"}
    found = tapp_with_history(
        replicas=3,
        templatePool=pool,
        templates=dict(zip("012", "abc", strict=True)),
        revisionHistoryLimit=1,
    )
    for number in range(2, 5):
        for name in "abc":
            pool = {**pool, name: template(f"{name}:{number}")}
            found.change(templatePool=pool).settle()
    assert [line.partition(" ")[2] for line in revisions_in_order(found)] == [
        "c c:2",
        *("a a:3", "b b:3", "c c:3"),
        *("a a:4", "b b:4", "c c:4"),
    ]


def test_revisions_of_a_removed_template_count_for_the_limit() -> None:
    found = tapp_with_history(templatePool={"a": template("a:1")}, templates={"0": "a"})
    found.change(templatePool=None, templates=None).settle()
    assert revisions_in_order(found) == ["1 a a:1", "2 default nginx:1.25"]
    roll_out(found, *[f"web:{number}" for number in range(12)])
    assert "1 a a:1" not in revisions_in_order(found)


# --- random edits ---------------------------------------------------------------------------------

NAMES = st.sampled_from(["default", "a", "b"])
EDITS = st.one_of(
    st.tuples(st.just("image"), NAMES, st.integers(1, 4)),
    st.tuples(st.just("give"), st.integers(0, 2), NAMES),
    st.tuples(st.just("remove"), NAMES.filter(lambda name: name != "default"), st.none()),
    st.tuples(st.just("limit"), st.sampled_from([None, 0, 1, 2]), st.none()),
    st.tuples(st.just("replicas"), st.integers(0, 3), st.none()),
    st.tuples(st.just("delete"), st.integers(0, 3), st.none()),
    st.tuples(st.just("sync"), st.none(), st.none()),
)


def _edit(found: World, what: str, first: Any, second: Any) -> None:
    spec = found.parent["spec"]
    pool, given_ = spec.get("templatePool") or {}, spec.get("templates") or {}
    match what:
        case "image" if first == "default":
            found.change(template=template(f"default:{second}"))
        case "image":
            found.change(templatePool={**pool, first: template(f"{first}:{second}")})
        case "give":
            found.change(templates={**given_, str(first): second})
        case "remove":
            found.change(templatePool={k: v for k, v in pool.items() if k != first})
        case "limit":
            found.change(revisionHistoryLimit=first)
        case "replicas":
            found.change(replicas=first)
        case "delete" if found.revisions:
            del found.revisions[sorted(found.revisions)[first % len(found.revisions)]]
        case _:
            found.sync()


@settings(max_examples=size(15, 150))
@given(st.lists(EDITS, max_size=12), st.lists(st.booleans(), min_size=12, max_size=12))
def test_random_edits_keep_running_templates_newest_and_the_history_limited(
    edits: list[tuple[str, Any, Any]], synced: list[bool]
) -> None:
    found = World(tapp(replicas=3), history=True)
    for edit, settle in zip(edits, synced, strict=False):
        _edit(found, *edit)
        if settle:
            found.settle()
    found.settle()
    assert verbs_of_revision_writes(found) == []
    spec = found.parent["spec"]
    limit = spec.get("revisionHistoryLimit", 10)
    names = {"default", *(spec.get("templatePool") or {})}
    assert len(found.revisions) <= (2 * len(names) + limit if limit else 0)
    for pod in found.pods.values():
        id = pod["metadata"]["name"].removeprefix("web-")
        name = (spec.get("templates") or {}).get(id, "default")
        if name not in names or not limit:
            continue
        ones = [item for item in found.revisions.values() if _template(item) == name]
        newest = max(ones, key=lambda item: item["revision"])
        body = spec["template"] if name == "default" else spec["templatePool"][name]
        assert newest["data"]["template"] == body
        assert newest["metadata"]["labels"][LABEL] == pod["metadata"]["labels"][LABEL]
        assert [item["revision"] for item in ones].count(newest["revision"]) == 1
