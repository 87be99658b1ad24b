"""A larger claim template on the embedded cluster: what reaches the claims, and what is said."""

from typing import Any

from tests.builders import claim_template, storage_class
from tests.scenarios.apps import stored
from tests.scenarios.life import Life, each

CLASS = storage_class(default=True)


def asked(life: Life) -> list[str]:
    """Requests of the claims, by their names."""
    claims = life.world.list("PersistentVolumeClaim")
    return [claim["spec"]["resources"]["requests"]["storage"] for claim in claims]


def capacity(life: Life) -> list[str]:
    """Sizes of their volumes."""
    claims = life.world.list("PersistentVolumeClaim")
    return [claim["status"]["capacity"]["storage"] for claim in claims]


def larger(size: str = "2Gi") -> dict[str, Any]:
    """The edit."""
    return {"volumeClaimTemplates": [claim_template(storage=size)]}


def test_volumes_grow_under_running_pods() -> None:
    life = Life().apply(CLASS, stored())
    born, claims, names = life.uids(), life.claims(), [f"data-web-{id}" for id in range(3)]
    life.writes()
    life.patch(**larger())
    assert sorted(life.writes()) == each("update Claim", *names)
    assert (asked(life), capacity(life)) == (["2Gi"] * 3, ["2Gi"] * 3)
    assert (life.uids(), life.claims(), life.statuses) == (born, claims, "Running Running Running")
    assert life.complete
    assert life.idle().writes() == []


def test_where_the_class_forbids_it_a_condition_says_so_until_it_does_not() -> None:
    life = Life().apply(storage_class(grows=False, default=True), stored())
    life.writes()
    life.patch(**larger())
    assert life.idle().writes() == []
    assert asked(life) == ["1Gi"] * 3
    assert "StorageClass 'standard' does not allow it" in life.condition("ClaimsNotGrown")
    assert life.condition("Ready").startswith("False ClaimsNotGrown")
    assert life.condition("Degraded").startswith("True ClaimsNotGrown")
    life.apply(CLASS)  # a related object: its change alone is enough
    assert asked(life) == ["2Gi"] * 3
    assert life.condition("ClaimsNotGrown") == ""


def test_a_quota_refuses_one_claim_and_all_else_goes_on() -> None:
    """Metacontroller goes on with the other children, writes the status, and tries again."""
    life = Life().apply(CLASS, stored())
    life.world.store.fail(1, verb="update", kind="PersistentVolumeClaim", code=403)
    life.begin_patch(replicas=4, **larger())
    life.until(lambda: 3 in life.pods)
    assert sorted(asked(life)) == ["1Gi", "2Gi", "2Gi", "2Gi"]
    life.settle(allow_errors=True)
    assert asked(life) == ["2Gi"] * 4


def test_a_claim_that_waits_for_its_volume_grows_when_it_has_it() -> None:
    life = Life()
    life.world.claim_controller.bind_seconds = 30.0
    life.begin(CLASS, stored())
    life.world.run(5)
    life.begin_patch(**larger())
    life.world.run(5)
    assert asked(life) == ["1Gi"] * 3
    life.settle()
    assert (asked(life), life.statuses) == (["2Gi"] * 3, "Running Running Running")


def test_what_the_driver_cannot_do_is_said_and_never_taken_back_here() -> None:
    life = Life().apply(CLASS, stored())
    life.world.claim_controller.largest_volume = "1Gi"
    life.patch(**larger())
    assert life.condition("ClaimsNotGrown").startswith("True Infeasible: ")
    life.patch(**larger("1Gi"))
    assert asked(life) == ["2Gi"] * 3


def test_a_tapp_with_the_name_of_its_namespace_keeps_its_data() -> None:
    """Both owners of a claim have one name; the garbage collector goes by them."""
    life = Life()
    life.world.namespace("web")
    tapp = stored()
    tapp["metadata"]["namespace"] = "web"
    for document in (CLASS, tapp):
        life.world.apply(document)
    life.world.settle()
    life.world.patch("TApp", "web", {"spec": larger()}, namespace="web")
    life.world.settle()
    assert asked(life) == ["2Gi"] * 3
    for claim in life.world.list("PersistentVolumeClaim"):
        kinds = [owner["kind"] for owner in claim["metadata"]["ownerReferences"]]
        assert sorted(kinds) == ["Namespace", "TApp"]
    life.world.delete("TApp", "web", namespace="web")
    life.world.settle()
    assert asked(life) == ["2Gi"] * 3
