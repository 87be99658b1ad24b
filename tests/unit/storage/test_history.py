"""The history of a TApp: which templates are kept, and when one is made again."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests import builders
from tests.builders import Document, tapp, template, terminating
from tests.reading import desired
from tests.sizes import size
from tests.unit.world import Hook, World, with_spec

REVISION = "ControllerRevision"
LABEL = "tapp_template_hash_key"
TEMPLATE = "apps.tkestack.io/template"
CAUSE = "kubernetes.io/change-cause"


def world(**spec: Any) -> World:
    """A TApp that has come to rest, with a registration that declares ControllerRevisions."""
    return World(tapp(**spec), history=True).settle()


def history(found: World) -> list[str]:
    """The kept revisions, oldest first: `2 default web:2`."""
    ordered = sorted(found.revisions.values(), key=lambda item: item["revision"])
    return [f"{item['revision']} {_template(item)} {_image(item)}" for item in ordered]


def _template(revision: Document) -> str:
    return str(revision["metadata"]["annotations"][TEMPLATE])


def _image(revision: Document) -> str:
    return str(revision["data"]["template"]["spec"]["containers"][0]["image"])


def rolled(found: World, *images: str) -> World:
    """The default template gets one image after the other, each time until all is done."""
    for image in images:
        found.change(template=template(image)).settle()
    return found


def revision_writes(found: World) -> list[str]:
    """Writes of one sync to ControllerRevisions; pods and claims may not be touched."""
    found.sync()
    assert [line for line in found.writes if REVISION not in line] == []
    return [line.partition(" ")[0] for line in found.writes]


# --- what is kept -------------------------------------------------------------------------------


def test_the_template_is_kept_as_its_author_wrote_it() -> None:
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


def test_the_change_cause_is_kept_with_it_and_cut_short() -> None:
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


def test_each_template_that_an_instance_runs_is_kept_and_no_other() -> None:
    pool = {"a": template("a:1"), "b": template("b:1"), "unused": template("c:1")}
    found = world(replicas=2, templatePool=pool, templates={"1": "a", "7": "b"})
    assert history(found) == ["1 a a:1", "2 default nginx:1.25"]


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
)
def test_a_template_that_no_pod_can_be_made_of_is_not_kept(broken: Document) -> None:
    found = World(tapp(replicas=2, templatePool={"bad": broken}, templates={"1": "bad"}))
    found.history = True
    found.sync()
    assert history(found) == ["1 default nginx:1.25"]


@pytest.mark.parametrize("text", ["x" * (129 << 10), "<&>" * (8 << 10)])
def test_a_template_that_is_too_long_for_an_annotation_is_not_kept(text: str) -> None:
    r"""As Metacontroller writes it there: Go's JSON has `\u003c` for `<`."""
    long = template(annotations={"text": text})
    found = World(tapp(template=long), history=True)
    found.sync()
    assert found.revisions == {}


def test_a_killed_instance_keeps_its_template() -> None:
    found = world(
        templatePool={"a": template("a:1")}, templates={"0": "a"}, statuses={"0": "Killed"}
    )
    assert history(found) == ["1 a a:1"]


def test_another_spelling_of_a_template_is_no_news() -> None:
    found = world()
    body = template()
    body["spec"] |= {"nodeSelector": {}, "volumes": []}
    found.change(template=body)
    assert revision_writes(found) == []


# --- roll-outs and rollbacks ----------------------------------------------------------------------


def test_a_change_is_one_more_and_nothing_goes() -> None:
    found = rolled(world(), "web:2", "web:3")
    assert history(found) == ["1 default nginx:1.25", "2 default web:2", "3 default web:3"]


def test_what_was_rolled_back_to_becomes_the_newest() -> None:
    found = rolled(world(template=template("web:1")), "web:2", "web:3")
    found.change(template=template("web:1"))
    found.sync()
    both = ["1 default web:1", "2 default web:2", "3 default web:3", "4 default web:1"]
    assert history(found) == both
    assert revision_writes(found) == ["delete"]
    assert history(found) == both[1:]
    found.settle()
    assert history(found) == both[1:]


def test_what_was_rolled_back_to_stays_whatever_comes_next() -> None:
    found = rolled(world(template=template("web:1")), "web:2")
    found.change(template=template("web:1"))
    found.sync()
    found.change(template=template("web:3")).settle()
    assert history(found) == ["2 default web:2", "3 default web:1", "4 default web:3"]


def test_of_two_records_of_one_revision_the_newest_alone_stays() -> None:
    """A cache that lagged for two syncs may have brought that."""
    found = rolled(world(template=template("web:1")), "web:2")
    for name, item in list(found.revisions.items()):
        number = item["revision"] + 10
        again = builders.with_meta({**item, "revision": number}, name=f"{name}-{number}")
        found.revisions[f"{name}-{number}"] = again
    assert revision_writes(found) == ["delete", "delete"]
    assert history(found) == ["11 default web:1", "12 default web:2"]
    assert revision_writes(found) == []


def test_there_and_back_again_and_again_adds_nothing() -> None:
    found = rolled(world(template=template("web:1")), *["web:2", "web:1"] * 5)
    assert history(found) == ["10 default web:2", "11 default web:1"]


def test_a_canary_that_is_promoted() -> None:
    """The pool's template becomes the default one: another name is another template."""
    found = world(template=template("web:1"), replicas=3)
    found.change(templatePool={"canary": template("web:2")}, templates={"2": "canary"}).settle()
    assert history(found) == ["1 default web:1", "2 canary web:2"]
    found.change(template=template("web:2"), templates=None, templatePool=None).settle()
    assert history(found) == ["1 default web:1", "2 canary web:2", "3 default web:2"]


def test_a_template_that_is_unused_for_a_while_keeps_its_number() -> None:
    """Nobody runs it, so it is not the newest of anything."""
    pool = {"a": template("a:1")}
    found = world(templatePool=pool, templates={"0": "a"})
    found.change(templatePool={"a": template("a:2")}).settle()
    found.change(templatePool=pool, templates=None).settle()
    assert history(found) == ["1 a a:1", "2 a a:2", "3 default nginx:1.25"]
    found.change(templates={"0": "a"}).settle()
    assert history(found) == ["2 a a:2", "3 default nginx:1.25", "4 a a:1"]


def test_two_of_one_number_are_told_apart() -> None:
    """A cache that lagged: the live one is to be the highest, so it is made again."""
    found = rolled(world(template=template("web:1")), "web:2")
    for name, item in found.revisions.items():
        found.revisions[name] = {**item, "revision": 5}
    found.settle()
    assert history(found) == ["5 default web:1", "6 default web:2"]


# --- the limit ----------------------------------------------------------------------------------


@pytest.mark.parametrize(("limit", "superseded"), [(1, 2), (2, 3), (10, 6), (None, 6)])
def test_the_newest_of_the_template_and_as_many_more_are_kept(
    limit: int | None, superseded: int
) -> None:
    more = {} if limit is None else {"revisionHistoryLimit": limit}
    found = world(template=template("web:0"), **more)
    rolled(found, *[f"web:{number}" for number in range(1, 7)])
    assert history(found) == [f"{n + 1} default web:{n}" for n in range(6 - superseded, 7)]


def test_ten_is_the_default() -> None:
    found = rolled(world(template=template("web:0")), *[f"web:{number}" for number in range(1, 15)])
    assert len(found.revisions) == 1 + 1 + 10


def test_a_lower_limit_prunes_and_none_ends_the_history() -> None:
    found = rolled(world(template=template("web:1")), "web:2", "web:3", "web:4")
    found.change(revisionHistoryLimit=1)
    assert revision_writes(found) == ["delete"]
    found.change(revisionHistoryLimit=0)
    assert revision_writes(found) == ["delete"] * 3
    assert revision_writes(found) == []
    found.change(revisionHistoryLimit=None).settle()
    assert history(found) == ["1 default web:4"]


def test_the_newest_superseded_one_of_each_template_is_beyond_the_limit() -> None:
    pool = {name: template(f"{name}:1") for name in "abc"}
    found = world(
        replicas=3,
        templatePool=pool,
        templates=dict(zip("012", "abc", strict=True)),
        revisionHistoryLimit=1,
    )
    for number in range(2, 5):
        for name in "abc":
            pool = {**pool, name: template(f"{name}:{number}")}
            found.change(templatePool=pool).settle()
    assert [line.partition(" ")[2] for line in history(found)] == [
        "c c:2",
        *("a a:3", "b b:3", "c c:3"),
        *("a a:4", "b b:4", "c c:4"),
    ]


def test_what_a_template_was_that_is_gone_is_within_the_limit() -> None:
    found = world(templatePool={"a": template("a:1")}, templates={"0": "a"})
    found.change(templatePool=None, templates=None).settle()
    assert history(found) == ["1 a a:1", "2 default nginx:1.25"]
    rolled(found, *[f"web:{number}" for number in range(12)])
    assert "1 a a:1" not in history(found)


# --- what is none of ours, and what is on its way out ---------------------------------------------


def _foreign(change: dict[str, Any]) -> Document:
    meta = {"name": "web-theirs", "labels": {LABEL: "v1-0"}, "annotations": {TEMPLATE: "default"}}
    child = {"apiVersion": "apps/v1", "kind": REVISION, "metadata": meta, "data": {}, "revision": 1}
    found = builders.stored(child, tapp())
    metadata = {**found["metadata"], **change.get("metadata", {})}
    return {**found, **change, "metadata": metadata}


@pytest.mark.parametrize(
    "change",
    [
        {"metadata": {"labels": {}}},
        {"metadata": {"annotations": {}}},
        {"metadata": {"annotations": {TEMPLATE: ""}}},
        {"revision": -1},
        {"revision": 2.5},
        {"revision": "1"},
        {"revision": None},
        {"revision": 10**30},
        {"metadata": {"labels": {LABEL: 7}}},
        {"metadata": {"annotations": [TEMPLATE]}},
    ],
    ids=str,
)
@pytest.mark.parametrize("limit", [0, 1])
def test_what_is_none_of_ours_stays_as_it_is(change: dict[str, Any], limit: int) -> None:
    found = rolled(world(template=template("web:1"), revisionHistoryLimit=limit), "web:2")
    found.revisions["web-theirs"] = _foreign(change)
    rolled(found, "web:3", "web:4", "web:5")
    assert "web-theirs" in found.revisions
    assert revision_writes(found) == []


@pytest.mark.parametrize("what", [None, {}, {"metadata": {}}, {"metadata": {"name": ""}}])
def test_one_without_a_name_is_refused_with_its_place(what: Any) -> None:
    request = builders.request(tapp(), revisions=[])
    request["children"]["ControllerRevision.apps/v1"]["shop/x"] = what
    response = Hook().post("/sync", request)
    assert response.status_code == 400
    assert response.get_json()["path"].startswith(
        "children['ControllerRevision.apps/v1']['shop/x']"
    )


def test_one_that_is_going_is_waited_for() -> None:
    found = world()
    (name,) = found.revisions
    found.revisions[name] = terminating(found.revisions[name])
    assert revision_writes(found) == []
    del found.revisions[name]
    assert revision_writes(found) == ["create"]


def test_a_name_that_is_taken_is_left_alone() -> None:
    """Somebody took our label off: it is nobody's now, and stands in the way of no other."""
    found = world()
    (name,) = found.revisions
    found.revisions[name]["metadata"]["labels"].pop(LABEL)
    assert revision_writes(found) == []


def test_what_a_former_tapp_of_the_name_left_behind_is_not_in_the_way() -> None:
    (before,) = world().revisions
    parent = tapp()
    parent["metadata"]["uid"] = "another"
    (after,) = World(parent, history=True).settle().revisions
    assert before != after


@pytest.mark.parametrize("name", ["x" * 253, "a." * 126 + "a", "x" * 199 + ".y"])
def test_a_long_name_is_cut(name: str) -> None:
    parent = tapp()
    parent["metadata"]["name"] = name
    (made,) = desired(World(parent, history=True).sync(), REVISION)
    assert len(made) <= 253
    assert made[:20] == name[:20]
    assert ".-" not in made


# --- older registrations, upgrades and the end ----------------------------------------------------


def test_without_the_declaration_nothing_of_it_happens() -> None:
    found = World(tapp()).settle()
    assert found.revisions == {}


def test_without_the_declaration_what_is_there_stays() -> None:
    """A strategy other than OnDelete: nothing could be kept without a write."""
    found = rolled(world(template=template("web:1"), revisionHistoryLimit=1), "web:2", "web:3")
    request = found.request()
    request["controller"]["spec"]["childResources"][0]["updateStrategy"]["method"] = "InPlace"
    request["parent"]["spec"]["template"] = template("web:9")
    assert set(desired(found.hook.sync(request), REVISION)) == set(found.revisions)


def test_a_tapp_from_before_gets_its_current_templates_and_no_pod_is_written() -> None:
    pool = {"a": template("a:1")}
    found = World(tapp(replicas=3, templatePool=pool, templates={"1": "a"})).settle()
    found.history = True
    assert revision_writes(found) == ["create", "create"]
    assert revision_writes(found) == []


def test_they_go_with_the_tapp() -> None:
    found = rolled(world(template=template("web:1")), "web:2")
    found.pods = {}
    parent = {**found.parent, "metadata": {**found.parent["metadata"]}}
    parent["metadata"]["deletionTimestamp"] = "2026-01-05T11:00:00Z"
    shown = list(found.revisions.values())
    answer = found.hook.finalize(builders.request(parent, finalizing=True, revisions=shown))
    assert (answer["children"], answer["finalized"]) == ([], False)
    going = [terminating(item) for item in shown]
    for left in ([], going):
        answer = found.hook.finalize(builders.request(parent, finalizing=True, revisions=left))
        assert (answer["children"], answer["finalized"]) == ([], True)


@pytest.mark.parametrize("finalizer", ["orphan", "foregroundDeletion"])
def test_the_garbage_collector_has_its_way(finalizer: str) -> None:
    found = world()
    parent = {**found.parent, "metadata": {**found.parent["metadata"]}}
    parent["metadata"]["deletionTimestamp"] = "2026-01-05T11:00:00Z"
    parent["metadata"]["finalizers"] = [finalizer]
    request = builders.request(
        parent, list(found.pods.values()), finalizing=True, revisions=list(found.revisions.values())
    )
    answer = found.hook.finalize(request)
    assert answer["finalized"]
    assert set(desired(answer, REVISION)) == set(found.revisions)


# --- what always holds --------------------------------------------------------------------------

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
def test_whatever_is_edited_what_runs_is_the_newest_and_the_rest_is_bounded(
    edits: list[tuple[str, Any, Any]], synced: list[bool]
) -> None:
    found = World(tapp(replicas=3), history=True)
    for edit, settle in zip(edits, synced, strict=False):
        _edit(found, *edit)
        if settle:
            found.settle()
    found.settle()
    assert revision_writes(found) == []
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
