"""Tests deletions that do not end: the condition names the object, the cause and the time."""

import json
import re
from collections.abc import Callable
from typing import Any

import jsonpatch
import pytest

from simulator.objects.objects import with_meta
from tests.builders import (
    DELETED,
    NOW,
    Document,
    claim_template,
    completed,
    tapp,
    template,
    terminating,
)
from tests.invariants import p1_permuted_children_give_the_same_bytes
from tests.unit.nodes import not_ready
from tests.unit.world import Hook, World, condition, settled

NEW = template("nginx:2", command=["other"])


def terminating_with_finalizers(*names: str) -> Callable[[Document], Document]:
    return lambda pod: with_meta(terminating(pod), finalizers=list(names))


def at_second(world: World, seconds: float) -> World:
    world.hook.now = NOW + seconds
    return world


def degraded(world: World) -> Document:
    found = condition(world.sync(), "Degraded")
    assert found is not None
    return found


def deleted_by_somebody(world: World) -> World:
    return world


def replaced(world: World) -> World:
    return world.change(template=NEW)


def killed(world: World) -> World:
    return world.change(statuses={"2": "Killed"})


def scaled_down(world: World) -> World:
    return world.change(replicas=2)


def paused_rollout(world: World) -> World:
    return world.change(updateStrategy={"paused": True})


@pytest.mark.parametrize(
    "cause", [deleted_by_somebody, replaced, killed, scaled_down, paused_rollout]
)
def test_pod_that_stays_terminating_makes_the_tapp_degraded_for_every_cause(
    cause: Callable[[World], World],
) -> None:
    world = cause(settled(replicas=3)).modify(2, terminating)
    assert degraded(at_second(world, 19))["status"] == "False"
    assert world.sync()["resyncAfterSeconds"] <= 1
    found = degraded(at_second(world, 21))
    assert found["status"] == "True"
    assert found["reason"] == "PodsNotDeleted"
    assert f"pod web-2 is being deleted and should have gone by {DELETED}" in found["message"]
    assert "node-1" in found["message"]
    assert "kubectl delete pod web-2 -n shop --grace-period=0 --force" in found["message"]
    status = world.sync()["status"]
    assert condition(status, "Ready")["reason"] == "PodsNotDeleted"  # type: ignore[index]
    assert condition(status, "Progressing")["status"] == "True"  # type: ignore[index]
    del world.pods["web-2"]
    assert degraded(world)["status"] == "False"


@pytest.mark.parametrize(
    ("change", "texts"),
    [
        (
            terminating_with_finalizers("a.example/x"),
            ["finalizer a.example/x keeps", "kubelet of node node-1"],
        ),
        (
            lambda pod: terminating_with_finalizers("a.example/x", "b/y")(completed(pod, "Failed")),
            ["finalizers a.example/x, b/y keep", "kubectl patch pod web-1 -n shop --type=json"],
        ),
        (
            lambda pod: terminating(not_ready(pod, NOW - 400)),
            ["node node-1 has stopped reporting", "out-of-service", "kubectl delete node node-1"],
        ),
    ],
    ids=["kubelet and finalizer", "two finalizers", "node unreachable"],
)
def test_condition_names_the_finalizers_or_the_node_that_prevent_the_deletion(
    change: Callable[[Document], Document], texts: list[str]
) -> None:
    world = at_second(settled(replicas=3).modify(1, change), 30)
    message = degraded(world)["message"]
    assert all(text in message for text in texts), message


@pytest.mark.parametrize(
    "moved", [False, True], ids=["without forceDeletePod", "with forceDeletePod"]
)
def test_tapp_stays_degraded_after_the_pod_on_a_lost_node_was_deleted(moved: bool) -> None:
    """The taint manager deletes a pod whose node cannot stop it: the TApp is Degraded, also an hour
    later.
    """
    world = settled(replicas=3, forceDeletePod=moved).modify(
        1, lambda pod: not_ready(pod, NOW - 60)
    )
    if not moved:
        assert degraded(world)["reason"] == "InstancesBroken"
    world.modify(1, terminating)
    assert degraded(world)["reason"] == "PodsNotDeleted"
    assert degraded(at_second(world, 3_600))["status"] == "True"


@pytest.mark.parametrize("path", ["/sync", "/finalize"])
@pytest.mark.parametrize("kind", ["pods", "claims"])
def test_response_does_not_depend_on_the_order_of_the_children(kind: str, path: str) -> None:
    """Many pods or claims are overdue for several causes: the response is the same in any order of
    the children.

    Otherwise two syncs of the same objects would write two statuses in turn.
    """
    claims = {"whenDeleted": "Delete"}
    world = settled(
        replicas=12,
        volumeClaimTemplates=[claim_template("data")],
        persistentVolumeClaimRetentionPolicy=claims,
    )
    children = getattr(world, kind)
    for number, (name, child) in enumerate(children.items()):
        children[name] = terminating_with_finalizers(f"a.example/x{number % 3}")(child)
    at_second(world, 60)
    request = world.request(finalizing=path == "/finalize")
    p1_permuted_children_give_the_same_bytes(
        # Bytes, because the hook of the tests would sort the keys of a document.
        request,
        lambda document: world.hook.post(path, json.dumps(document).encode()).data,
    )


def test_condition_names_pods_with_the_same_cause_together() -> None:
    world = settled(replicas=30)
    for id in range(30):
        world.modify(id, terminating)
    message = degraded(at_second(world, 60))["message"]
    assert message.count("being deleted") == 1
    assert "and 22 more" in message


def test_deletion_with_an_invalid_time_counts_as_overdue() -> None:
    world = settled(replicas=1).modify(0, lambda pod: with_meta(pod, deletionTimestamp="soon"))
    assert "pod web-0 is being deleted: " in degraded(world)["message"]


def with_claims(**spec: Any) -> World:
    return settled(replicas=2, volumeClaimTemplates=[claim_template()], **spec)


def test_condition_names_a_terminating_claim_with_the_pod_that_uses_it() -> None:
    world = with_claims()
    name = "data-web-1"
    world.claims[name] = with_meta(
        terminating(world.claims[name]), finalizers=["kubernetes.io/pvc-protection"]
    )
    assert degraded(world)["status"] == "False"
    found = degraded(at_second(world, 30))
    assert found["reason"] == "ClaimsNotDeleted"
    assert f"claim {name} is being deleted" in found["message"]
    assert "pod web-1 still uses it" in found["message"]


def test_condition_names_a_terminating_claim_with_its_finalizer() -> None:
    world = with_claims()
    world.claims["data-web-1"] = with_meta(
        terminating(world.claims["data-web-1"]), finalizers=["backup.example/keep"]
    )
    world.pods.pop("web-1")
    message = condition(at_second(world, 30).sync(), "ClaimsNotDeleted")["message"]  # type: ignore[index]
    assert "finalizer backup.example/keep keeps" in message
    assert "kubectl patch pvc data-web-1 -n shop" in message


def commands_in(message: str) -> list[str]:
    """Returns the JSON patches of the commands `kubectl patch` in a message."""
    return re.findall(r"`kubectl patch [^`]* --type=json -p '([^']*)'`", message)


def test_each_patch_in_the_condition_removes_only_one_finalizer() -> None:
    """A finalizer whose controller still exists must stay: it may protect data."""
    names = ["backup.example/keep", "audit.example/keep"]
    world = with_claims()
    claim = with_meta(terminating(world.claims["data-web-1"]), finalizers=names)
    world.claims["data-web-1"] = claim
    world.pods.pop("web-1")
    patches = commands_in(degraded(at_second(world, 30))["message"])
    left = [
        jsonpatch.apply_patch(claim, json.loads(each))["metadata"]["finalizers"] for each in patches
    ]
    assert left == [names[1:], names[:1]]


def test_condition_has_no_patch_for_the_finalizer_that_protects_used_claims() -> None:
    """Kubernetes removes this finalizer as soon as no pod uses the claim."""
    world = with_claims()
    names = ["kubernetes.io/pvc-protection", "backup.example/keep"]
    world.claims["data-web-1"] = with_meta(
        terminating(world.claims["data-web-1"]), finalizers=names
    )
    world.modify(1, terminating_with_finalizers("a.example/x"))
    message = condition(at_second(world, 30).sync(), "ClaimsNotDeleted")["message"]  # type: ignore[index]
    (patch,) = commands_in(message)
    assert json.loads(patch)[0] == {
        "op": "test",
        "path": "/metadata/finalizers/1",
        "value": "backup.example/keep",
    }


def test_condition_names_a_terminating_service_with_its_finalizer() -> None:
    world = World(
        tapp(replicas=2, serviceTemplate={"spec": {"ports": [{"port": 80}]}}), exposing=True
    ).settle()
    name = "service.kubernetes.io/load-balancer-cleanup"
    world.services["web-1"] = with_meta(terminating(world.services["web-1"]), finalizers=[name])
    found = degraded(at_second(world, 30))
    assert found["reason"] == "ServicesNotDeleted"
    assert name in found["message"]


# --- deletion of a TApp ---------------------------------------------------------------------------


def finalized(world: World, **meta: Any) -> Document:
    world.parent = with_meta(world.parent, **meta)
    return world.hook.finalize(world.request(finalizing=True))


def conditions_by_type(answer: Document) -> dict[str, Document]:
    return {item["type"]: item for item in answer["status"]["conditions"]}


def test_status_of_a_deleted_tapp_counts_and_names_its_remaining_pods() -> None:
    world = settled(replicas=4)
    for id in range(3):
        world.modify(id, terminating)
    answer = finalized(world, finalizers=["metacontroller.io/compositecontroller-tapp"])
    status, conditions = answer["status"], conditions_by_type(answer)
    assert status["ready"] == "1/4"
    assert status["replicas"] == 4
    assert status["readyReplicas"] == 1
    assert status["availableReplicas"] == 1
    assert status["statuses"] == {"0": "Killing", "1": "Killing", "2": "Killing", "3": "Running"}
    assert conditions["Ready"]["status"] == "False"
    assert conditions["Ready"]["reason"] == "Deleting"
    text = f"being deleted (since {DELETED}); the deletion waits for "
    text += "pods web-0, web-1, web-2, web-3 to end"
    assert text in conditions["Ready"]["message"]
    assert conditions["Degraded"]["status"] == "False"
    assert conditions["Available"]["status"] == "Unknown"
    assert "Reconciling" in conditions


def test_deleted_tapp_is_degraded_by_a_pod_that_stays_terminating() -> None:
    world = settled(replicas=2).modify(1, terminating_with_finalizers("a.example/x"))
    del world.pods["web-0"]
    answer = finalized(at_second(world, 15))
    assert conditions_by_type(answer)["Degraded"]["status"] == "False"
    assert answer["resyncAfterSeconds"] == 5
    conditions = conditions_by_type(finalized(at_second(world, 30)))
    assert conditions["Degraded"]["reason"] == "PodsNotDeleted"
    assert "finalizer a.example/x keeps" in conditions["Ready"]["message"]
    assert conditions["PodsNotDeleted"]["status"] == "True"
    assert "Stalled" in conditions


def test_deleted_tapp_waits_for_its_claims() -> None:
    policy = {"whenDeleted": "Delete"}
    world = with_claims(persistentVolumeClaimRetentionPolicy=policy)
    world.pods.clear()
    name = "data-web-1"
    world.claims[name] = with_meta(terminating(world.claims[name]), finalizers=["a.example/x"])
    ready = conditions_by_type(finalized(world))["Ready"]
    assert "claims data-web-0, data-web-1" in ready["message"]
    conditions = conditions_by_type(finalized(at_second(world, 30)))
    assert conditions["Degraded"]["reason"] == "ClaimsNotDeleted"
    assert "waits for claim data-web-0" in conditions["Ready"]["message"]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("foregroundDeletion", "the garbage collector first deletes the objects"),
        ("orphan", "the garbage collector first removes the TApp as owner"),
        ("argocd.argoproj.io/x", "finalizer argocd.argoproj.io/x of the TApp"),
    ],
    ids=["foreground deletion", "orphan", "another tool"],
)
def test_status_of_a_deleted_tapp_names_the_finalizers_of_others(name: str, text: str) -> None:
    world = settled(replicas=1)
    answer = finalized(world, finalizers=["metacontroller.io/compositecontroller-tapp", name])
    assert text in conditions_by_type(answer)["Ready"]["message"]
    assert "resyncAfterSeconds" in answer


def test_finalize_without_a_deletion_keeps_the_status() -> None:
    world = settled(replicas=1)
    request = {**world.request(), "finalizing": True}
    before = {key: v for key, v in world.parent["status"].items() if key != "observedGeneration"}
    assert Hook().finalize(request)["status"] == before
