"""Tests claims: they are created with their pod, stay by default, and are deleted only by
policy.
"""

from typing import Any

import pytest

from tests import builders
from tests.builders import Document, claim_template, tapp, template, terminating
from tests.hook_calls import desired
from tests.invariants import writes
from tests.unit.world import Hook, World, condition, settled

DATA = [claim_template()]
NAMESPACE_OWNER = {
    "apiVersion": "v1",
    "kind": "Namespace",
    "name": builders.NAMESPACE,
    "uid": builders.NAMESPACE_UID,
}


def claim_names(answer: Document) -> list[str]:
    """Returns the names of the claims in a response, sorted."""
    return sorted(desired(answer, "PersistentVolumeClaim"))


def retention_policy(**values: str) -> Document:
    """Returns the fields of a spec with these entries of `persistentVolumeClaimRetentionPolicy`."""
    return {"persistentVolumeClaimRetentionPolicy": values}


def test_claim_is_created_with_its_pod_and_has_the_namespace_as_second_owner() -> None:
    template = claim_template(storage="1024Mi")
    template["metadata"] |= {"labels": {"tier": "db"}, "annotations": {"note": "x"}}
    answer = World(tapp(volumeClaimTemplates=[template])).sync()
    claim = desired(answer, "PersistentVolumeClaim")["data-web-0"]
    assert claim["metadata"]["ownerReferences"] == [NAMESPACE_OWNER]
    assert claim["metadata"]["labels"] == {"tier": "db", "tapp_instance_key": "0"}
    assert claim["metadata"]["annotations"] == {"note": "x"}
    assert claim["spec"] == {
        "accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": "1Gi"}},
    }


def test_empty_storage_class_name_stays_in_the_claim() -> None:
    """Creates a claim with `storageClassName: ""`, which requests a volume without a class."""
    template = claim_template()
    template["spec"]["storageClassName"] = ""
    answer = World(tapp(volumeClaimTemplates=[template])).sync()
    claim = desired(answer, "PersistentVolumeClaim")["data-web-0"]
    assert claim["spec"]["storageClassName"] == ""


def test_sync_fails_without_the_namespace_if_a_claim_has_to_be_created() -> None:
    world = World(tapp(volumeClaimTemplates=DATA))
    response = world.hook.post("/sync", world.request(namespace=False))
    assert response.status_code == 503
    assert "Namespace" in response.json["error"]


def test_sync_succeeds_without_the_namespace_if_all_claims_exist() -> None:
    world = settled(replicas=2, volumeClaimTemplates=DATA)
    answer = world.hook.sync(world.request(namespace=False))
    assert claim_names(answer) == ["data-web-0", "data-web-1"]


def test_sync_fails_if_the_namespace_has_no_uid() -> None:
    world = World(tapp(volumeClaimTemplates=DATA))
    request = world.request()
    del request["related"]["Namespace.v1"][builders.NAMESPACE]["metadata"]["uid"]
    assert world.hook.post("/sync", request).status_code == 503


def test_sync_fails_if_the_request_has_another_namespace() -> None:
    world = World(tapp(volumeClaimTemplates=DATA))
    request = world.request()
    request["related"]["Namespace.v1"][builders.NAMESPACE]["metadata"]["name"] = "other"
    assert world.hook.post("/sync", request).status_code == 503


def test_existing_claim_is_used_again_and_not_written() -> None:
    world = settled(replicas=1, volumeClaimTemplates=DATA)
    world.change(replicas=0).settle()
    before = world.claims
    world.change(replicas=1).settle()
    assert world.claims == before


@pytest.mark.parametrize(
    "edit",
    [
        pytest.param({"replicas": 0}, id="scaled to zero"),
        pytest.param({"statuses": {"0": "Killed", "1": "Killed"}}, id="killed"),
        pytest.param({"volumeClaimTemplates": []}, id="claim template removed"),
        pytest.param(
            {"volumeClaimTemplates": [claim_template("new")]}, id="claim template renamed"
        ),
        pytest.param({"defaultTemplateName": "typo"}, id="unknown template"),
        pytest.param({"template": template(nodeSelector={"a": "b"})}, id="pods replaced"),
        pytest.param(retention_policy(whenDeleted="Delete"), id="policy for deletion only"),
    ],
)
def test_claims_stay_by_default_after_every_edit(edit: Document) -> None:
    world = settled(replicas=2, volumeClaimTemplates=DATA).change(**edit)
    for _ in range(3):
        assert {"data-web-0", "data-web-1"} <= set(claim_names(world.sync()))
        world.kubelet()


def test_when_scaled_delete_deletes_claims_after_their_pods() -> None:
    spec = retention_policy(whenScaled="Delete")
    world = settled(replicas=3, volumeClaimTemplates=DATA, **spec).change(replicas=1)
    assert len(claim_names(world.sync())) == 3  # the pods still exist
    assert len(claim_names(world.sync())) == 3  # the pods are terminating
    world.kubelet()
    assert claim_names(world.sync()) == ["data-web-0"]


@pytest.mark.parametrize(
    "edit",
    [
        pytest.param({"statuses": {"0": "Killed"}}, id="killed"),
        pytest.param({"volumeClaimTemplates": []}, id="claim template removed"),
    ],
)
def test_when_scaled_delete_applies_only_to_scale_downs(edit: Document) -> None:
    spec = retention_policy(whenScaled="Delete")
    world = settled(replicas=1, volumeClaimTemplates=DATA, **spec).change(**edit)
    world.settle()
    assert sorted(world.claims) == ["data-web-0"]


@pytest.mark.parametrize("name", ["data-web-x", "data-web-01", "data-web-0-9", "other-web-9"])
def test_when_scaled_delete_keeps_claims_that_belong_to_no_instance(name: str) -> None:
    spec = retention_policy(whenScaled="Delete")
    world = settled(replicas=1, volumeClaimTemplates=DATA, **spec)
    stranger = world.claims["data-web-0"]
    world.claims[name] = {**stranger, "metadata": {**stranger["metadata"], "name": name}}
    assert name in claim_names(world.sync())


def test_terminating_claim_blocks_the_creation_of_its_pod() -> None:
    world = settled(replicas=2, volumeClaimTemplates=DATA)
    world.claims["data-web-0"] = terminating(world.claims["data-web-0"])
    del world.pods["web-0"]
    assert world.decisions() == {0: "Absent/Blocked", 1: "Keep/UpToDate"}
    del world.claims["data-web-0"]
    assert world.decisions()[0] == "Create/NoPod"


def test_terminating_claim_does_not_affect_the_running_pod() -> None:
    world = settled(volumeClaimTemplates=DATA)
    world.claims["data-web-0"] = terminating(world.claims["data-web-0"])
    assert world.decisions() == {0: "Keep/UpToDate"}


# --- finalize -------------------------------------------------------------------------------------


def finalize(world: World, **options: Any) -> Document:
    """Returns the response to the finalize request that Metacontroller would send now.

    `options` are arguments of `builders.request`.
    """
    return world.hook.finalize(world.request(finalizing=True, **options))


def test_tapp_is_finalized_after_its_pods_are_gone() -> None:
    world = settled(replicas=2)
    answer = finalize(world)
    assert answer["children"] == []
    assert answer["finalized"] is False
    world.pods = {name: terminating(pod) for name, pod in world.pods.items()}
    assert finalize(world)["finalized"] is False
    world.pods = {}
    answer = finalize(world)
    assert answer["finalized"] is True
    assert answer["children"] == []
    assert condition(answer, "Ready")["reason"] == "Deleting"


def _status(world: World) -> Document:
    status = {**world.parent["status"]}
    del status["observedGeneration"]
    return status


def test_claims_stay_by_default_when_the_tapp_is_deleted() -> None:
    world = settled(replicas=2, volumeClaimTemplates=DATA)
    assert claim_names(finalize(world)) == ["data-web-0", "data-web-1"]
    world.pods = {}
    answer = finalize(world)
    assert claim_names(answer) == ["data-web-0", "data-web-1"]
    assert answer["finalized"] is True


def test_when_deleted_delete_deletes_claims_after_the_pods() -> None:
    world = settled(replicas=2, volumeClaimTemplates=DATA, **retention_policy(whenDeleted="Delete"))
    answer = finalize(world)
    assert desired(answer, "Pod") == {}
    assert claim_names(answer) == ["data-web-0", "data-web-1"]
    world.pods = {}
    answer = finalize(world)
    assert claim_names(answer) == []
    assert not answer["finalized"]
    world.claims = {}
    assert finalize(world)["finalized"] is True


@pytest.mark.parametrize("finalizer", ["orphan", "foregroundDeletion"])
@pytest.mark.parametrize("when_deleted", ["Retain", "Delete"])
def test_finalize_keeps_all_children_if_the_garbage_collector_deletes_or_orphans_them(
    finalizer: str, when_deleted: str
) -> None:
    world = settled(
        replicas=2, volumeClaimTemplates=DATA, **retention_policy(whenDeleted=when_deleted)
    )
    world.parent["metadata"]["finalizers"].append(finalizer)
    answer = finalize(world)
    assert answer["finalized"] is True
    assert sorted(desired(answer, "Pod")) == ["web-0", "web-1"]
    assert len(claim_names(answer)) == 2


@pytest.mark.parametrize("when_deleted", ["Retain", "Delete"])
def test_finalize_without_a_deletion_changes_nothing(when_deleted: str) -> None:
    """Finalizes a TApp that is not being deleted: nothing is written, and the response is
    `finalized`.

    Metacontroller also finalizes a TApp that its selector no longer matches.
    """
    world = settled(
        replicas=2, volumeClaimTemplates=DATA, **retention_policy(whenDeleted=when_deleted)
    )
    request = {**world.request(), "finalizing": True}
    answer = world.hook.finalize(request)
    assert answer["finalized"] is True
    assert answer["status"] == _status(world)
    assert sorted(desired(answer, "Pod")) == ["web-0", "web-1"]
    assert claim_names(answer) == ["data-web-0", "data-web-1"]
    assert writes(request, answer) == []


@pytest.mark.parametrize(
    "spec",
    [
        pytest.param(None, id="null"),
        pytest.param({}, id="empty"),
        pytest.param([], id="list"),
        pytest.param("spec", id="string"),
        pytest.param({"replicas": "many", "template": 5, "templates": []}, id="wrong types"),
        pytest.param({"updateStrategy": {"maxUnavailable": {}}}, id="invalid budget"),
        pytest.param(
            {"persistentVolumeClaimRetentionPolicy": {"whenDeleted": "Perhaps"}},
            id="invalid policy",
        ),
    ],
)
def test_finalize_works_with_an_invalid_spec(spec: Any) -> None:
    world = settled(replicas=2, volumeClaimTemplates=DATA)
    world.parent = {**world.parent, "spec": spec}
    request = world.request(finalizing=True)
    answer = world.hook.answer("/finalize", request)
    assert desired(answer, "Pod") == {}
    assert len(claim_names(answer)) == 2
    assert world.hook.post("/customize", request).status_code == 200


def test_retention_policy_applies_although_the_rest_of_the_spec_is_invalid() -> None:
    world = settled(replicas=1, volumeClaimTemplates=DATA)
    spec = {"replicas": "many", **retention_policy(whenDeleted="Delete")}
    world.parent = {**world.parent, "spec": spec}
    world.pods = {}
    assert claim_names(world.hook.answer("/finalize", world.request(finalizing=True))) == []


@pytest.mark.parametrize("version", [1, 2])
def test_finalize_supports_both_protocol_versions(version: int) -> None:
    world = settled(replicas=2)
    assert finalize(world, version=version)["finalized"] is False


# --- customize ------------------------------------------------------------------------------------


def customize(parent: Any) -> Any:
    """Returns the response to a customize request for this TApp."""
    return Hook().answer("/customize", {"controller": {}, "parent": parent})


@pytest.mark.parametrize(
    "spec",
    [{"volumeClaimTemplates": DATA}, {"updateStrategy": {"partition": 1}}],
    ids=["claim templates", "partition"],
)
def test_namespace_is_requested_if_claims_may_be_created(spec: Document) -> None:
    """The customize hook asks for the Namespace if the spec has claim templates or a partition.

    With a partition, a new kept instance may need a claim of an older revision.
    """
    assert customize(tapp(**spec)) == {
        "relatedResources": [
            {"apiVersion": "v1", "resource": "namespaces", "names": [builders.NAMESPACE]}
        ]
    }


def test_nothing_is_requested_without_claims_and_without_a_partition() -> None:
    assert customize(tapp()) == {"relatedResources": []}
    for odd in ({"partition": 0}, {"partition": None}, {}, None, [], 7):
        assert customize(tapp(updateStrategy=odd)) == {"relatedResources": []}
