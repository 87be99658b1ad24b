"""Claims: made with their pod, kept by default, deleted only by policy."""

from typing import Any

import pytest

from tests import builders
from tests.builders import Document, claim_template, tapp, template, terminating
from tests.invariants import writes
from tests.reading import desired
from tests.unit.world import Hook, World, condition, settled

DATA = [claim_template()]
NAMESPACE_OWNER = {
    "apiVersion": "v1",
    "kind": "Namespace",
    "name": builders.NAMESPACE,
    "uid": builders.NAMESPACE_UID,
}


def claims(answer: Document) -> list[str]:
    """Names of the claims of an answer."""
    return sorted(desired(answer, "PersistentVolumeClaim"))


def policy(**values: str) -> Document:
    """A retention policy."""
    return {"persistentVolumeClaimRetentionPolicy": values}


def test_a_claim_is_made_with_its_pod_and_the_namespace_as_second_owner() -> None:
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


def test_what_only_looks_empty_in_a_claim_stays() -> None:
    """`storageClassName: ""` asks for no class at all."""
    template = claim_template()
    template["spec"]["storageClassName"] = ""
    answer = World(tapp(volumeClaimTemplates=[template])).sync()
    claim = desired(answer, "PersistentVolumeClaim")["data-web-0"]
    assert claim["spec"]["storageClassName"] == ""


def test_without_the_namespace_no_claim_is_made_and_the_call_fails() -> None:
    world = World(tapp(volumeClaimTemplates=DATA))
    response = world.hook.post("/sync", world.request(namespace=False))
    assert response.status_code == 503
    assert "Namespace" in response.json["error"]


def test_without_the_namespace_what_exists_goes_on() -> None:
    world = settled(replicas=2, volumeClaimTemplates=DATA)
    answer = world.hook.sync(world.request(namespace=False))
    assert claims(answer) == ["data-web-0", "data-web-1"]


def test_a_namespace_without_a_uid_protects_nothing() -> None:
    world = World(tapp(volumeClaimTemplates=DATA))
    request = world.request()
    del request["related"]["Namespace.v1"][builders.NAMESPACE]["metadata"]["uid"]
    assert world.hook.post("/sync", request).status_code == 503


def test_another_namespace_is_not_the_owner() -> None:
    world = World(tapp(volumeClaimTemplates=DATA))
    request = world.request()
    request["related"]["Namespace.v1"][builders.NAMESPACE]["metadata"]["name"] = "other"
    assert world.hook.post("/sync", request).status_code == 503


def test_a_claim_that_exists_is_used_again_and_not_written() -> None:
    world = settled(replicas=1, volumeClaimTemplates=DATA)
    world.change(replicas=0).settle()
    before = world.claims
    world.change(replicas=1).settle()
    assert world.claims == before


@pytest.mark.parametrize(
    "edit",
    [
        pytest.param({"replicas": 0}, id="scaled to nothing"),
        pytest.param({"statuses": {"0": "Killed", "1": "Killed"}}, id="killed"),
        pytest.param({"volumeClaimTemplates": []}, id="the claim template left"),
        pytest.param({"volumeClaimTemplates": [claim_template("new")]}, id="it was renamed"),
        pytest.param({"defaultTemplateName": "typo"}, id="the template cannot be found"),
        pytest.param({"template": template(nodeSelector={"a": "b"})}, id="the pods are recreated"),
        pytest.param(policy(whenDeleted="Delete"), id="the policy is for the end only"),
    ],
)
def test_claims_stay_whatever_becomes_of_their_instances(edit: Document) -> None:
    world = settled(replicas=2, volumeClaimTemplates=DATA).change(**edit)
    for _ in range(3):
        assert {"data-web-0", "data-web-1"} <= set(claims(world.sync()))
        world.kubelet()


def test_when_scaled_delete_removes_the_claims_above_after_their_pods() -> None:
    spec = policy(whenScaled="Delete")
    world = settled(replicas=3, volumeClaimTemplates=DATA, **spec).change(replicas=1)
    assert len(claims(world.sync())) == 3  # the pods are still there
    assert len(claims(world.sync())) == 3  # they are on their way out
    world.kubelet()
    assert claims(world.sync()) == ["data-web-0"]


@pytest.mark.parametrize(
    "edit",
    [
        pytest.param({"statuses": {"0": "Killed"}}, id="killed"),
        pytest.param({"volumeClaimTemplates": []}, id="the claim template left"),
    ],
)
def test_when_scaled_delete_is_about_scaling_only(edit: Document) -> None:
    spec = policy(whenScaled="Delete")
    world = settled(replicas=1, volumeClaimTemplates=DATA, **spec).change(**edit)
    world.settle()
    assert sorted(world.claims) == ["data-web-0"]


@pytest.mark.parametrize("name", ["data-web-x", "data-web-01", "data-web-0-9", "other-web-9"])
def test_when_scaled_delete_spares_claims_that_are_no_instances(name: str) -> None:
    spec = policy(whenScaled="Delete")
    world = settled(replicas=1, volumeClaimTemplates=DATA, **spec)
    stranger = world.claims["data-web-0"]
    world.claims[name] = {**stranger, "metadata": {**stranger["metadata"], "name": name}}
    assert name in claims(world.sync())


def test_a_terminating_claim_blocks_the_creation_of_its_pod() -> None:
    world = settled(replicas=2, volumeClaimTemplates=DATA)
    world.claims["data-web-0"] = terminating(world.claims["data-web-0"])
    del world.pods["web-0"]
    assert world.decisions() == {0: "Absent/Blocked", 1: "Keep/UpToDate"}
    del world.claims["data-web-0"]
    assert world.decisions()[0] == "Create/NoPod"


def test_a_terminating_claim_leaves_the_running_pod_alone() -> None:
    world = settled(volumeClaimTemplates=DATA)
    world.claims["data-web-0"] = terminating(world.claims["data-web-0"])
    assert world.decisions() == {0: "Keep/UpToDate"}


# --- finalize -------------------------------------------------------------------------------------


def finalize(world: World, **options: Any) -> Document:
    """The answer to the finalize call that Metacontroller would make now."""
    return world.hook.finalize(world.request(finalizing=True, **options))


def test_the_pods_go_first_and_then_the_tapp() -> None:
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


def test_claims_are_kept_by_default() -> None:
    world = settled(replicas=2, volumeClaimTemplates=DATA)
    assert claims(finalize(world)) == ["data-web-0", "data-web-1"]
    world.pods = {}
    answer = finalize(world)
    assert claims(answer) == ["data-web-0", "data-web-1"]
    assert answer["finalized"] is True


def test_when_deleted_delete_removes_the_claims_after_the_pods() -> None:
    world = settled(replicas=2, volumeClaimTemplates=DATA, **policy(whenDeleted="Delete"))
    answer = finalize(world)
    assert desired(answer, "Pod") == {}
    assert claims(answer) == ["data-web-0", "data-web-1"]
    world.pods = {}
    answer = finalize(world)
    assert (claims(answer), answer["finalized"]) == ([], False)
    world.claims = {}
    assert finalize(world)["finalized"] is True


@pytest.mark.parametrize("finalizer", ["orphan", "foregroundDeletion"])
@pytest.mark.parametrize("when_deleted", ["Retain", "Delete"])
def test_a_deletion_that_belongs_to_the_garbage_collector_is_left_to_it(
    finalizer: str, when_deleted: str
) -> None:
    world = settled(replicas=2, volumeClaimTemplates=DATA, **policy(whenDeleted=when_deleted))
    world.parent["metadata"]["finalizers"].append(finalizer)
    answer = finalize(world)
    assert answer["finalized"] is True
    assert sorted(desired(answer, "Pod")) == ["web-0", "web-1"]
    assert len(claims(answer)) == 2


@pytest.mark.parametrize("when_deleted", ["Retain", "Delete"])
def test_a_tapp_that_is_not_deleted_is_handed_over_as_it_is(when_deleted: str) -> None:
    """Metacontroller finalizes also what its selector no longer matches: another one takes over."""
    world = settled(replicas=2, volumeClaimTemplates=DATA, **policy(whenDeleted=when_deleted))
    request = {**world.request(), "finalizing": True}
    answer = world.hook.finalize(request)
    assert answer["finalized"] is True
    assert answer["status"] == _status(world)
    assert sorted(desired(answer, "Pod")) == ["web-0", "web-1"]
    assert claims(answer) == ["data-web-0", "data-web-1"]
    assert writes(request, answer) == []


@pytest.mark.parametrize(
    "spec",
    [
        pytest.param(None, id="none"),
        pytest.param({}, id="empty"),
        pytest.param([], id="a list"),
        pytest.param("spec", id="a string"),
        pytest.param({"replicas": "many", "template": 5, "templates": []}, id="wrong types"),
        pytest.param({"updateStrategy": {"maxUnavailable": {}}}, id="a wrong budget"),
        pytest.param(
            {"persistentVolumeClaimRetentionPolicy": {"whenDeleted": "Perhaps"}}, id="a policy"
        ),
    ],
)
def test_finalize_never_needs_a_valid_spec(spec: Any) -> None:
    world = settled(replicas=2, volumeClaimTemplates=DATA)
    world.parent = {**world.parent, "spec": spec}
    request = world.request(finalizing=True)
    answer = world.hook.answer("/finalize", request)
    assert desired(answer, "Pod") == {}
    assert len(claims(answer)) == 2
    assert world.hook.post("/customize", request).status_code == 200


def test_a_policy_counts_although_the_rest_of_the_spec_makes_no_sense() -> None:
    world = settled(replicas=1, volumeClaimTemplates=DATA)
    spec = {"replicas": "many", **policy(whenDeleted="Delete")}
    world.parent = {**world.parent, "spec": spec}
    world.pods = {}
    assert claims(world.hook.answer("/finalize", world.request(finalizing=True))) == []


@pytest.mark.parametrize("version", [1, 2])
def test_finalize_understands_both_protocols(version: int) -> None:
    world = settled(replicas=2)
    assert finalize(world, version=version)["finalized"] is False


# --- customize ------------------------------------------------------------------------------------


def customize(parent: Any) -> Any:
    """The answer to a customize call."""
    return Hook().answer("/customize", {"controller": {}, "parent": parent})


@pytest.mark.parametrize(
    "spec",
    [{"volumeClaimTemplates": DATA}, {"updateStrategy": {"partition": 1}}],
    ids=["claim templates", "kept instances may have had some"],
)
def test_the_namespace_is_asked_for_where_claims_need_it(spec: Document) -> None:
    """Also where all claim templates have gone, and a new instance is kept that is to have one."""
    assert customize(tapp(**spec)) == {
        "relatedResources": [
            {"apiVersion": "v1", "resource": "namespaces", "names": [builders.NAMESPACE]}
        ]
    }


def test_nothing_is_asked_for_where_there_are_no_claims() -> None:
    assert customize(tapp()) == {"relatedResources": []}
    for odd in ({"partition": 0}, {"partition": None}, {}, None, [], 7):
        assert customize(tapp(updateStrategy=odd)) == {"relatedResources": []}
