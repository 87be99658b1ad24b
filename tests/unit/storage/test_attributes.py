"""Tests claims that follow the VolumeAttributesClass of their claim template."""

from copy import deepcopy
from typing import Any

import pytest

from tests.builders import Document, bound, tapp, terminating
from tests.hook_calls import bare
from tests.unit.storage.growth import STANDARD, template_of_size, with_larger_template
from tests.unit.world import World, condition

CLASS = "volumeAttributesClassName"


def template_of_class(name: str | None, size: str = "1Gi") -> Document:
    """Returns a claim template with this VolumeAttributesClass; None leaves the field out."""
    document = template_of_size(size)
    if name is not None:
        document["spec"][CLASS] = name
    return document


def tapp_of_class(name: str | None = None, replicas: int = 2, *, history: bool = False) -> World:
    """Returns a TApp with bound claims of this class, whose volumes have the class, too."""
    parent = tapp(replicas=replicas, volumeClaimTemplates=[template_of_class(name)])
    return finished(World(parent, classes=STANDARD, history=history).settle()).settle()


def finished(world: World, **status: Any) -> World:
    """Plays the storage driver: each volume gets the class that its claim requests.

    `status` has further fields of each claim's status.
    """
    for name, claim in world.claims.items():
        current = {"currentVolumeAttributesClassName": claim["spec"].get(CLASS)}
        world.claims[name] = bound(claim, **{k: v for k, v in current.items() if v}, **status)
    return world


def with_class(world: World, name: str | None) -> World:
    """Changes the class in the claim template, and returns the world."""
    return world.change(volumeClaimTemplates=[template_of_class(name)])


def classes(world: World) -> list[str | None]:
    """Returns the requested class of each claim, sorted by the name of the claim."""
    return [world.claims[name]["spec"].get(CLASS) for name in sorted(world.claims)]


def message(world: World, type: str) -> str:
    """Runs a sync; returns reason and message of a condition, or "" without the condition."""
    found = condition(world.sync(), type)
    return "" if found is None else f"{found['reason']}: {found['message']}"


# --- claims that get another class ----------------------------------------------------------------


@pytest.mark.parametrize("replicas", [1, 2, 3, 12])
@pytest.mark.parametrize("before", [None, "silver"])
def test_new_class_in_the_claim_template_reaches_all_claims_and_no_pod(
    before: str | None, replicas: int
) -> None:
    world = tapp_of_class(before, replicas)
    pods = world.uids()
    with_class(world, "gold").sync()
    names = [f"update PersistentVolumeClaim/data-web-{id}" for id in range(replicas)]
    assert sorted(world.writes) == sorted(names)
    assert classes(world) == ["gold"] * replicas
    finished(world).settle()
    assert world.writes == []
    assert world.uids() == pods


def test_changing_the_class_changes_only_the_class() -> None:
    world = tapp_of_class("silver", 1)
    before = world.claims["data-web-0"]
    with_class(world, "gold").sync()
    after = deepcopy(world.claims["data-web-0"])
    after["spec"][CLASS] = "silver"
    after["metadata"]["resourceVersion"] = before["metadata"]["resourceVersion"]
    assert bare(after) == bare(before)


def test_claim_grows_and_gets_another_class_in_one_update() -> None:
    world = tapp_of_class("silver", 1)
    world.change(volumeClaimTemplates=[template_of_class("gold", "2Gi")]).sync()
    assert world.writes == ["update PersistentVolumeClaim/data-web-0"]
    assert classes(world) == ["gold"]
    assert world.claims["data-web-0"]["spec"]["resources"]["requests"]["storage"] == "2Gi"


def test_growing_claim_keeps_its_class() -> None:
    world = tapp_of_class("silver", 1)
    world.change(volumeClaimTemplates=[template_of_class("silver", "2Gi")]).sync()
    assert classes(world) == ["silver"]


def test_plan_lists_claims_with_their_new_class() -> None:
    world = with_class(tapp_of_class("silver"), "gold")
    plan = world.hook.answer("/plan", world.request())
    assert plan["claims"]["modify"] == {"data-web-0": "gold", "data-web-1": "gold"}
    unchanged = tapp_of_class("silver")
    plan = unchanged.hook.answer("/plan", unchanged.request())
    assert "modify" not in plan["claims"]


def test_new_claim_has_the_class_from_its_creation() -> None:
    world = tapp_of_class("silver", 1)
    world.change(replicas=2).settle()
    assert classes(world) == ["silver", "silver"]


def test_class_with_a_placeholder_is_that_of_the_instance() -> None:
    document = template_of_class("$(tapp.values.speed)")
    world = World(
        tapp(replicas=2, values={"0": {"speed": "a"}, "1": {"speed": "b"}},
             volumeClaimTemplates=[document]),
        classes=STANDARD,
    ).settle()  # fmt: skip
    finished(world).settle()
    assert classes(world) == ["a", "b"]
    world.change(values={"0": {"speed": "a"}, "1": {"speed": "c"}}).sync()
    assert world.writes == ["update PersistentVolumeClaim/data-web-1"]
    assert classes(world) == ["a", "c"]


# --- claims that keep their class -----------------------------------------------------------------


@pytest.mark.parametrize(
    ("phase", "deleted"),
    [("Pending", False), ("Lost", False), ("Bound", True)],
    ids=["not bound yet", "volume lost", "being deleted"],
)
def test_claim_that_cannot_be_changed_keeps_its_class(phase: str, deleted: bool) -> None:
    world = tapp_of_class("silver", 1)
    claim = world.claims["data-web-0"]
    claim["status"]["phase"] = phase
    world.claims["data-web-0"] = terminating(claim) if deleted else claim
    with_class(world, "gold").sync()
    assert classes(world) == ["silver"]


def test_claims_keep_their_class_if_metacontroller_does_not_update_claims() -> None:
    world = tapp_of_class("silver", 1)
    world.classes = None
    with_class(world, "gold").sync()
    assert classes(world) == ["silver"]


def test_claim_of_a_removed_instance_gets_its_class_when_the_instance_comes_back() -> None:
    world = tapp_of_class("silver", 2).change(replicas=1).settle()
    with_class(world, "gold").settle()
    assert classes(world) == ["gold", "silver"]
    world.change(replicas=2).settle()
    assert classes(world) == ["gold", "gold"]


def test_claim_of_a_killed_instance_gets_the_class() -> None:
    world = tapp_of_class("silver", 2).change(statuses={"0": "Killed"}).settle()
    with_class(world, "gold").settle()
    assert classes(world) == ["gold", "gold"]


def test_claims_of_kept_instances_keep_the_class_of_their_revision() -> None:
    """A partition of 2 keeps instances 1 and 2 at the old revision; without it they follow."""
    world = tapp_of_class("silver", 3, history=True)
    newer = {**world.parent["spec"]["template"]}
    newer["metadata"] = {**newer.get("metadata", {}), "labels": {"app": "web", "build": "2"}}
    world.change(
        template=newer,
        volumeClaimTemplates=[template_of_class("gold")],
        updateStrategy={"partition": 2},
    )
    finished(world.settle()).settle()
    assert classes(world) == ["gold", "silver", "silver"]
    finished(world.change(updateStrategy={}).settle()).settle()
    assert classes(world) == ["gold", "gold", "gold"]


# --- classes that are removed ---------------------------------------------------------------------


def test_class_is_removed_while_no_volume_has_it() -> None:
    """An author takes back the first class of a claim, which the storage driver refuses."""
    world = with_class(tapp_of_class(None, 1), "typo")
    world.sync()
    assert classes(world) == ["typo"]
    with_class(world, None).sync()
    assert classes(world) == [None]
    world.sync()
    assert world.writes == []


def test_class_of_a_volume_stays_if_the_claim_template_names_none() -> None:
    """The API server would refuse to remove the class, so nothing is tried."""
    world = with_class(tapp_of_class("silver"), None)
    world.sync()
    assert world.writes == []
    assert classes(world) == ["silver", "silver"]


def test_class_that_a_user_has_set_stays_if_the_claim_template_names_none() -> None:
    world = tapp_of_class(None, 1)
    world.claims["data-web-0"]["spec"][CLASS] = "by-hand"
    world.sync()
    assert world.writes == []
    with_larger_template(world).sync()
    assert classes(world) == ["by-hand"]


# --- conditions -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("modifying", "says"),
    [
        (None, "no storage driver has reported that it changes the volumes"),
        ("Pending", "check that this VolumeAttributesClass exists"),
        ("InProgress", "the storage driver is changing the volumes"),
        ("FromTheFuture", "no storage driver has reported that it changes the volumes"),
    ],
    ids=["nothing reported", "pending", "in progress", "unknown word"],
)
def test_condition_reports_a_class_that_volumes_do_not_have_yet(
    modifying: str | None, says: str
) -> None:
    world = with_class(tapp_of_class("silver"), "gold")
    world.sync()
    if modifying is not None:
        for claim in world.claims.values():
            target = {"targetVolumeAttributesClassName": "gold", "status": modifying}
            claim["status"]["modifyVolumeStatus"] = target
    found = message(world, "ClaimsBeingModified")
    assert found.startswith(
        "ModifyingVolumes: claims data-web-N (N: 0, 1) request VolumeAttributesClass 'gold', and "
        "their volumes do not have it yet: "
    )
    assert says in found
    degraded = condition(world.parent["status"], "Degraded")
    assert degraded["status"] == "False"
    assert message(finished(world), "ClaimsBeingModified") == ""


def test_condition_reports_a_class_that_the_storage_driver_refuses() -> None:
    world = with_class(tapp_of_class("silver"), "gold")
    world.sync()
    target = {"targetVolumeAttributesClassName": "gold", "status": "Infeasible"}
    world.claims["data-web-1"]["status"]["modifyVolumeStatus"] = target
    found = message(world, "ClaimsNotModified")
    assert found == (
        "Infeasible: claim data-web-1 requests VolumeAttributesClass 'gold': the storage driver "
        "has refused this class; name the class that the volumes have now, or another one, in the "
        "claim template; see the driver's messages with "
        "`kubectl describe pvc data-web-1 -n shop`"
    )
    assert condition(world.parent["status"], "Degraded")["status"] == "True"
    with_class(world, "silver").sync()
    assert classes(world) == ["silver", "silver"]
    assert message(finished(world), "ClaimsNotModified") == ""


def test_refusal_of_an_earlier_class_is_not_reported_about_the_new_one() -> None:
    world = with_class(tapp_of_class("silver", 1), "gold")
    world.sync()
    target = {"targetVolumeAttributesClassName": "typo", "status": "Infeasible"}
    world.claims["data-web-0"]["status"]["modifyVolumeStatus"] = target
    assert message(world, "ClaimsNotModified") == ""
    assert "no storage driver has reported" in message(world, "ClaimsBeingModified")


def test_unreadable_status_of_a_claim_changes_nothing() -> None:
    world = with_class(tapp_of_class("silver", 1), "gold")
    world.claims["data-web-0"]["status"]["modifyVolumeStatus"] = "broken"
    world.sync()
    assert classes(world) == ["silver"]


def test_new_claim_with_an_invalid_class_name_is_not_requested() -> None:
    """Scales up with a class name that the API server would refuse: CreationBlocked says so."""
    world = with_class(tapp_of_class("silver", 1), "Gold!").change(replicas=2)
    found = message(world, "CreationBlocked")
    assert "claim template 'data'" in found
    assert "volumeAttributesClassName" in found
    assert "data-web-1" not in world.claims


def test_new_claim_may_have_an_empty_class_name() -> None:
    world = tapp_of_class("", 1)
    assert classes(world) == [""]
    world.sync()
    assert world.writes == []
