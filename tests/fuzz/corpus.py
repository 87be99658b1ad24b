"""Builds the valid requests that the fuzzer changes; `documents` is the entry point.

Every child is the hook's own response after admission (`tests.builders`), at several stages of its
life.
"""

import json
from collections.abc import Callable, Iterator
from copy import deepcopy

import msgspec

from simulator.objects.objects import with_meta
from tests.builders import (
    DELETED,
    READY_SINCE,
    Document,
    claim_template,
    completed,
    crashing,
    request,
    running,
    stored,
    tapp,
    template,
    terminating,
    updated,
)

DRAIN = "apps.tkestack.io/drain"
GATES = ("apps.tkestack.io/InPlaceUpdateReady", "tkestack.io/InPlaceUpdate")
LOST = "apps.tkestack.io/lost-node"
RECORD = "apps.tkestack.io/in-place-update"
Post = Callable[[str, bytes], bytes]


def documents(post: Post) -> list[tuple[str, Document]]:
    """Returns pairs of an endpoint and a valid request; `post` sends a request to the service."""
    found = [*_lives(post), *_histories(post), *_exposed(post)]
    ends = [("/finalize", {**item, "finalizing": True}) for _, item in found[::3]]
    for _, item in ends[::2]:  # the others pass to another controller
        item["parent"] = with_meta(item["parent"], deletionTimestamp=DELETED)
    return [*found, *ends, *_drained(post)]


def _exposed(post: Post) -> Iterator[tuple[str, Document]]:
    """Yields requests with a Service for each instance: as requested, changed, and foreign."""
    ports = [{"port": "8$(tapp.index)", "targetPort": "$(tapp.values.port)"}]
    body = {"metadata": {"labels": {"app": "web"}}, "spec": {"type": "NodePort", "ports": ports}}
    parent = tapp(replicas=4, serviceTemplate=body, defaultValues={"port": "http"})
    asked = request(parent, services=[])
    answer = msgspec.json.decode(post("/sync", msgspec.json.encode(asked)))
    made = [stored(child, parent) for child in answer["children"]]
    services = [item for item in made if item["kind"] == "Service"]
    pods = [running(item) for item in made if item["kind"] == "Pod"]
    services[1]["spec"]["ports"][0]["port"] = 9
    services[2] = with_meta(services[2], annotations={})
    yield "/sync", asked
    yield "/sync", request(parent, pods, services=services)
    without = {**parent, "spec": {**parent["spec"], "serviceTemplate": None, "replicas": 2}}
    yield "/sync", request(without, pods, services=services)


def _drained(post: Post) -> Iterator[tuple[str, Document]]:
    """Yields requests with pods that leave their Services, were updated, or are on a lost node.

    The readiness gates of the pods are open, closed or missing.
    """
    body = template(readinessGates=[{"conditionType": gate} for gate in GATES])
    strategy = {"inPlaceUpdateStrategy": {"gracePeriodSeconds": 5}}
    spec: Document = {"replicas": 6, "updateStrategy": strategy, "forceDeletePod": True}
    pods, _ = _split(_children(post, tapp(**spec, template=body)))
    pods = [running(pod) for pod in pods]
    states: list[tuple[str, str | None, str]] = [
        ("True", None, ""),
        ("False", "v1-other", ""),
        ("False", None, '{"revision":"x","containers":{"app":{"id":"old","image":"nginx:1"}}}'),
        ("True", "v1-other", "{}"),
        ("", None, ""),
    ]
    for pod, (gate, drain, record) in zip(pods, states, strict=False):
        marks = {DRAIN: drain, RECORD: record}
        pod["metadata"]["annotations"] |= {key: text for key, text in marks.items() if text}
        if gate:
            pod["status"]["conditions"] += [
                {"type": one, "status": gate, "lastTransitionTime": READY_SINCE} for one in GATES
            ]
    _silence(pods[5])
    newer = tapp(**spec, template=deepcopy(body), generation=2)
    newer["spec"]["template"]["spec"]["containers"][0]["image"] = "nginx:2"
    yield "/sync", request(newer, pods)
    for pod in pods:
        asked = {"controller": {}, "object": pod, "attachments": {}, "related": {}}
        yield "/pod-status", {**asked, "finalizing": False}


def _histories(post: Post) -> Iterator[tuple[str, Document]]:
    """Yields requests with ControllerRevisions: none, up to date, too many, foreign ones, or one in
    deletion.
    """
    pool = {"a": template("a:1"), "b": template("b:1")}
    parent = tapp(replicas=3, templatePool=pool, templates={"1": "a"}, revisionHistoryLimit=2)
    yield "/sync", request(parent, revisions=[])
    answer = msgspec.json.decode(post("/sync", msgspec.json.encode(request(parent, revisions=[]))))
    children = [stored(child, parent) for child in answer["children"]]
    pods = [running(child) for child in children if child["kind"] == "Pod"]
    made = [child for child in children if child["kind"] == "ControllerRevision"]
    others = []
    for number in range(2, 9):
        older = deepcopy(made[number % 2])
        older["metadata"] |= {"name": f"web-older{number}", "uid": f"older-{number}"}
        older["metadata"]["labels"]["tapp_template_hash_key"] = f"v1-{number}"
        others.append({**older, "revision": number})
    odd = deepcopy(others[-1])
    odd["metadata"] |= {"name": "web-theirs", "labels": {}}
    going = terminating(deepcopy(others[-2]))
    going["metadata"]["name"] = "web-going"
    yield "/sync", request(parent, pods, revisions=made)
    yield "/sync", request(parent, pods, revisions=[*made, *others, odd, going])
    none = tapp(replicas=3, templatePool=pool, revisionHistoryLimit=0)
    yield "/sync", request(none, pods, revisions=[*made, *others])


def _silence(pod: Document) -> None:
    """Makes the pod's node silent for a long time, and marks the pod as lost."""
    pod["metadata"]["annotations"][LOST] = READY_SINCE
    pod["status"]["conditions"] += [
        {"type": one, "status": "True", "lastTransitionTime": READY_SINCE} for one in GATES
    ]
    for item in pod["status"]["conditions"]:
        if item["type"] == "Ready":
            item["status"] = "False"


def _children(post: Post, parent: Document) -> list[Document]:
    answer = msgspec.json.decode(post("/sync", msgspec.json.encode(request(parent))))
    return [stored(child, parent) for child in answer["children"]]


def _split(children: list[Document]) -> tuple[list[Document], list[Document]]:
    pods = [item for item in children if item["kind"] == "Pod"]
    return pods, [item for item in children if item["kind"] != "Pod"]


def _lives(post: Post) -> Iterator[tuple[str, Document]]:
    """Yields requests with pools, claims and sidecars, and with pods at every stage of their
    lives.
    """
    other = template("nginx:1.27", labels={"app": "web", "track": "canary"})
    spec: Document = {
        "replicas": 5,
        "template": template(
            sidecars=[{"name": "log", "image": "fluent-bit:3"}],
            initContainers=[
                {"name": "prepare", "image": "busybox:1"},
                {"name": "proxy", "image": "envoy:1", "restartPolicy": "Always"},
            ],
            tolerations=[{"key": "gpu", "operator": "Exists"}],
        ),
        "templatePool": {"canary": other, "unused": other},
        "templates": {"3": "canary"},
        "statuses": {"4": "Killed"},
        "updateStrategy": {"maxUnavailable": "50%", "forceUpdate": {"maxUnavailable": 1}},
        "volumeClaimTemplates": [claim_template()],
        "persistentVolumeClaimRetentionPolicy": {"whenScaled": "Delete", "whenDeleted": "Delete"},
        "serviceName": "web",
        "minReadySeconds": 5,
    }
    before = tapp(**{**spec, "statuses": {}})
    pods, claims = _split(_children(post, before))
    stages = [running(pods[0]), crashing(pods[1]), completed(pods[2], "Failed")]
    stages += [terminating(running(pods[3])), running(pods[4])]
    yield "/sync", request(before)
    yield "/sync", request(before, [running(pod) for pod in pods], claims, version=1)
    yield "/sync", request(tapp(**spec), stages, claims)
    yield "/sync", request(tapp(**{**spec, "replicas": 2}), stages, claims)
    newer = tapp(generation=2, **{**spec, "template": template("nginx:1.29", sidecars=[])})
    yield "/sync", request(newer, stages, claims[:2])
    yield "/sync", _rolling(post, spec)


def _rolling(post: Post, spec: Document) -> Document:
    """Returns a request during an update in place: pods have records, and containers still have to
    restart.

    `spec` is the spec of the TApp.
    """
    plain = {**spec, "templates": {}, "statuses": {}, "minReadySeconds": 0}
    parent = tapp(**plain)
    pods, claims = _split(_children(post, parent))
    pods = [running(pod) for pod in pods]
    newer = deepcopy(plain)
    newer["template"]["spec"]["containers"][0]["image"] = "nginx:1.26"
    after = tapp(generation=2, **newer)
    answer = json.loads(post("/sync", msgspec.json.encode(request(after, pods, claims))))
    wanted = {child["metadata"]["name"]: child for child in answer["children"]}
    pods = [updated(pod, wanted.get(pod["metadata"]["name"], pod), after) for pod in pods]
    return request(after, [running(pods[0]), *pods[1:]], claims)
