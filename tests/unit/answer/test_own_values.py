"""Tests that values of one pod, such as its name and its uid, never reach another pod (promise
P1).
"""

import json
from typing import Any

import pytest

from simulator.objects.objects import with_meta
from tapp.declared.revision import revisions
from tests.builders import Document, crashing, refused, tapp, template, without_last_applied
from tests.unit.hooks.memo import assert_same_responses
from tests.unit.world import World

RECORD = "apps.tkestack.io/in-place-update"


def assert_same_with_and_without_memo(world: World) -> None:
    """Checks that the service responds to the world's request in the same way with and without a
    memo.
    """
    assert_same_responses([world.request()])


def annotated(pod: Document, **annotations: str) -> Document:
    return with_meta(pod, annotations={**pod["metadata"]["annotations"], **annotations})


def pod_of_old_controller(pod: Document, body: Document) -> Document:
    """Returns the pod as the old controller would have created it from the template `body`."""
    labels = {
        **pod["metadata"]["labels"],
        **body["metadata"]["labels"],
        "tapp_template_hash_key": "3519815671",
        "tapp_uniq_hash_key": "1129474381",
    }
    annotations = body["metadata"].get("annotations") or {}
    pod = with_meta(without_last_applied(pod), labels=labels, annotations=annotations)
    containers = [
        {**container, "image": item["image"]}
        for container, item in zip(
            pod["spec"]["containers"], body["spec"]["containers"], strict=True
        )
    ]
    return {**pod, "spec": {**pod["spec"], **body["spec"], "containers": containers}}


FOREIGN = ['web-2"%', "{}", "web-\\u0041", "web-a\\n", "web--1", "web-1 ", "\\"]


@pytest.mark.parametrize("replicas", [0, 3], ids=["no instances", "three instances"])
def test_pods_with_unusual_names_are_kept(replicas: int) -> None:
    """Adds pods whose names need escapes in JSON, or appear nowhere else in the pod: the response
    keeps them.
    """
    world = World(tapp(replicas=3)).settle()
    pod = world.pod(2)
    bare = with_meta(without_last_applied(pod), uid="f0e1")
    world.change(replicas=replicas)
    for names in ([FOREIGN[0]], FOREIGN, FOREIGN[::-1], FOREIGN[1:2]):
        foreign = {name: with_meta(bare, name=name) for name in names}
        document = world.request()
        document["children"]["Pod.v1"] |= {f"shop/{name}": item for name, item in foreign.items()}
        (_, answer), *_ = assert_same_responses([document])
        children = json.loads(answer)["children"]
        assert {child["metadata"]["name"] for child in children} >= set(names)


TEMPLATES: dict[str, Any] = {
    "label": lambda id: template("nginx", labels={"app": "web", "pod": f"web-{id}"}),
    "image": lambda id: template(f"web-{id}:1"),
    "node": lambda id: template("nginx", nodeName=f"n{id}"),
    "instance number": lambda id: template("nginx", annotations={"tapp_instance_key": str(id)}),
    "pod index": lambda id: template(
        "nginx", nodeSelector={"apps.kubernetes.io/pod-index": str(id)}
    ),
    "JSON text": lambda id: template("nginx", annotations={"note": f'{{"revision":"{id}"}}'}),
}


@pytest.mark.parametrize("own", TEMPLATES)
@pytest.mark.parametrize("id", [0, 1, 2])
def test_only_the_pod_of_the_old_controller_that_matches_the_template_is_adopted(
    own: str, id: int
) -> None:
    """Three pods of the old controller differ in one text, which contains their number.

    With the template of one of them, only this pod is adopted.
    """
    body = TEMPLATES[own]
    world = World(tapp(replicas=3, template=template())).settle()
    for number in range(3):
        world.modify(number, lambda pod, number=number: pod_of_old_controller(pod, body(number)))  # type: ignore[misc]
    world.change(template=body(id))
    assert_same_with_and_without_memo(world)
    adopted = [number for number, does in world.decisions().items() if does.startswith("Adopt")]
    assert adopted == [id]


@pytest.mark.parametrize("strip", [False, True], ids=["last-applied kept", "last-applied stripped"])
def test_emptied_update_record_does_not_affect_other_pods(strip: bool) -> None:
    strategy = {"maxUnavailable": 3}
    world = World(tapp(replicas=3, updateStrategy=strategy), strip=strip).settle()
    world.change(template=template("nginx:2")).settle()
    world.modify(1, lambda pod: annotated(pod, **{RECORD: ""}))
    assert_same_with_and_without_memo(world)
    world.modify(1, crashing)
    assert_same_with_and_without_memo(world)
    world.change(template=template("nginx:3")).sync()
    assert_same_with_and_without_memo(world)


@pytest.mark.parametrize("name", ["v1", "1"])
def test_revision_that_contains_the_name_of_a_pod_stays_unchanged(name: str) -> None:
    """Names the TApp so that the name of a pod, such as `v1-0`, is the beginning of a revision.

    The labels of all pods have the whole revision.
    """
    bodies = [template(f"nginx:{tag}") for tag in range(100)]
    before = next(body for body in bodies if not revisions(body)[0].startswith("v1-0"))
    after = next(body for body in bodies if revisions(body)[0].startswith("v1-0"))
    parent = tapp(replicas=3, template=before, updateStrategy={"maxUnavailable": 3})
    parent["metadata"]["name"] = name
    world = World(parent).settle()
    world.change(template=after)
    assert_same_with_and_without_memo(world)
    world.settle()
    assert_same_with_and_without_memo(world)
    labels = {pod["metadata"]["labels"]["tapp_template_hash_key"] for pod in world.pods.values()}
    assert labels == {revisions(after)[0]}


@pytest.mark.parametrize("strip", [False, True], ids=["last-applied kept", "last-applied stripped"])
def test_namespace_with_the_name_of_a_pod_stays_unchanged(strip: bool) -> None:
    parent = tapp(replicas=3)
    parent["metadata"]["namespace"] = "web-0"
    world = World(parent, strip=strip).settle()
    assert_same_with_and_without_memo(world)
    world.change(template=template("nginx:2")).settle()
    assert_same_with_and_without_memo(world)


def test_first_of_two_ready_conditions_counts() -> None:
    """A pod has two conditions of type Ready: the first one counts.

    The API server refuses such a status, so any fixed choice is fine.
    """
    world = World(tapp(replicas=1)).settle()
    no = {"type": "Ready", "status": "False"}

    def twice(pod: Document) -> Document:
        status = pod["status"]
        return {**pod, "status": {**status, "conditions": [no, *status["conditions"]]}}

    world.modify(0, twice)
    assert world.sync()["status"]["readyReplicas"] == 0


def test_failed_pod_without_a_node_does_not_get_the_node_of_another_pod() -> None:
    """A pod that failed without a node gets the same response with and without a memo.

    Such a pod has failed for another reason than a rejection by a kubelet.
    """
    world = World(tapp(replicas=3, template=template(restartPolicy="Never"))).settle()
    world.modify(1, lambda pod: refused(pod, bound=False))
    world.modify(1, lambda pod: {**pod, "spec": {**pod["spec"], "nodeName": ""}})
    assert_same_with_and_without_memo(world)


COPIED_FROM_A_POD = {
    RECORD: '{"revision":"v1-0","containers":{}}',
    "apps.tkestack.io/template-images": '{"app":"other:1"}',
    "apps.tkestack.io/failures": "7",
    "apps.tkestack.io/drain": "v1-0",
    "apps.tkestack.io/lost-node": "2026-01-05T10:00:00Z",
    "metacontroller.k8s.io/last-applied-configuration": "{}",
}


def test_annotations_of_the_service_in_a_template_do_not_reach_pods() -> None:
    """A template has the service's annotations and label, which users copy from a running pod.

    New and updated pods do not have them, but have the users' own labels and annotations.
    """
    body = template(
        labels={"app": "web", "apps.tkestack.io/pod-status": "true"},
        annotations={**COPIED_FROM_A_POD, "note": "x"},
    )
    world = World(tapp(replicas=1, template=body)).settle()
    meta = world.pod(0)["metadata"]
    assert meta["labels"].keys().isdisjoint({"apps.tkestack.io/pod-status"})
    annotations = {
        key: text
        for key, text in meta["annotations"].items()
        if not key.startswith("metacontroller")
    }
    assert annotations == {"note": "x", "apps.tkestack.io/template-images": '{"app":"nginx:1.25"}'}
    world.change(
        template=template("nginx:2", annotations={**COPIED_FROM_A_POD, "note": "y"})
    ).settle()
    annotations = world.pod(0)["metadata"]["annotations"]
    assert annotations["note"] == "y"
    assert json.loads(annotations[RECORD])["revision"] != "v1-0"
    assert annotations.keys().isdisjoint(COPIED_FROM_A_POD.keys() - {RECORD, *annotations})


def test_pods_of_an_earlier_release_with_copied_annotations_are_up_to_date() -> None:
    """The revision of pods of an earlier release includes copied annotations: an upgrade updates no
    such pod.
    """
    body = template(annotations={**COPIED_FROM_A_POD, "note": "x"})
    assert revisions(body)[0] == "v1-e38c6bf2e48da1955f9b"  # such pods have this revision
    world = World(tapp(replicas=1, template=body)).settle()
    world.modify(0, lambda pod: annotated(pod, **{"apps.tkestack.io/failures": "7"}))
    uids = world.uids()
    world.sync()
    assert world.writes == []
    assert world.decisions() == {0: "Keep/UpToDate"}
    assert world.uids() == uids
