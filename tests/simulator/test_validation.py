"""Updates of pods that the API server accepts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from simulator.api.store import ConflictError, ForbiddenError, InvalidError, NotFoundError
from simulator.objects.kinds import POD
from simulator.objects.objects import Object
from simulator.world import World
from tests.simulator.fake_hook import claim, make_world, pod

Change = Callable[[Object], Any]

BASE = pod(
    "p",
    tolerations=[{"key": "gpu", "operator": "Exists"}],
    initContainers=[{"name": "init", "image": "init:1"}],
)

LEGAL: dict[str, Change] = {
    "image": lambda p: p["spec"]["containers"][0].update(image="web:2"),
    "init-image": lambda p: p["spec"]["initContainers"][0].update(image="init:2"),
    "labels": lambda p: p["metadata"].update(labels={"a": "b"}),
    "annotations": lambda p: p["metadata"].update(annotations={"a": "b"}),
    "more-tolerations": lambda p: p["spec"]["tolerations"].append({"key": "x"}),
    "toleration-seconds": lambda p: p["spec"]["tolerations"][1].update(tolerationSeconds=5),
    "toleration-without-end": lambda p: p["spec"]["tolerations"][1].pop("tolerationSeconds"),
    "default-tolerations-left-out": lambda p: p["spec"].update(
        tolerations=BASE["spec"]["tolerations"]
    ),
    "other-spelling": lambda p: p["spec"].update(hostNetwork=False, nodeSelector={}),
    "status-is-ignored": lambda p: p.update(status={"phase": "Failed"}),
}

ILLEGAL: dict[str, tuple[Change, str]] = {
    "env": (
        lambda p: p["spec"]["containers"][0].update(env=[{"name": "A", "value": "1"}]),
        "spec.containers[0].env",
    ),
    "add-container": (
        lambda p: p["spec"]["containers"].append({"name": "x", "image": "x"}),
        "spec.containers",
    ),
    "rename-container": (
        lambda p: p["spec"]["containers"][0].update(name="x"),
        "spec.containers[0].name",
    ),
    "empty-image": (
        lambda p: p["spec"]["containers"][0].update(image=""),
        "spec.containers[0].image",
    ),
    "blank-around-image": (
        lambda p: p["spec"]["containers"][0].update(image=" web:2"),
        "spec.containers[0].image",
    ),
    "resources": (
        lambda p: p["spec"]["containers"][0].update(resources={"limits": {"cpu": "1"}}),
        "spec.containers[0].resources.limits",
    ),
    "lost-toleration": (
        lambda p: p["spec"]["tolerations"].pop(0),
        "spec.tolerations[0]",
    ),
    "toleration-key": (
        lambda p: p["spec"]["tolerations"][0].update(key="x"),
        "spec.tolerations[0]",
    ),
    "toleration-seconds-of-any-effect": (
        lambda p: p["spec"]["tolerations"][0].update(tolerationSeconds=5),
        "spec.tolerations[0].effect",
    ),
    "node-selector": (
        lambda p: p["spec"].update(nodeSelector={"a": "b"}),
        "spec.nodeSelector",
    ),
    "grace-period": (
        lambda p: p["spec"].update(terminationGracePeriodSeconds=5),
        "spec.terminationGracePeriodSeconds",
    ),
    "volumes": (
        lambda p: p["spec"]["volumes"].append({"name": "v", "emptyDir": {}}),
        "spec.volumes",
    ),
    "apparmor": (
        lambda p: p["metadata"].update(
            annotations={"container.apparmor.security.beta.kubernetes.io/main": "x"}
        ),
        "metadata.annotations[container.apparmor.security.beta.kubernetes.io/main]",
    ),
    "bad-label": (lambda p: p["metadata"].update(labels={"a": "b c"}), "metadata.labels"),
    "two-controllers": (
        lambda p: p["metadata"].update(
            ownerReferences=[
                {"apiVersion": "v1", "kind": "X", "name": n, "uid": n, "controller": True}
                for n in "ab"
            ]
        ),
        "metadata.ownerReferences",
    ),
}


def _edited(change: Change) -> tuple[Any, Object, Object]:
    world = make_world(nodes=0)
    stored = world.apply(BASE)
    copy = world.cluster.get(POD, "default", "p")
    copy = {**copy, **_deep(copy)}
    change(copy)
    return world, stored, copy


def _deep(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _deep(inner) for key, inner in value.items()}
    return [_deep(inner) for inner in value] if isinstance(value, list) else value


@pytest.mark.parametrize("change", LEGAL.values(), ids=LEGAL.keys())
def test_legal_updates(change: Change) -> None:
    """These changes pass, and a status is never taken from them."""
    world, _, edited = _edited(change)
    assert world.cluster.update(POD, edited)["status"]["phase"] == "Pending"


@pytest.mark.parametrize(("change", "path"), ILLEGAL.values(), ids=ILLEGAL.keys())
def test_illegal_updates(change: Change, path: str) -> None:
    """These are refused with a 422 that names the field."""
    world, stored, edited = _edited(change)
    with pytest.raises(InvalidError) as refusal:
        world.cluster.update(POD, edited)
    assert refusal.value.path == path
    assert refusal.value.code == 422
    assert world.get("Pod", "p") is stored


def test_generation_follows_the_spec() -> None:
    """An image bumps the generation, a label does not, nothing at all bumps nothing."""
    world, stored, edited = _edited(LEGAL["labels"])
    labelled = world.cluster.update(POD, edited)
    assert labelled["metadata"]["generation"] == stored["metadata"]["generation"] == 1
    assert world.cluster.update(POD, labelled) is labelled
    containers = [{**labelled["spec"]["containers"][0], "image": "web:2"}]
    spec = {**labelled["spec"], "containers": containers}
    assert world.cluster.update(POD, {**labelled, "spec": spec})["metadata"]["generation"] == 2


def test_stale_update_conflicts() -> None:
    """A PUT with an old resourceVersion is a conflict, one of a lost object is not found."""
    world, stored, edited = _edited(LEGAL["image"])
    world.cluster.update(POD, edited)
    with pytest.raises(ConflictError):
        world.cluster.update(POD, stored)
    world.delete("Pod", "p")
    with pytest.raises(NotFoundError):
        world.cluster.update(POD, stored)


def labelled(key: str) -> Object:
    """A pod with a label of this key."""
    made = pod("p")
    return {**made, "metadata": {**made["metadata"], "labels": {key: "v"}}}


def asking(requests: str, limits: str) -> Object:
    """A pod whose container asks for so much cpu, of at most so much."""
    resources = {"requests": {"cpu": requests}, "limits": {"cpu": limits}}
    return pod("p", containers=[{"name": "a", "image": "x", "resources": resources}])


@pytest.mark.parametrize(
    ("manifest", "path"),
    [
        (pod("Bad_Name"), "metadata.name"),
        (pod("two..dots"), "metadata.name"),
        ({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "a.b"}}, "metadata.name"),
        (labelled("k" * 64), "metadata.labels"),
        (labelled("a..b/k"), "metadata.labels"),
        (pod("p", containers=[{"name": "a.b", "image": "x"}]), "spec.containers[0].name"),
        (pod("p", containers=[{"name": "a" * 64, "image": "x"}]), "spec.containers[0].name"),
        (asking("2", "1"), "spec.containers[0].resources.requests"),
        (pod("p", containers=[]), "spec.containers"),
        (pod("p", restartPolicy="Sometimes"), "spec.restartPolicy"),
        (pod("p", containers=[{"name": "a", "image": "x"}] * 2), "spec.containers[1].name"),
        (pod("p", volumes=[{"name": "v"}] * 2), "spec.volumes[1].name"),
        (
            pod(
                "p",
                containers=[
                    {
                        "name": "a",
                        "image": "x",
                        "volumeMounts": [{"name": "no", "mountPath": "/x"}],
                    }
                ],
            ),
            "spec.containers[0].volumeMounts[0].name",
        ),
    ],
)
def test_impossible_pods_are_refused(manifest: Object, path: str) -> None:
    """A pod that cannot exist is refused when it is created."""
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
)
@pytest.mark.parametrize("field", ["containers", "initContainers"])
def test_restarts_that_there_are_not_are_refused(
    field: str, policy: str | None, rules: list[Object], place: str
) -> None:
    """A container's policy and its rules, in the API server's words."""
    manifest = pod("p", initContainers=[{"name": "i", "image": "x"}])
    manifest["spec"][field][0] |= {"restartPolicyRules": rules}
    manifest["spec"][field][0] |= {} if policy is None else {"restartPolicy": policy}
    with pytest.raises(InvalidError) as refusal:
        make_world().apply(manifest)
    assert refusal.value.path == f"spec.{field}[0].{place}"


def test_of_a_bound_claim_only_the_size_changes() -> None:
    """Its access modes are fixed, and its limits too."""
    world = world_with_claim(grows=True)
    grow(world, "2Gi")
    for change in (
        {"accessModes": ["ReadWriteMany"]},
        {"resources": {"limits": {"storage": "9Gi"}}},
    ):
        with pytest.raises(InvalidError, match="spec is immutable after creation"):
            world.patch("PersistentVolumeClaim", "c", {"spec": change})


def test_a_claim_never_goes_below_what_its_volume_has() -> None:
    """A request that is not met yet may be taken back; not more than that."""
    world = world_with_claim(grows=True)
    grow(world, "3Gi")
    grow(world, "2Gi")
    with pytest.raises(InvalidError, match=r"field can not be less than status\.capacity"):
        grow(world, "1Gi")


@pytest.mark.parametrize(("default", "grows"), [(False, True), (True, False), (True, None)])
def test_a_claim_grows_only_where_its_class_allows_it(default: bool, grows: bool | None) -> None:
    """Admission looks at the class that the claim names, or got by default."""
    world = world_with_claim(grows=grows, default=default)
    with pytest.raises(ForbiddenError, match="only dynamically provisioned pvc can be resized"):
        grow(world, "2Gi")


def test_a_claim_that_is_not_bound_cannot_grow() -> None:
    """Whatever its class says: the spec of such a claim is fixed."""
    world = make_world()
    world.apply(storage_class(grows=True))
    world.apply(claim("c"))
    with pytest.raises(InvalidError, match="spec is immutable after creation"):
        grow(world, "2Gi")


def test_a_volume_follows_its_claim_as_far_as_its_driver_can() -> None:
    """The capacity follows after a moment; what the driver cannot do is said in the status."""
    world = world_with_claim(grows=True)
    grow(world, "2Gi")
    world.settle()
    status = world.get("PersistentVolumeClaim", "c")["status"]
    assert status["capacity"] == {"storage": "2Gi"}
    world.claim_controller.largest = "4Gi"
    grow(world, "5Gi")
    world.settle()
    status = world.get("PersistentVolumeClaim", "c")["status"]
    assert status["capacity"] == {"storage": "2Gi"}
    assert status["allocatedResourceStatuses"] == {"storage": "ControllerResizeInfeasible"}


def world_with_claim(*, grows: bool | None, default: bool = True) -> World:
    """A world with a StorageClass, and a Bound claim of it, or of none."""
    world = make_world()
    world.apply(storage_class(grows=grows, default=default))
    world.apply(claim("c"))
    world.settle()
    return world


def storage_class(*, grows: bool | None, default: bool = True) -> Object:
    """A StorageClass `disk`, the cluster's default or not."""
    annotation = {"storageclass.kubernetes.io/is-default-class": "true"}
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": "disk", **({"annotations": annotation} if default else {})},
        "provisioner": "csi.example.com",
        **({} if grows is None else {"allowVolumeExpansion": grows}),
    }


def grow(world: World, size: str) -> None:
    """Somebody asks for another size."""
    change = {"spec": {"resources": {"requests": {"storage": size}}}}
    world.patch("PersistentVolumeClaim", "c", change)
