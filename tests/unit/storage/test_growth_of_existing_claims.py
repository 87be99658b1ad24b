"""Tests the growth of claims that another release or another controller has created, and their
owners.
"""

import json
from typing import Any

import pytest

from simulator.api.apply import LAST_APPLIED
from tests import builders
from tests.builders import bound, tapp
from tests.hook_calls import bare, desired, storage
from tests.invariants import writes
from tests.unit.storage.growth import (
    STANDARD,
    adopted,
    settled_tapp,
    template_of_size,
    with_larger_template,
)
from tests.unit.world import Hook, World, condition


def test_older_registration_gets_unchanged_responses() -> None:
    world = with_larger_template(settled_tapp())
    older = world.request(classes=None)
    answer = world.hook.answer("/sync", older)
    assert condition(answer, "ClaimsNotGrown") is None
    child = desired(answer, "PersistentVolumeClaim")["data-web-0"]
    assert child.keys() == {"apiVersion", "kind", "metadata"}
    assert child["metadata"].keys() == {"name", "namespace", "labels"}
    plan = world.hook.answer("/plan", older)
    assert plan["claims"].keys() == {"keep", "create", "delete"}


def test_storage_classes_are_requested_if_claims_may_grow() -> None:
    request = builders.request(tapp(volumeClaimTemplates=[template_of_size()]), classes=[])
    assert Hook().answer("/customize", request) == {
        "relatedResources": [
            {"apiVersion": "v1", "resource": "namespaces", "names": [builders.NAMESPACE]},
            {"apiVersion": "storage.k8s.io/v1", "resource": "storageclasses", "labelSelector": {}},
        ]
    }
    without = builders.request(tapp(), classes=[])
    assert Hook().answer("/customize", without) == {"relatedResources": []}


def test_new_registration_causes_no_write_of_existing_claims() -> None:
    world = settled_tapp()
    world.classes = None
    world.settle()
    world.classes = STANDARD
    world.sync()
    assert world.writes == []


def test_claims_of_the_old_controller_are_written_once_for_an_annotation() -> None:
    world = settled_tapp()
    before = {name: adopted(claim) for name, claim in world.claims.items()}
    world.claims = dict(before)
    world.sync()
    assert world.writes == [f"update PersistentVolumeClaim/data-web-{id}" for id in (0, 1)]
    for name, claim in world.claims.items():
        version = before[name]["metadata"]["resourceVersion"]
        assert bare(builders.with_meta(claim, resourceVersion=version)) == before[name]
    world.sync()
    assert world.writes == []


def test_claim_of_the_old_controller_grows_with_one_write() -> None:
    world = settled_tapp(replicas=1)
    world.claims = {name: adopted(claim) for name, claim in world.claims.items()}
    before = world.claims["data-web-0"]
    with_larger_template(world).sync()
    after = world.claims["data-web-0"]
    assert after["spec"] == {**before["spec"], "resources": {"requests": {"storage": "2Gi"}}}
    for _ in range(2):
        world.sync()
        assert world.writes == []


def test_claim_with_an_invalid_last_applied_annotation_is_kept() -> None:
    world = with_larger_template(settled_tapp(replicas=1)).settle()
    claim = world.claims["data-web-0"]
    for text in ("", "[]", "{", '{"metadata":[]}', '{"metadata":{"annotations":1}}', "null"):
        broken = builders.with_meta(claim, annotations={LAST_APPLIED: text, "note": "x"})
        world.claims["data-web-0"] = broken
        child = desired(world.hook.answer("/sync", world.request()), "PersistentVolumeClaim")
        assert child["data-web-0"]["metadata"]["name"] == "data-web-0"
        assert LAST_APPLIED not in str(child["data-web-0"])


def test_growing_keeps_labels_annotations_and_finalizers_of_others() -> None:
    world = settled_tapp(replicas=1)
    claim = world.claims["data-web-0"]
    meta = claim["metadata"]
    mine = builders.with_meta(
        claim,
        labels={**meta["labels"], "backup": "yes"},
        annotations={**meta["annotations"], "note": "mine"},
        finalizers=[*meta["finalizers"], "example.com/snapshot"],
    )
    world.claims["data-web-0"] = mine
    world.sync()
    assert world.writes == []
    with_larger_template(world).sync()
    after = world.claims["data-web-0"]["metadata"]
    for part in ("labels", "finalizers", "ownerReferences"):
        assert after[part] == mine["metadata"][part]
    assert after["annotations"]["note"] == "mine"


def tapp_named_like_its_namespace() -> World:
    """Returns a TApp whose name is also the name of its Namespace, with a bound claim."""
    parent = tapp(replicas=1, volumeClaimTemplates=[template_of_size()])
    name = builders.NAMESPACE
    world = World(builders.with_meta(parent, name=name), classes=STANDARD)
    world.sync()
    world.claims = {key: bound(claim) for key, claim in world.claims.items()}
    world.kubelet()
    return world


def test_claim_keeps_both_owners_if_the_tapp_has_the_name_of_its_namespace() -> None:
    """Grows a claim whose two owners have the same name: both stay.

    Metacontroller distinguishes owners by name, so one could replace the other.
    """
    world = tapp_named_like_its_namespace()
    claim = f"data-{builders.NAMESPACE}-0"
    owners = world.claims[claim]["metadata"]["ownerReferences"]
    assert len({owner["name"] for owner in owners}) == 1
    assert len(owners) == 2
    before = world.claims[claim]
    world.sync()
    noted = world.claims[claim]
    version = before["metadata"]["resourceVersion"]
    assert bare(builders.with_meta(noted, resourceVersion=version)) == bare(before)
    world.sync()
    assert world.writes == []
    with_larger_template(world).sync()
    after = world.claims[claim]
    assert storage(after) == "2Gi"
    assert after["metadata"]["ownerReferences"] == owners
    world.sync()
    assert world.writes == []


def with_applied_owners(world: World, owners: Any) -> World:
    """Sets the owners in Metacontroller's last-applied annotation of the only claim, and returns
    the world.
    """
    (name,) = world.claims
    annotations = world.claims[name]["metadata"]["annotations"]
    applied = json.loads(annotations[LAST_APPLIED])
    applied["metadata"]["ownerReferences"] = owners
    annotations = {**annotations, LAST_APPLIED: json.dumps(applied)}
    world.claims[name] = builders.with_meta(world.claims[name], annotations=annotations)
    return world


@pytest.mark.parametrize(
    "owners",
    [
        None,
        "none",
        {"name": "shop"},
        [],
        [{"name": "shop", "uid": {}}],
        [{"name": "another", "uid": ["x"]}],
    ],
    ids=str,
)
def test_claim_keeps_both_owners_with_any_last_applied_annotation(owners: Any) -> None:
    world = tapp_named_like_its_namespace()
    (claim,) = world.claims.values()
    with_applied_owners(world, owners).sync()
    (after,) = world.claims.values()
    assert after["metadata"]["ownerReferences"] == claim["metadata"]["ownerReferences"]


def test_claim_write_is_made_invalid_if_it_would_remove_an_owner() -> None:
    world = tapp_named_like_its_namespace()
    (claim,) = world.claims.values()
    owners = claim["metadata"]["ownerReferences"]
    answer = world.hook.answer("/sync", with_applied_owners(world, owners).request())
    (child,) = desired(answer, "PersistentVolumeClaim").values()
    assert child["metadata"]["ownerReferences"] == [{"uid": owner["uid"]} for owner in owners]


def test_finalize_does_not_grow_claims() -> None:
    world = with_larger_template(settled_tapp())
    answer = world.hook.finalize(world.request(finalizing=True))
    assert set(desired(answer, "PersistentVolumeClaim")) == {"data-web-0", "data-web-1"}
    request = world.request(finalizing=True)
    assert [write for write in writes(request, answer) if "update" in write] == []
