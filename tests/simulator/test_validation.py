"""Tests which updates of pods and claims the simulated API server accepts."""

from __future__ import annotations

from typing import Any

import pytest

from simulator.api.store import ConflictError, ForbiddenError, InvalidError, NotFoundError
from simulator.objects.kinds import POD
from simulator.objects.objects import Object
from simulator.world import World
from tests.builders import copied, storage_class
from tests.simulator.fake_hook import claim, make_world, pod
from tests.simulator.invalid_objects import IMPOSSIBLE

BASE = pod(
    "p",
    tolerations=[{"key": "gpu", "operator": "Exists"}],
    initContainers=[{"name": "init", "image": "init:1"}],
)
Path = tuple[str | int, ...]
SPEC, META = ("spec",), ("metadata",)
MAIN: Path = ("spec", "containers", 0)
TOLERATIONS = ("spec", "tolerations")
APPARMOR = "container.apparmor.security.beta.kubernetes.io/main"
OWNERS = [{"apiVersion": "v1", "kind": "X", "name": n, "uid": n, "controller": True} for n in "ab"]

LEGAL: dict[str, tuple[Path, Any]] = {
    "image": (MAIN, {"image": "web:2"}),
    "init-image": ((*SPEC, "initContainers", 0), {"image": "init:2"}),
    "labels": (META, {"labels": {"a": "b"}}),
    "annotations": (META, {"annotations": {"a": "b"}}),
    "more-tolerations": (TOLERATIONS, [{"key": "x"}]),
    "toleration-seconds": ((*TOLERATIONS, 1), {"tolerationSeconds": 5}),
    "toleration-without-end": ((*TOLERATIONS, 1), {"tolerationSeconds": None}),
    "default-tolerations-left-out": (SPEC, {"tolerations": BASE["spec"]["tolerations"]}),
    "other-spelling": (SPEC, {"hostNetwork": False, "nodeSelector": {}}),
    "status-is-ignored": ((), {"status": {"phase": "Failed"}}),
}
"""Where a pod is edited, and what it gets there."""

ILLEGAL: dict[str, tuple[Path, Any, str]] = {
    "env": (MAIN, {"env": [{"name": "A", "value": "1"}]}, "spec.containers[0].env"),
    "add-container": (MAIN[:2], [{"name": "x", "image": "x"}], "spec.containers"),
    "rename-container": (MAIN, {"name": "x"}, "spec.containers[0].name"),
    "empty-image": (MAIN, {"image": ""}, "spec.containers[0].image"),
    "blank-around-image": (MAIN, {"image": " web:2"}, "spec.containers[0].image"),
    "resources": (
        MAIN, {"resources": {"limits": {"cpu": "1"}}}, "spec.containers[0].resources.limits"
    ),
    "lost-toleration": (SPEC, {"tolerations": []}, "spec.tolerations[0]"),
    "toleration-key": ((*TOLERATIONS, 0), {"key": "x"}, "spec.tolerations[0]"),
    "toleration-seconds-of-any-effect": (
        (*TOLERATIONS, 0), {"tolerationSeconds": 5}, "spec.tolerations[0].effect"
    ),
    "node-selector": (SPEC, {"nodeSelector": {"a": "b"}}, "spec.nodeSelector"),
    "grace-period": (
        SPEC, {"terminationGracePeriodSeconds": 5}, "spec.terminationGracePeriodSeconds"
    ),
    "volumes": ((*SPEC, "volumes"), [{"name": "v", "emptyDir": {}}], "spec.volumes"),
    "apparmor": (META, {"annotations": {APPARMOR: "x"}}, f"metadata.annotations[{APPARMOR}]"),
    "bad-label": (META, {"labels": {"a": "b c"}}, "metadata.labels"),
    "two-controllers": (META, {"ownerReferences": OWNERS}, "metadata.ownerReferences"),
}  # fmt: skip


def _edited(path: Path, change: Any) -> tuple[World, Object, Object]:
    world = make_world(nodes=0)
    stored = world.apply(BASE)
    edited = copied(stored)
    place: Any = edited
    for key in path:
        place = place[key]
    if isinstance(change, list):
        place += change
    else:
        place.update(change)
        for key in [key for key, value in change.items() if value is None]:
            del place[key]
    return world, stored, edited


@pytest.mark.parametrize("name", LEGAL)
def test_legal_update_is_accepted_without_its_status(name: str) -> None:
    world, _, edited = _edited(*LEGAL[name])
    assert world.cluster.update(POD, edited)["status"]["phase"] == "Pending"


@pytest.mark.parametrize("name", ILLEGAL)
def test_illegal_update_is_refused_with_its_field(name: str) -> None:
    path, change, field = ILLEGAL[name]
    world, stored, edited = _edited(path, change)
    with pytest.raises(InvalidError) as refusal:
        world.cluster.update(POD, edited)
    assert refusal.value.path == field
    assert refusal.value.code == 422
    assert world.get("Pod", "p") is stored


def test_generation_grows_only_with_changes_of_the_spec() -> None:
    world, stored, edited = _edited(*LEGAL["labels"])
    labelled = world.cluster.update(POD, edited)
    assert labelled["metadata"]["generation"] == stored["metadata"]["generation"] == 1
    assert world.cluster.update(POD, labelled) is labelled
    containers = [{**labelled["spec"]["containers"][0], "image": "web:2"}]
    spec = {**labelled["spec"], "containers": containers}
    assert world.cluster.update(POD, {**labelled, "spec": spec})["metadata"]["generation"] == 2


def test_stale_update_is_a_conflict_and_one_of_a_deleted_object_is_not_found() -> None:
    world, stored, edited = _edited(*LEGAL["image"])
    world.cluster.update(POD, edited)
    with pytest.raises(ConflictError):
        world.cluster.update(POD, stored)
    world.delete("Pod", "p")
    with pytest.raises(NotFoundError):
        world.cluster.update(POD, stored)


@pytest.mark.parametrize("name", IMPOSSIBLE)
def test_impossible_objects_are_refused(name: str) -> None:
    manifest, path = IMPOSSIBLE[name]
    with pytest.raises(InvalidError) as refusal:
        make_world().apply(manifest)
    assert refusal.value.path == path


_CODES = {"operator": "In", "values": [1]}


@pytest.mark.parametrize(
    ("policy", "rules", "place"),
    [
        ("never", [], "restartPolicy"),
        (None, [{"action": "Restart", "exitCodes": _CODES}], "restartPolicy"),
        ("Never", [{"action": "Stop", "exitCodes": _CODES}], "restartPolicyRules[0].action"),
        ("Never", [{"action": "Restart"}], "restartPolicyRules[0].exitCodes"),
        (
            "Never",
            [{"action": "Restart", "exitCodes": {"operator": "Is"}}],
            "restartPolicyRules[0].exitCodes.operator",
        ),
    ],
    ids=["lower case", "rules without a policy", "unknown action", "no exit codes", "no values"],
)
@pytest.mark.parametrize("field", ["containers", "initContainers"])
def test_invalid_restart_policies_and_rules_are_refused(
    field: str, policy: str | None, rules: list[Object], place: str
) -> None:
    """Creates pods with invalid policies and rules: each error has the path that the API server
    names.
    """
    manifest = pod("p", initContainers=[{"name": "i", "image": "x"}])
    manifest["spec"][field][0] |= {"restartPolicyRules": rules}
    manifest["spec"][field][0] |= {} if policy is None else {"restartPolicy": policy}
    with pytest.raises(InvalidError) as refusal:
        make_world().apply(manifest)
    assert refusal.value.path == f"spec.{field}[0].{place}"


def test_only_the_request_of_a_bound_claim_can_change() -> None:
    world = world_with_claim(grows=True)
    grow(world, "2Gi")
    for change in (
        {"accessModes": ["ReadWriteMany"]},
        {"resources": {"limits": {"storage": "9Gi"}}},
    ):
        with pytest.raises(InvalidError, match="spec is immutable after creation"):
            world.patch("PersistentVolumeClaim", "c", {"spec": change})


def test_request_of_a_claim_cannot_be_smaller_than_its_volume() -> None:
    """A larger request can be reduced again until the volume has grown, but not below the volume's
    size.
    """
    world = world_with_claim(grows=True)
    grow(world, "3Gi")
    grow(world, "2Gi")
    with pytest.raises(InvalidError, match=r"field can not be less than status\.capacity"):
        grow(world, "1Gi")


@pytest.mark.parametrize(("default", "grows"), [(False, True), (True, False), (True, None)])
def test_claim_grows_only_if_its_storage_class_allows_it(default: bool, grows: bool | None) -> None:
    """Grows a claim whose class forbids it, or which has no class: admission refuses the update.

    Admission checks the class that the claim names, or the default at its creation.
    """
    world = world_with_claim(grows=grows, default=default)
    with pytest.raises(ForbiddenError, match="only dynamically provisioned pvc can be resized"):
        grow(world, "2Gi")


def test_unbound_claim_cannot_grow() -> None:
    world = make_world()
    world.apply(storage_class(default=True))
    world.apply(claim("c"))
    with pytest.raises(InvalidError, match="spec is immutable after creation"):
        grow(world, "2Gi")


def test_volume_grows_as_far_as_its_driver_supports() -> None:
    """Grows a claim up to and beyond the size that its driver supports.

    Beyond that size, the claim's status reports ControllerResizeInfeasible.
    """
    world = world_with_claim(grows=True)
    grow(world, "2Gi")
    world.settle()
    status = world.get("PersistentVolumeClaim", "c")["status"]
    assert status["capacity"] == {"storage": "2Gi"}
    world.claim_controller.largest_volume = "4Gi"
    grow(world, "5Gi")
    world.settle()
    status = world.get("PersistentVolumeClaim", "c")["status"]
    assert status["capacity"] == {"storage": "2Gi"}
    assert status["allocatedResourceStatuses"] == {"storage": "ControllerResizeInfeasible"}


def test_class_of_a_volume_cannot_be_removed_from_its_claim() -> None:
    """Removes the VolumeAttributesClass before and after the volume has it.

    The messages are those of the real API server (tests/e2e/test_volume_attributes.py).
    """
    world = world_with_claim(grows=True)
    world.claim_controller.infeasible_classes.add("typo")
    set_class(world, "typo")
    modifying = world.get("PersistentVolumeClaim", "c")["status"]["modifyVolumeStatus"]
    assert modifying == {"targetVolumeAttributesClassName": "typo", "status": "Infeasible"}
    set_class(world, None)
    set_class(world, "gold")
    status = world.get("PersistentVolumeClaim", "c")["status"]
    assert status["currentVolumeAttributesClassName"] == "gold"
    for value, word in ((None, "nil"), ("", "empty string")):
        with pytest.raises(InvalidError, match=f"update to {word} is forbidden when status"):
            set_class(world, value)


def world_with_claim(*, grows: bool | None, default: bool = True) -> World:
    """Returns a world with a StorageClass and a bound claim `c`.

    `grows` is the class's `allowVolumeExpansion`. The claim has this class if `default` is True,
    and otherwise no class.
    """
    world = make_world()
    world.apply(storage_class(grows=grows, default=default))
    world.apply(claim("c"))
    world.settle()
    return world


def grow(world: World, size: str) -> None:
    """Requests another size for the claim `c`."""
    change = {"spec": {"resources": {"requests": {"storage": size}}}}
    world.patch("PersistentVolumeClaim", "c", change)


def set_class(world: World, name: str | None) -> None:
    """Requests another VolumeAttributesClass for the claim `c`; None removes it."""
    world.patch("PersistentVolumeClaim", "c", {"spec": {"volumeAttributesClassName": name}})
    world.settle()
