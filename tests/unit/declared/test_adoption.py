"""Pods of the old controller: stamped, updated in place or made anew."""

from typing import Any

import pytest

from simulator.api.admission import Policy
from simulator.objects.objects import with_meta
from tests import builders
from tests.builders import Document, claim_template, running, tapp, template, without_last_applied
from tests.policies import inject_sidecar
from tests.reading import bare
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


def old_pod(pod: Document) -> Document:
    """A pod as the old controller left it: decimal hashes, its gate, no annotation of ours."""
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


def moved_over(
    replicas: int = 2, body: Document = LIVE, policies: tuple[Policy, ...] = (), **spec: Any
) -> World:
    """A TApp whose pods the old controller made, moved over a moment ago."""
    claims = [claim_template()]
    parent = tapp(replicas=replicas, template=body, volumeClaimTemplates=claims, **spec)
    world = World(parent, strip=True, policies=policies).settle()
    world.pods = {name: old_pod(pod) for name, pod in world.pods.items()}
    del world.parent["status"]
    return world


def images(world: World) -> dict[str, str]:
    """The app's image in each pod."""
    return {name: pod["spec"]["containers"][0]["image"] for name, pod in world.pods.items()}


def test_old_pods_that_their_template_describes_are_stamped_and_nothing_restarts() -> None:
    world = moved_over(replicas=3)
    before = {name: (pod["spec"], pod["status"]) for name, pod in world.pods.items()}
    assert set(world.decisions().values()) == {"Adopt/Adopted"}
    world.sync()
    assert {name: (pod["spec"], pod["status"]) for name, pod in world.pods.items()} == before
    assert set(world.decisions().values()) == {"Keep/UpToDate"}
    for _ in range(2):
        world.sync()
        assert world.writes == []


def test_the_stamp_is_what_a_new_pod_would_carry() -> None:
    claims = [claim_template()]
    fresh = World(tapp(template=LIVE, volumeClaimTemplates=claims), strip=True).settle().pod(0)
    world = moved_over(replicas=1).settle()
    labels = world.pod(0)["metadata"]["labels"]
    assert labels == fresh["metadata"]["labels"]
    assert world.pod(0)["metadata"]["annotations"]["tkestack.io/portmapping"] == "{}"


def test_adoption_takes_no_budget_and_does_not_wait_for_one() -> None:
    world = moved_over(replicas=3, updateStrategy={"maxUnavailable": 0})
    assert set(world.decisions().values()) == {"Adopt/Adopted"}


def test_a_paused_tapp_is_adopted_too() -> None:
    world = moved_over(replicas=2, updateStrategy={"paused": True})
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
def test_another_spelling_of_the_template_is_stamped(same: Document) -> None:
    container = {**LIVE["spec"]["containers"][0], **same}
    body = {**LIVE, "spec": {**LIVE["spec"], "containers": [container]}}
    assert moved_over(replicas=1).change(template=body).decisions() == {0: "Adopt/Adopted"}


def test_an_old_pod_with_an_injected_sidecar_is_stamped() -> None:
    mesh = {"name": "mesh", "image": "mesh:9"}
    world = moved_over(replicas=1, policies=(inject_sidecar(mesh),))
    assert [item["name"] for item in world.pod(0)["spec"]["containers"]] == ["mesh", "app"]
    before = bare(world.pod(0))["spec"]
    assert world.decisions() == {0: "Adopt/Adopted"}
    world.settle()
    assert world.pod(0)["spec"] == before


def test_an_old_pod_of_an_old_image_is_updated_in_place_within_the_budget() -> None:
    world = moved_over(replicas=3)
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


def test_an_old_pod_whose_metadata_differs_is_updated_in_place() -> None:
    world = moved_over(replicas=1)
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
        pytest.param({"command": ["serve", "--fast"]}, id="more in a command"),
        pytest.param({"env": [{"name": "A", "value": "2"}]}, id="a variable's value"),
        pytest.param({"env": [{"name": "C", "value": "1"}]}, id="a variable more"),
        pytest.param({"resources": {"requests": {"cpu": "501m"}}}, id="a quantity"),
        pytest.param({"name": "renamed"}, id="a container's name"),
    ],
)
def test_an_old_pod_that_differs_in_more_is_made_anew(edit: Document) -> None:
    container = {**LIVE["spec"]["containers"][0], **edit}
    body = {**LIVE, "spec": {**LIVE["spec"], "containers": [container]}}
    world = moved_over(replicas=1).change(template=body)
    assert world.decisions() == {0: "Recreate/TemplateChanged"}
    world.settle()
    assert "readinessGates" not in world.pod(0)["spec"]


def test_an_old_pod_of_an_old_init_image_is_made_anew() -> None:
    body = {**LIVE, "spec": {**LIVE["spec"], "initContainers": [{"name": "init", "image": "i:2"}]}}
    assert moved_over(replicas=1).change(template=body).decisions() == {
        0: "Recreate/TemplateChanged"
    }


def test_finished_instances_of_the_old_controller_are_remembered() -> None:
    memory = {"statuses": {"0": "Succ", "1": "Failed", "2": "Killed", "3": "PodFailed"}}
    world = World(tapp(replicas=4, template=template(restartPolicy="Never"), status=memory))
    assert world.decisions() == {
        0: "Absent/Finished",
        1: "Absent/Finished",
        2: "Create/NoPod",
        3: "Create/NoPod",
    }


def test_old_claims_are_kept_as_they_are() -> None:
    world = moved_over(replicas=2)
    del world.claims["data-web-1"]["metadata"]["ownerReferences"]
    before = dict(world.claims)
    world.settle()
    assert world.claims == before


@pytest.mark.parametrize("label", ["tapp_template_hash_key", "tapp_uniq_hash_key"])
def test_a_pod_that_lost_a_hash_label_is_stamped_again(label: str) -> None:
    world = settled()
    labels = {k: v for k, v in world.pod(0)["metadata"]["labels"].items() if k != label}
    world.pods["web-0"] = with_meta(world.pod(0), labels=labels)
    before = world.uids()
    world.settle()
    assert world.uids() == before
    if label == "tapp_template_hash_key":
        assert label in world.pod(0)["metadata"]["labels"]


def test_an_old_pod_that_is_not_ready_is_adopted_too() -> None:
    world = moved_over(replicas=1)
    world.pods["web-0"] = running(world.pod(0), ready=False)
    assert world.decisions() == {0: "Adopt/Adopted"}
    assert condition(world.sync(), "DuplicateMergeKeys") is None


def test_old_pods_that_wait_keep_their_limits_and_are_updated_in_place() -> None:
    """With `forceDeletePod`: a limit that was lifted first would make them differ in more."""
    limited = {
        "key": "node.kubernetes.io/not-ready",
        "operator": "Exists",
        "effect": "NoExecute",
        "tolerationSeconds": 9,
    }
    body = {**LIVE, "spec": {**LIVE["spec"], "tolerations": [limited]}}
    world = moved_over(replicas=3, body=body)
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


def test_a_restart_that_the_old_controller_was_asked_for_restarts_nothing() -> None:
    world = moved_over(replicas=1)
    annotations = {"kubectl.kubernetes.io/restartedAt": "2020-01-01T00:00:00Z"}
    newer = {**LIVE, "metadata": {**LIVE["metadata"], "annotations": annotations}}
    before = world.uids()
    world.change(template=newer).settle()
    assert world.uids() == before
