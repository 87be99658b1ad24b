"""Tests pods of the old controller: they are adopted as they are, updated in place, or replaced."""

from typing import Any

import pytest

from simulator.api.admission import Policy
from simulator.objects.objects import with_meta
from tests import builders
from tests.builders import Document, claim_template, running, tapp, template, without_last_applied
from tests.hook_calls import bare
from tests.policies import inject_sidecar
from tests.unit.world import World, condition, settled

GATE = "tkestack.io/InPlaceUpdate"
LIVE = template(
    labels={"app": "web", "tier": "front"},
    annotations={"note": "x"},
    container={
        "command": ["serve"],
        "env": [{"name": "A", "value": "1"}, {"name": "EMPTY", "value": ""}],
        "ports": [
            {"containerPort": 80, "protocol": "TCP"},
            {"containerPort": 80, "protocol": "UDP"},
        ],
        "resources": {"requests": {"cpu": "0.5", "memory": "1024Mi"}, "limits": {}},
        "volumeMounts": [{"name": "data", "mountPath": "/data"}],
        "livenessProbe": {"httpGet": {"path": "/", "port": 80}, "initialDelaySeconds": 0},
    },
    initContainers=[{"name": "init", "image": "init:1"}],
    tolerations=[{"key": "gpu", "operator": "Exists"}],
    volumes=[{"name": "tmp", "emptyDir": {}}],
    nodeSelector={},
)


def pod_of_old_controller(pod: Document) -> Document:
    """Returns a pod as the old controller left it, with decimal hashes and its own readiness
    gate.
    """
    labels = {
        **{key: value for key, value in pod["metadata"]["labels"].items() if "/" not in key},
        "tapp_template_hash_key": "3519815671",
        "tapp_uniq_hash_key": "1129474381",
    }
    annotations = {
        key: value
        for key, value in (without_last_applied(pod)["metadata"].get("annotations") or {}).items()
        if "apps.tkestack.io" not in key
    }
    annotations["tkestack.io/portmapping"] = "{}"
    pod = with_meta(pod, labels=labels, annotations=annotations)
    gate = {"type": GATE, "status": "True", "lastTransitionTime": builders.CREATED}
    status = {**pod["status"], "conditions": [*pod["status"]["conditions"], gate]}
    return {
        **pod,
        "spec": {**pod["spec"], "readinessGates": [{"conditionType": GATE}]},
        "status": status,
    }


def migrated_tapp(
    replicas: int = 2, body: Document = LIVE, policies: tuple[Policy, ...] = (), **spec: Any
) -> World:
    """Returns a TApp with pods of the old controller, before the first sync of this service.

    `body` is their template, and `policies` are admission policies.
    """
    claims = [claim_template()]
    parent = tapp(replicas=replicas, template=body, volumeClaimTemplates=claims, **spec)
    world = World(parent, strip=True, policies=policies).settle()
    world.pods = {name: pod_of_old_controller(pod) for name, pod in world.pods.items()}
    del world.parent["status"]
    return world


def images(world: World) -> dict[str, str]:
    """Returns pod name -> image of its first container."""
    return {name: pod["spec"]["containers"][0]["image"] for name, pod in world.pods.items()}


def test_old_pods_that_match_their_template_get_labels_and_no_restart() -> None:
    world = migrated_tapp(replicas=3)
    before = {name: (pod["spec"], pod["status"]) for name, pod in world.pods.items()}
    assert set(world.decisions().values()) == {"Adopt/Adopted"}
    world.sync()
    assert {name: (pod["spec"], pod["status"]) for name, pod in world.pods.items()} == before
    assert set(world.decisions().values()) == {"Keep/UpToDate"}
    for _ in range(2):
        world.sync()
        assert world.writes == []


def test_adopted_pod_has_the_labels_of_a_new_pod() -> None:
    claims = [claim_template()]
    fresh = World(tapp(template=LIVE, volumeClaimTemplates=claims), strip=True).settle().pod(0)
    world = migrated_tapp(replicas=1).settle()
    labels = world.pod(0)["metadata"]["labels"]
    assert labels == fresh["metadata"]["labels"]
    assert world.pod(0)["metadata"]["annotations"]["tkestack.io/portmapping"] == "{}"


def test_adoption_needs_no_budget() -> None:
    world = migrated_tapp(replicas=3, updateStrategy={"maxUnavailable": 0})
    assert set(world.decisions().values()) == {"Adopt/Adopted"}


def test_pods_are_adopted_while_updates_are_paused() -> None:
    world = migrated_tapp(replicas=2, updateStrategy={"paused": True})
    before = {name: pod["spec"] for name, pod in world.pods.items()}
    world.settle()
    assert {name: pod["spec"] for name, pod in world.pods.items()} == before


@pytest.mark.parametrize(
    "same",
    [
        {"resources": {"requests": {"cpu": "500m", "memory": "1Gi"}}},
        {"resources": {"requests": {"cpu": 0.5, "memory": 1073741824}}},
        {"args": []},
        {"securityContext": {}},
        {"lifecycle": None},
    ],
    ids=str,
)
def test_old_pod_is_adopted_with_an_equivalent_template(same: Document) -> None:
    container = {**LIVE["spec"]["containers"][0], **same}
    body = {**LIVE, "spec": {**LIVE["spec"], "containers": [container]}}
    assert migrated_tapp(replicas=1).change(template=body).decisions() == {0: "Adopt/Adopted"}


def test_old_pod_with_an_injected_sidecar_is_adopted() -> None:
    mesh = {"name": "mesh", "image": "mesh:9"}
    world = migrated_tapp(replicas=1, policies=(inject_sidecar(mesh),))
    assert [item["name"] for item in world.pod(0)["spec"]["containers"]] == ["mesh", "app"]
    before = bare(world.pod(0))["spec"]
    assert world.decisions() == {0: "Adopt/Adopted"}
    world.settle()
    assert world.pod(0)["spec"] == before


def test_old_pod_with_another_image_is_updated_in_place_within_the_budget() -> None:
    world = migrated_tapp(replicas=3)
    newer = {**LIVE, "spec": {**LIVE["spec"]}}
    newer["spec"]["containers"] = [{**LIVE["spec"]["containers"][0], "image": "nginx:2"}]
    before = world.uids()
    world.change(template=newer)
    assert world.decisions() == {
        0: "UpdateInPlace/TemplateChanged",
        1: "Keep/WaitingForBudget",
        2: "Keep/WaitingForBudget",
    }
    world.settle()
    assert world.uids() == before
    assert set(images(world).values()) == {"nginx:2"}
    assert len(world.container(0)["ports"]) == 2


def test_old_pod_with_other_labels_is_updated_in_place() -> None:
    world = migrated_tapp(replicas=1)
    metadata = {"labels": {"app": "web", "tier": "back"}, "annotations": {"note": "x"}}
    before = world.uids()
    world.change(template={**LIVE, "metadata": metadata})
    assert world.decisions() == {0: "UpdateInPlace/TemplateChanged"}
    world.settle()
    assert world.uids() == before
    assert world.pod(0)["metadata"]["labels"]["tier"] == "back"


@pytest.mark.parametrize(
    "edit",
    [
        pytest.param({"command": ["serve", "--fast"]}, id="command longer"),
        pytest.param({"env": [{"name": "A", "value": "2"}]}, id="variable changed"),
        pytest.param({"env": [{"name": "C", "value": "1"}]}, id="variable added"),
        pytest.param({"resources": {"requests": {"cpu": "501m"}}}, id="resource request"),
        pytest.param({"name": "renamed"}, id="container name"),
    ],
)
def test_old_pod_with_other_differences_is_replaced(edit: Document) -> None:
    container = {**LIVE["spec"]["containers"][0], **edit}
    body = {**LIVE, "spec": {**LIVE["spec"], "containers": [container]}}
    world = migrated_tapp(replicas=1).change(template=body)
    assert world.decisions() == {0: "Recreate/TemplateChanged"}
    world.settle()
    assert "readinessGates" not in world.pod(0)["spec"]


def test_old_pod_with_another_init_image_is_replaced() -> None:
    body = {**LIVE, "spec": {**LIVE["spec"], "initContainers": [{"name": "init", "image": "i:2"}]}}
    assert migrated_tapp(replicas=1).change(template=body).decisions() == {
        0: "Recreate/TemplateChanged"
    }


def test_instances_that_finished_under_the_old_controller_stay_finished() -> None:
    memory = {"statuses": {"0": "Succ", "1": "Failed", "2": "Killed", "3": "PodFailed"}}
    world = World(tapp(replicas=4, template=template(restartPolicy="Never"), status=memory))
    assert world.decisions() == {
        0: "Absent/Finished",
        1: "Absent/Finished",
        2: "Create/NoPod",
        3: "Create/NoPod",
    }


def test_old_claims_are_not_changed() -> None:
    world = migrated_tapp(replicas=2)
    del world.claims["data-web-1"]["metadata"]["ownerReferences"]
    before = dict(world.claims)
    world.settle()
    assert world.claims == before


@pytest.mark.parametrize("label", ["tapp_template_hash_key", "tapp_uniq_hash_key"])
def test_removed_revision_label_of_a_pod_is_written_again(label: str) -> None:
    world = settled()
    labels = {k: v for k, v in world.pod(0)["metadata"]["labels"].items() if k != label}
    world.pods["web-0"] = with_meta(world.pod(0), labels=labels)
    before = world.uids()
    world.settle()
    assert world.uids() == before
    if label == "tapp_template_hash_key":
        assert label in world.pod(0)["metadata"]["labels"]


def test_unready_old_pod_is_adopted() -> None:
    world = migrated_tapp(replicas=1)
    world.pods["web-0"] = running(world.pod(0), ready=False)
    assert world.decisions() == {0: "Adopt/Adopted"}
    assert condition(world.sync(), "DuplicateMergeKeys") is None


def test_old_pods_with_toleration_seconds_are_updated_in_place_with_force_delete_pod() -> None:
    """Sets a new image and `forceDeletePod`, which removes toleration seconds: no pod is replaced.

    If the seconds were removed before the update, the pods would not match their template.
    """
    limited = {
        "key": "node.kubernetes.io/not-ready",
        "operator": "Exists",
        "effect": "NoExecute",
        "tolerationSeconds": 9,
    }
    body = {**LIVE, "spec": {**LIVE["spec"], "tolerations": [limited]}}
    world = migrated_tapp(replicas=3, body=body)
    newer = {**body, "spec": {**body["spec"]}}
    newer["spec"]["containers"] = [{**LIVE["spec"]["containers"][0], "image": "nginx:2"}]
    before = world.uids()
    world.change(template=newer, forceDeletePod=True).settle()
    assert world.uids() == before
    assert set(images(world).values()) == {"nginx:2"}
    assert not any(
        "tolerationSeconds" in item
        for pod in world.pods.values()
        for item in pod["spec"]["tolerations"]
        if item["key"] == limited["key"]
    )


def test_restart_annotation_of_the_past_does_not_restart_old_pods() -> None:
    world = migrated_tapp(replicas=1)
    annotations = {"kubectl.kubernetes.io/restartedAt": "2020-01-01T00:00:00Z"}
    newer = {**LIVE, "metadata": {**LIVE["metadata"], "annotations": annotations}}
    before = world.uids()
    world.change(template=newer).settle()
    assert world.uids() == before
