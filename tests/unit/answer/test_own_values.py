"""Values that are a pod's own, or only look so: each pod is answered for itself (P1)."""

import json
from typing import Any

import pytest

from simulator.objects.objects import with_meta
from tapp.declared.revision import revisions
from tests.builders import Document, crashing, refused, tapp, template, without_last_applied
from tests.unit.hooks.memo import same as same_answers
from tests.unit.world import World

RECORD = "apps.tkestack.io/in-place-update"


def same(world: World) -> None:
    """The pods are answered, and judged, as they would be without a memo."""
    same_answers([world.request()])


def annotated(pod: Document, **annotations: str) -> Document:
    return with_meta(pod, annotations={**pod["metadata"]["annotations"], **annotations})


def unstamped(pod: Document, body: Document) -> Document:
    """A pod of the old controller that was made of `body`."""
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


@pytest.mark.parametrize("replicas", [0, 3])
def test_pods_may_be_called_anything(replicas: int) -> None:
    """Names that JSON escapes, or that stand nowhere in the pod, in one request and in the next."""
    world = World(tapp(replicas=3)).settle()
    pod = world.pod(2)
    bare = with_meta(without_last_applied(pod), uid="f0e1")
    world.change(replicas=replicas)
    for names in ([FOREIGN[0]], FOREIGN, FOREIGN[::-1], FOREIGN[1:2]):
        foreign = {name: with_meta(bare, name=name) for name in names}
        document = world.request()
        document["children"]["Pod.v1"] |= {f"shop/{name}": item for name, item in foreign.items()}
        (_, answer), *_ = same_answers([document])
        children = json.loads(answer)["children"]
        assert {child["metadata"]["name"] for child in children} >= set(names)


OWN: dict[str, Any] = {
    "a label": lambda id: template("nginx", labels={"app": "web", "pod": f"web-{id}"}),
    "an image": lambda id: template(f"web-{id}:1"),
    "a node": lambda id: template("nginx", nodeName=f"n{id}"),
    "a number": lambda id: template("nginx", annotations={"tapp_instance_key": str(id)}),
    "an index": lambda id: template(
        "nginx", nodeSelector={"apps.kubernetes.io/pod-index": str(id)}
    ),
    "a text": lambda id: template("nginx", annotations={"note": f'{{"revision":"{id}"}}'}),
}


@pytest.mark.parametrize("own", OWN)
@pytest.mark.parametrize("id", [0, 1, 2])
def test_a_template_that_only_one_old_pod_fits_is_adopted_by_that_one(own: str, id: int) -> None:
    """Pods of the old controller that differ only in what is each pod's own."""
    body = OWN[own]
    world = World(tapp(replicas=3, template=template())).settle()
    for number in range(3):
        world.modify(number, lambda pod, number=number: unstamped(pod, body(number)))  # type: ignore[misc]
    world.change(template=body(id))
    same(world)
    adopted = [number for number, does in world.decisions().items() if does.startswith("Adopt")]
    assert adopted == [id]


@pytest.mark.parametrize("strip", [False, True])
def test_a_record_that_somebody_emptied_is_nobody_else_s(strip: bool) -> None:
    strategy = {"maxUnavailable": 3}
    world = World(tapp(replicas=3, updateStrategy=strategy), strip=strip).settle()
    world.change(template=template("nginx:2")).settle()
    world.modify(1, lambda pod: annotated(pod, **{RECORD: ""}))
    same(world)
    world.modify(1, crashing)
    same(world)
    world.change(template=template("nginx:3")).sync()
    same(world)


@pytest.mark.parametrize("name", ["v1", "1"])
def test_a_revision_that_holds_a_pods_name_stays_as_it_is(name: str) -> None:
    """Revisions begin with `v1-`, and some with `v1-0`."""
    bodies = [template(f"nginx:{tag}") for tag in range(100)]
    before = next(body for body in bodies if not revisions(body)[0].startswith("v1-0"))
    after = next(body for body in bodies if revisions(body)[0].startswith("v1-0"))
    parent = tapp(replicas=3, template=before, updateStrategy={"maxUnavailable": 3})
    parent["metadata"]["name"] = name
    world = World(parent).settle()
    world.change(template=after)
    same(world)
    world.settle()
    same(world)
    labels = {pod["metadata"]["labels"]["tapp_template_hash_key"] for pod in world.pods.values()}
    assert labels == {revisions(after)[0]}


@pytest.mark.parametrize("strip", [False, True])
def test_a_namespace_that_is_called_like_a_pod_stays_as_it_is(strip: bool) -> None:
    parent = tapp(replicas=3)
    parent["metadata"]["namespace"] = "web-0"
    world = World(parent, strip=strip).settle()
    same(world)
    world.change(template=template("nginx:2")).settle()
    same(world)


def test_ready_is_what_the_first_of_two_ready_conditions_says() -> None:
    """No API server writes two; the first has always counted."""
    world = World(tapp(replicas=1)).settle()
    no = {"type": "Ready", "status": "False"}

    def twice(pod: Document) -> Document:
        status = pod["status"]
        return {**pod, "status": {**status, "conditions": [no, *status["conditions"]]}}

    world.modify(0, twice)
    assert world.sync()["status"]["readyReplicas"] == 0


def test_a_pod_without_a_node_is_not_on_anothers() -> None:
    """A pod that ended without a node was never refused by a kubelet."""
    world = World(tapp(replicas=3, template=template(restartPolicy="Never"))).settle()
    world.modify(1, lambda pod: refused(pod, bound=False))
    world.modify(1, lambda pod: {**pod, "spec": {**pod["spec"], "nodeName": ""}})
    same(world)


PASTED = {
    RECORD: '{"revision":"v1-0","containers":{}}',
    "apps.tkestack.io/template-images": '{"app":"other:1"}',
    "apps.tkestack.io/failures": "7",
    "apps.tkestack.io/drain": "v1-0",
    "apps.tkestack.io/lost-node": "2026-01-05T10:00:00Z",
    "metacontroller.k8s.io/last-applied-configuration": "{}",
}


def test_what_tells_of_one_pod_reaches_none_through_a_template() -> None:
    """Pasted from a live pod; the author's own labels and annotations stay."""
    body = template(
        labels={"app": "web", "apps.tkestack.io/pod-status": "true"},
        annotations={**PASTED, "note": "x"},
    )
    world = World(tapp(replicas=1, template=body)).settle()
    meta = world.pod(0)["metadata"]
    assert meta["labels"].keys().isdisjoint({"apps.tkestack.io/pod-status"})
    told = {
        key: text
        for key, text in meta["annotations"].items()
        if not key.startswith("metacontroller")
    }
    assert told == {"note": "x", "apps.tkestack.io/template-images": '{"app":"nginx:1.25"}'}
    world.change(template=template("nginx:2", annotations={**PASTED, "note": "y"})).settle()
    told = world.pod(0)["metadata"]["annotations"]
    assert told["note"] == "y"
    assert json.loads(told[RECORD])["revision"] != "v1-0"
    assert told.keys().isdisjoint(PASTED.keys() - {RECORD, *told})


def test_pods_that_were_made_with_what_was_pasted_are_left_alone() -> None:
    """Their revision counted it: an upgrade finds them as they should be."""
    body = template(annotations={**PASTED, "note": "x"})
    assert revisions(body)[0] == "v1-e38c6bf2e48da1955f9b"  # frozen: it stands on such pods
    world = World(tapp(replicas=1, template=body)).settle()
    world.modify(0, lambda pod: annotated(pod, **{"apps.tkestack.io/failures": "7"}))
    uids = world.uids()
    world.sync()
    assert world.writes == []
    assert world.decisions() == {0: "Keep/UpToDate"}
    assert world.uids() == uids
