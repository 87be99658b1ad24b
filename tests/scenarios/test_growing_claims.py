"""Tests claims that grow with their template in the simulator, and the condition if they cannot."""

from typing import Any

from tests.builders import claim_template, storage_class
from tests.scenarios.apps import stored
from tests.scenarios.life import Life, each

CLASS = storage_class(default=True)


def requested_sizes(life: Life) -> list[str]:
    """Returns the requested sizes of all claims, sorted by the name of the claim."""
    claims = life.world.list("PersistentVolumeClaim")
    return [claim["spec"]["resources"]["requests"]["storage"] for claim in claims]


def capacity(life: Life) -> list[str]:
    """Returns the sizes of the volumes of all claims, sorted by the name of the claim."""
    claims = life.world.list("PersistentVolumeClaim")
    return [claim["status"]["capacity"]["storage"] for claim in claims]


def larger(size: str = "2Gi") -> dict[str, Any]:
    """Returns the field of a spec with which the claims get this size."""
    return {"volumeClaimTemplates": [claim_template(storage=size)]}


def test_volumes_grow_while_pods_run() -> None:
    life = Life().apply(CLASS, stored())
    born, claims, names = life.uids(), life.claims(), [f"data-web-{id}" for id in range(3)]
    life.writes()
    life.patch(**larger())
    assert sorted(life.writes()) == each("update Claim", *names)
    assert requested_sizes(life) == ["2Gi"] * 3
    assert capacity(life) == ["2Gi"] * 3
    assert life.uids() == born
    assert life.claims() == claims
    assert life.statuses == "Running Running Running"
    assert life.complete
    assert life.idle().writes() == []


def test_condition_says_that_the_storage_class_forbids_growing_until_it_is_changed() -> None:
    life = Life().apply(storage_class(grows=False, default=True), stored())
    life.writes()
    life.patch(**larger())
    assert life.idle().writes() == []
    assert requested_sizes(life) == ["1Gi"] * 3
    assert "StorageClass 'standard' does not let volumes grow" in life.condition("ClaimsNotGrown")
    assert life.condition("Ready").startswith("False ClaimsNotGrown")
    assert life.condition("Degraded").startswith("True ClaimsNotGrown")
    life.apply(CLASS)  # its change triggers a sync
    assert requested_sizes(life) == ["2Gi"] * 3
    assert life.condition("ClaimsNotGrown") == ""


def test_refused_write_of_one_claim_does_not_block_other_children() -> None:
    """The API server refuses the update of one claim; the other claims grow, and a new pod is
    created.

    Metacontroller continues with the other children, writes the status, and tries again.
    """
    life = Life().apply(CLASS, stored())
    life.world.store.fail(1, verb="update", kind="PersistentVolumeClaim", code=403)
    life.begin_patch(replicas=4, **larger())
    life.until(lambda: 3 in life.pods)
    assert sorted(requested_sizes(life)) == ["1Gi", "2Gi", "2Gi", "2Gi"]
    life.settle(allow_errors=True)
    assert requested_sizes(life) == ["2Gi"] * 4


def test_pending_claim_grows_when_it_is_bound() -> None:
    life = Life()
    life.world.claim_controller.bind_seconds = 30.0
    life.begin(CLASS, stored())
    life.world.run(5)
    life.begin_patch(**larger())
    life.world.run(5)
    assert requested_sizes(life) == ["1Gi"] * 3
    life.settle()
    assert requested_sizes(life) == ["2Gi"] * 3
    assert life.statuses == "Running Running Running"


def test_condition_says_that_the_driver_cannot_grow_a_claim_and_no_claim_shrinks() -> None:
    life = Life().apply(CLASS, stored())
    life.world.claim_controller.largest_volume = "1Gi"
    life.patch(**larger())
    assert life.condition("ClaimsNotGrown").startswith("True Infeasible: ")
    life.patch(**larger("1Gi"))
    assert requested_sizes(life) == ["2Gi"] * 3


def test_claims_of_a_tapp_with_the_name_of_its_namespace_keep_both_owners() -> None:
    """The claims grow and survive the TApp, although its name is also that of its Namespace.

    Both are owners of the claims with the same name, and the garbage collector depends on both.
    """
    life = Life()
    life.world.namespace("web")
    tapp = stored()
    tapp["metadata"]["namespace"] = "web"
    for document in (CLASS, tapp):
        life.world.apply(document)
    life.world.settle()
    life.world.patch("TApp", "web", {"spec": larger()}, namespace="web")
    life.world.settle()
    assert requested_sizes(life) == ["2Gi"] * 3
    for claim in life.world.list("PersistentVolumeClaim"):
        kinds = [owner["kind"] for owner in claim["metadata"]["ownerReferences"]]
        assert sorted(kinds) == ["Namespace", "TApp"]
    life.world.delete("TApp", "web", namespace="web")
    life.world.settle()
    assert requested_sizes(life) == ["2Gi"] * 3
