"""Tests ControllerRevisions that exist: those of other writers, terminating ones, and those of
earlier releases.
"""

from typing import Any

import pytest

from tests import builders
from tests.builders import Document, tapp, template, terminating
from tests.hook_calls import desired
from tests.unit.storage.history import (
    LABEL,
    REVISION,
    TEMPLATE,
    roll_out,
    tapp_with_history,
    verbs_of_revision_writes,
)
from tests.unit.world import Hook, World

# --- revisions of others, and terminating ones ----------------------------------------------------


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
def test_revision_that_the_service_did_not_write_stays(change: dict[str, Any], limit: int) -> None:
    found = roll_out(
        tapp_with_history(template=template("web:1"), revisionHistoryLimit=limit), "web:2"
    )
    found.revisions["web-theirs"] = _foreign(change)
    roll_out(found, "web:3", "web:4", "web:5")
    assert "web-theirs" in found.revisions
    assert verbs_of_revision_writes(found) == []


@pytest.mark.parametrize(
    "revision",
    [None, {}, {"metadata": {}}, {"metadata": {"name": ""}}],
    ids=["null", "empty", "no name", "empty name"],
)
def test_revision_without_a_name_is_refused_with_its_path(revision: Any) -> None:
    request = builders.request(tapp(), revisions=[])
    request["children"]["ControllerRevision.apps/v1"]["shop/x"] = revision
    response = Hook().post("/sync", request)
    assert response.status_code == 400
    assert response.get_json()["path"].startswith(
        "children['ControllerRevision.apps/v1']['shop/x']"
    )


def test_terminating_revision_is_created_again_when_it_is_gone() -> None:
    found = tapp_with_history()
    (name,) = found.revisions
    found.revisions[name] = terminating(found.revisions[name])
    assert verbs_of_revision_writes(found) == []
    del found.revisions[name]
    assert verbs_of_revision_writes(found) == ["create"]


def test_revision_whose_label_was_removed_is_neither_written_nor_created_again() -> None:
    found = tapp_with_history()
    (name,) = found.revisions
    found.revisions[name]["metadata"]["labels"].pop(LABEL)
    assert verbs_of_revision_writes(found) == []


def test_revision_name_depends_on_the_uid_of_the_tapp() -> None:
    (before,) = tapp_with_history().revisions
    parent = tapp()
    parent["metadata"]["uid"] = "another"
    (after,) = World(parent, history=True).settle().revisions
    assert before != after


@pytest.mark.parametrize(
    "name",
    ["x" * 253, "a." * 126 + "a", "x" * 199 + ".y"],
    ids=["longest", "many dots", "dot at the cut"],
)
def test_long_revision_name_is_shortened_to_a_valid_name(name: str) -> None:
    parent = tapp()
    parent["metadata"]["name"] = name
    (made,) = desired(World(parent, history=True).sync(), REVISION)
    assert len(made) <= 253
    assert made[:20] == name[:20]
    assert ".-" not in made


# --- older registrations, upgrades, and deletion --------------------------------------------------


def test_no_revision_is_created_without_the_declaration() -> None:
    found = World(tapp()).settle()
    assert found.revisions == {}


def test_existing_revisions_stay_if_the_declaration_has_another_strategy() -> None:
    """The CompositeController declares ControllerRevisions with the strategy InPlace: all of them
    stay as they are.

    With any strategy but OnDelete, an unchanged revision could not be kept without a write.
    """
    found = roll_out(
        tapp_with_history(template=template("web:1"), revisionHistoryLimit=1), "web:2", "web:3"
    )
    request = found.request()
    request["controller"]["spec"]["childResources"][0]["updateStrategy"]["method"] = "InPlace"
    request["parent"]["spec"]["template"] = template("web:9")
    assert set(desired(found.hook.sync(request), REVISION)) == set(found.revisions)


def test_existing_tapp_gets_revisions_of_its_templates_without_a_write_of_a_pod() -> None:
    pool = {"a": template("a:1")}
    found = World(tapp(replicas=3, templatePool=pool, templates={"1": "a"})).settle()
    found.history = True
    assert verbs_of_revision_writes(found) == ["create", "create"]
    assert verbs_of_revision_writes(found) == []


def test_revisions_are_deleted_with_the_tapp() -> None:
    found = roll_out(tapp_with_history(template=template("web:1")), "web:2")
    found.pods = {}
    parent = {**found.parent, "metadata": {**found.parent["metadata"]}}
    parent["metadata"]["deletionTimestamp"] = "2026-01-05T11:00:00Z"
    shown = list(found.revisions.values())
    answer = found.hook.finalize(builders.request(parent, finalizing=True, revisions=shown))
    assert answer["children"] == []
    assert not answer["finalized"]
    going = [terminating(item) for item in shown]
    for left in ([], going):
        answer = found.hook.finalize(builders.request(parent, finalizing=True, revisions=left))
        assert answer["children"] == []
        assert answer["finalized"]


@pytest.mark.parametrize("finalizer", ["orphan", "foregroundDeletion"])
def test_finalize_keeps_revisions_if_the_garbage_collector_handles_them(finalizer: str) -> None:
    found = tapp_with_history()
    parent = {**found.parent, "metadata": {**found.parent["metadata"]}}
    parent["metadata"]["deletionTimestamp"] = "2026-01-05T11:00:00Z"
    parent["metadata"]["finalizers"] = [finalizer]
    request = builders.request(
        parent, list(found.pods.values()), finalizing=True, revisions=list(found.revisions.values())
    )
    answer = found.hook.finalize(request)
    assert answer["finalized"]
    assert set(desired(answer, REVISION)) == set(found.revisions)
