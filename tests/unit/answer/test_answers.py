"""Tests the pods in a response: existing pods cause no unnecessary write, and new pods are
complete.
"""

import json
import random
from typing import Any

import pytest

from simulator.api.apply import LAST_APPLIED, apply_update
from tests import builders
from tests.builders import Document, labelled, tapp, template, without_last_applied
from tests.hook_calls import bare, desired
from tests.invariants import writes
from tests.unit.world import World, condition, settled

RICH = template(
    container={
        "command": ["sh", "-c"],
        "args": ["sleep 1"],
        "env": [
            {"name": "A", "value": "1"},
            {"name": "POD", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
            {"name": "EMPTY", "value": ""},
        ],
        "envFrom": [{"configMapRef": {"name": "settings"}}],
        "ports": [{"containerPort": 80}, {"containerPort": 443, "name": "tls"}],
        "resources": {"requests": {"cpu": 0.5, "memory": "1024Mi"}, "limits": {"cpu": "1000m"}},
        "volumeMounts": [{"name": "tmp", "mountPath": "/tmp", "readOnly": False}],
        "livenessProbe": {"httpGet": {"path": "/", "port": 80}, "initialDelaySeconds": 0},
        "securityContext": {"capabilities": {"drop": ["ALL"]}},
        "imagePullPolicy": "Always",
    },
    initContainers=[{"name": "init", "image": "init:1"}],
    volumes=[
        {"name": "tmp", "emptyDir": {"sizeLimit": "1024Mi"}},
        {"name": "conf", "configMap": {"name": "c", "items": [{"key": "a", "path": "a"}]}},
        {
            "name": "all",
            "projected": {
                "sources": [
                    {"serviceAccountToken": {"path": "token"}},
                    {
                        "downwardAPI": {
                            "items": [{"path": "n", "fieldRef": {"fieldPath": "metadata.name"}}]
                        }
                    },
                ]
            },
        },
    ],
    tolerations=[{"key": "gpu", "operator": "Exists", "effect": "NoSchedule"}],
    affinity={"podAntiAffinity": {}},
    imagePullSecrets=[{"name": "pull"}],
    hostAliases=[{"ip": "10.0.0.1", "hostnames": ["db"]}],
    nodeSelector={"disk": "ssd"},
    readinessGates=[{"conditionType": "x/y"}],
    securityContext={"sysctls": [{"name": "a", "value": "1"}], "supplementalGroups": [1]},
    restartPolicy="Always",
    annotations={"note": ""},
)


def without_last_applied_and_version(pod: Document) -> Document:
    """Returns a pod without its last-applied annotation and its resource version."""
    pod = bare(pod)
    metadata = {key: value for key, value in pod["metadata"].items() if key != "resourceVersion"}
    return {**pod, "metadata": metadata}


@pytest.mark.parametrize("strip", [False, True], ids=["last-applied kept", "last-applied stripped"])
@pytest.mark.parametrize("body", [template(), RICH], ids=["plain", "rich"])
def test_unchanged_pod_is_written_at_most_once_after_its_creation(
    body: Document, strip: bool
) -> None:
    """Runs syncs after the creation of two pods: one write may follow, which changes metadata
    only.
    """
    world = World(tapp(replicas=2, template=body, serviceName="svc"), strip=strip)
    world.sync()
    world.kubelet()
    created = {name: bare(pod) for name, pod in world.pods.items()}
    world.sync()
    assert {name: {**bare(pod), "metadata": {}} for name, pod in world.pods.items()} == {
        name: {**pod, "metadata": {}} for name, pod in created.items()
    }
    for _ in range(3):
        world.sync()
        assert world.writes == []


@pytest.mark.parametrize("strip", [False, True], ids=["last-applied kept", "last-applied stripped"])
def test_pod_is_not_written_again_after_an_update_in_place(strip: bool) -> None:
    world = World(tapp(replicas=2, template=RICH), strip=strip).settle()
    changed = json.loads(json.dumps(RICH).replace("nginx:1.25", "nginx:2"))
    world.change(template=changed).settle()
    for _ in range(2):
        world.sync()
        assert world.writes == []
    assert world.container(0)["image"] == "nginx:2"


def test_simple_new_pod_needs_no_second_write() -> None:
    world = World(tapp(template=template(tolerations=[{"key": "gpu", "operator": "Exists"}])))
    world.sync()
    world.kubelet()
    world.sync()
    assert world.writes == []


def test_response_has_the_stored_form_of_a_pod_and_not_that_of_the_template() -> None:
    body = template(container={"resources": {"limits": {"cpu": "1000m"}}}, tolerations=[])
    world = settled(template=body)
    answer = world.sync()
    pod = desired(answer, "Pod")["web-0"]
    assert pod["spec"]["containers"][0]["resources"] == {"limits": {"cpu": "1"}}


def test_response_has_only_metadata_of_a_pod_without_the_last_applied_annotation() -> None:
    world = settled().modify(0, without_last_applied)
    pod = desired(world.hook.sync(world.request()), "Pod")["web-0"]
    assert sorted(pod) == ["apiVersion", "kind", "metadata"]
    assert pod["metadata"]["labels"]["controller-uid"] == builders.UID


def test_changes_of_a_pod_by_others_stay() -> None:
    """Changes the image and a label of a pod, as `kubectl set image` and `kubectl label` do: both
    stay.
    """

    def edited(pod: Document) -> Document:
        first, *others = pod["spec"]["containers"]
        spec = {**pod["spec"], "containers": [{**first, "image": "debug:1"}, *others]}
        labels = {**pod["metadata"]["labels"], "app": "other"}
        return {**pod, "metadata": {**pod["metadata"], "labels": labels}, "spec": spec}

    world = settled().modify(0, edited)
    before = without_last_applied_and_version(world.pod(0))
    world.sync()
    assert without_last_applied_and_version(world.pod(0)) == before


TAMPERED = {
    "empty object": "{}",
    "no kind and name": '{"spec":{}}',
    "metadata of a wrong type": '{"apiVersion":"v1","kind":"Pod","metadata":5}',
    "metadata without a name": '{"apiVersion":"v1","kind":"Pod","metadata":{"labels":{"a":"b"}}}',
    "null fields": '{"apiVersion":null,"kind":null,"metadata":null,"spec":null}',
}


@pytest.mark.parametrize("text", TAMPERED.values(), ids=TAMPERED.keys())
def test_changed_last_applied_annotation_does_not_invalidate_the_response(text: str) -> None:
    """Damages Metacontroller's annotation on a pod: the response is still complete, and the pod can
    be updated.

    A child without a kind or a name would make the whole response invalid.
    """

    def tamper(pod: Document) -> Document:
        annotations = {**pod["metadata"]["annotations"], LAST_APPLIED: text}
        return {**pod, "metadata": {**pod["metadata"], "annotations": annotations}}

    world = settled(replicas=2).modify(0, tamper)
    before = without_last_applied_and_version(world.pod(0))
    answer = world.sync()
    assert sorted(desired(answer, "Pod")) == ["web-0", "web-1"]
    assert without_last_applied_and_version(world.pod(0)) == before
    world.sync()
    assert world.writes == []
    world.change(template=template("nginx:2")).settle()
    assert world.container(0)["image"] == "nginx:2"


@pytest.mark.parametrize("text", ["", "not json", "[1]", '"x"', "5", "null", '{"a":'])
def test_invalid_last_applied_annotation_does_not_affect_other_pods(text: str) -> None:
    """A text that is no JSON object in Metacontroller's annotation of one pod: the response has all
    pods.

    Metacontroller itself refuses to write a pod with such an annotation.
    """
    world = settled(replicas=2)
    annotations = {**world.pod(0)["metadata"]["annotations"], LAST_APPLIED: text}
    world.pods["web-0"]["metadata"]["annotations"] = annotations
    answer = world.hook.answer("/sync", world.request())
    assert sorted(desired(answer, "Pod")) == ["web-0", "web-1"]


def test_finalizers_of_the_template_stay_on_the_pod() -> None:
    body = template()
    body["metadata"]["finalizers"] = ["example.com/drain"]
    world = settled(template=body)
    world.sync()
    assert world.writes == []
    assert world.pod(0)["metadata"]["finalizers"] == ["example.com/drain"]


def test_finalizers_of_others_stay_on_the_pod() -> None:
    world = settled()
    world.pods["web-0"]["metadata"]["finalizers"] = ["example.com/other"]
    world.change(template=template("nginx:2")).settle()
    assert world.pod(0)["metadata"]["finalizers"] == ["example.com/other"]


# --- lists with duplicate merge keys --------------------------------------------------------------


def test_repeated_environment_variable_is_created_once_with_its_last_value() -> None:
    env = [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}, {"name": "A", "value": "3"}]
    world = settled(template=template(container={"env": env}))
    assert world.container(0)["env"] == [{"name": "B", "value": "2"}, {"name": "A", "value": "3"}]
    assert condition(world.parent["status"], "DuplicateMergeKeys") is None


BOTH = template(
    container={
        "ports": [
            {"containerPort": 53, "protocol": "TCP"},
            {"containerPort": 53, "protocol": "UDP"},
        ]
    }
)


def test_port_with_two_protocols_sets_a_condition_that_names_the_policy() -> None:
    world = World(tapp(template=BOTH))
    world.sync()
    found = condition(world.hook.sync(world.request()), "DuplicateMergeKeys")
    assert found is not None
    assert "spec.containers[app].ports" in found["message"]
    assert "admission policy" in found["message"]


def test_port_with_two_protocols_works_without_the_last_applied_annotation() -> None:
    world = World(tapp(template=BOTH), strip=True).settle()
    assert condition(world.parent["status"], "DuplicateMergeKeys") is None
    updated = json.loads(json.dumps(BOTH).replace("nginx:1.25", "nginx:2"))
    before = world.uids()
    world.change(template=updated).settle()
    assert world.uids() == before
    assert len(world.container(0)["ports"]) == 2


# --- new pods -------------------------------------------------------------------------------------


def new_pod(**spec: Any) -> Document:
    """Returns the pod that the first sync of a new TApp creates; `spec` has fields of the TApp's
    spec.
    """
    return desired(World(tapp(**spec)).sync(), "Pod")["web-0"]


def toleration_seconds(pod: Document) -> list[tuple[str | None, int | None]]:
    """Returns key and seconds of each toleration of a pod; None for a toleration without the
    field.
    """
    return [(item.get("key"), item.get("tolerationSeconds")) for item in pod["spec"]["tolerations"]]


def test_default_tolerations_are_added_if_the_template_has_tolerations() -> None:
    pod = new_pod(template=template(tolerations=[{"key": "gpu", "operator": "Exists"}]))
    assert toleration_seconds(pod) == [
        ("gpu", None),
        ("node.kubernetes.io/not-ready", 300),
        ("node.kubernetes.io/unreachable", 300),
    ]


def test_no_toleration_is_added_if_the_template_has_none() -> None:
    assert "tolerations" not in new_pod()["spec"]


@pytest.mark.parametrize(
    ("own", "added"),
    [
        ({"operator": "Exists"}, 0),
        ({"operator": "Exists", "effect": "NoExecute"}, 0),
        ({"operator": "Exists", "effect": "NoSchedule"}, 2),
        ({"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute"}, 1),
        ({"key": "node.kubernetes.io/unreachable", "operator": "Exists"}, 1),
    ],
    ids=["all taints", "all NoExecute taints", "NoSchedule", "not-ready", "unreachable"],
)
def test_default_tolerations_are_those_that_admission_would_add(own: Document, added: int) -> None:
    world = World(tapp(template=template(tolerations=[own])))
    pod = desired(world.sync(), "Pod")["web-0"]
    assert len(pod["spec"]["tolerations"]) == 1 + added
    assert world.pod(0)["spec"]["tolerations"] == pod["spec"]["tolerations"]


def test_new_pod_is_written_in_the_form_that_the_api_server_stores() -> None:
    spec = new_pod(
        template=template(
            container={"resources": {"requests": {"cpu": "1000m", "memory": "1024Mi"}}},
            volumes=None,
            initContainers=[],
            affinity={},
            hostNetwork=False,
        )
    )["spec"]
    assert spec == {
        "containers": [
            {
                "name": "app",
                "image": "nginx:1.25",
                "resources": {"requests": {"cpu": "1", "memory": "1Gi"}},
            }
        ]
    }


@pytest.mark.parametrize("seed", range(5))
def test_response_does_not_depend_on_the_order_of_children(seed: int) -> None:
    world = settled(replicas=12).change(template=template("nginx:2"))
    first = world.hook.post("/sync", world.request()).data
    pods = list(world.pods.items())
    random.Random(seed).shuffle(pods)
    world.pods = dict(pods)
    assert world.hook.post("/sync", world.request()).data == first


def test_late_response_is_still_a_valid_update() -> None:
    """Applies an old response to a pod that has been updated in the meantime: the update is still
    valid.
    """
    world = settled()
    stale = desired(world.hook.sync(world.request()), "Pod")["web-0"]
    world.change(template=template("nginx:2")).settle()
    now = world.pod(0)
    after = apply_update(now, labelled(stale, world.parent))
    assert after["spec"].keys() == now["spec"].keys()


def test_repeated_request_gets_the_same_response() -> None:
    world = settled(replicas=3).change(template=template("nginx:2"))
    request = world.request()
    answers = {world.hook.post("/sync", request).data for _ in range(3)}
    assert len(answers) == 1
    assert writes(request, json.loads(answers.pop())) == ["update Pod/web-0"]


def test_port_that_admission_has_added_twice_sets_a_condition() -> None:
    world = settled(template=template("dns:1", container={"ports": [{"containerPort": 53}]}))

    def double(pod: Document) -> Document:
        ports = pod["spec"]["containers"][0]["ports"]
        ports.append({"containerPort": 53, "protocol": "UDP"})
        return pod

    world.modify(0, double)
    answer = world.hook.sync(world.request())
    assert condition(answer, "DuplicateMergeKeys") is not None
