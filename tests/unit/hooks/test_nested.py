"""JSON as deep as the API server takes it: whoever wrote it, a TApp lives, and goes."""

import json
from functools import cache
from typing import Any

import pytest

from hooks.wire.decode import LEVELS, shallow
from tapp.kube.depth import DEEPEST, is_too_deep
from tests.builders import Document, as_sent, claim_template, copied, request, storage_class, tapp
from tests.sizes import cases
from tests.unit.world import Hook, World, condition

HOOK = Hook()
DEPTHS = cases((150, 460, 930, 990, 9_900), only_whole=(150, 930, 9_900))
"""Deeper than a template may be, than rules can go, about as deep as a decoder reads, and more."""
MARK = b'"@@"'
LAST_APPLIED = "metacontroller.k8s.io/last-applied-configuration"
POD, CLAIM = ("Pod.v1", "shop/web-0"), ("PersistentVolumeClaim.v1", "shop/data-web-0")
SERVICE = ("Service.v1", "shop/web-0")


@cache
def settled() -> Document:
    """Two instances with claims, Services and a history."""
    parent = tapp(
        replicas=2,
        volumeClaimTemplates=[claim_template()],
        serviceTemplate={"spec": {"ports": [{"port": 80}]}},
    )
    world = World(parent, hook=HOOK, history=True, classes=[storage_class()], exposing=True)
    found = world.settle().request()
    (revision,) = found["children"]["ControllerRevision.apps/v1"].values()
    theirs = {**revision, "metadata": {**revision["metadata"], "name": "theirs", "labels": {}}}
    found["children"]["ControllerRevision.apps/v1"]["shop/theirs"] = theirs
    return found


@cache
def kept() -> set[tuple[str, str]]:
    return children(answered("/sync", as_sent(settled())))


def _fields(*path: str) -> list[tuple[Any, ...]]:
    return [(*path, part, "x") for part in ("metadata", "spec", "status")]


REVISIONS = ("children", "ControllerRevision.apps/v1")
MANAGED = ("metadata", "managedFields", 0, "fieldsV1")
UNREAD: list[tuple[Any, ...]] = [
    *_fields("parent"),
    ("parent", *MANAGED),
    ("parent", "x"),
    ("parent", "status", "statuses", "0"),
    ("parent", "status", "conditions", 0, "x"),
    ("parent", "spec", "selector", "x"),
    ("parent", "spec", "updateStrategy", "x"),
    *(path for kind in (POD, CLAIM, SERVICE) for path in _fields("children", *kind)),
    *(("children", *kind, *MANAGED) for kind in (POD, CLAIM, SERVICE)),
    ("children", *POD, "spec", "containers", 0, "x"),
    ("children", *POD, "status", "conditions", 0, "x"),
    ("children", *POD, "status", "containerStatuses"),
    *(
        ("children", *kind, "metadata", "annotations", LAST_APPLIED)
        for kind in (POD, CLAIM, SERVICE)
    ),
    *((*REVISIONS, "shop/theirs", part) for part in ("data", "x")),
    (*REVISIONS, "shop/theirs", "metadata", "x"),
    ("related", "Namespace.v1", "shop", "x"),
    ("related", "StorageClass.storage.k8s.io/v1", "standard", "x"),
    ("controller", "spec", "x"),
    ("x",),
]
TEMPLATES: dict[str, tuple[Any, ...]] = {
    "template 'default'": ("spec", "template", "x"),
    "template 'default' ": ("spec", "template", "metadata", "x"),
    "template 'default'  ": ("spec", "template", "spec", "containers", 0, "x"),
    "claim template 'data'": ("spec", "volumeClaimTemplates", 0, "spec", "x"),
    "spec.serviceTemplate": ("spec", "serviceTemplate", "spec", "x"),
}


def nested(document: Document, path: tuple[Any, ...], depth: int, kind: str = "{}") -> bytes:
    """The request with something of this depth there; in an annotation, as JSON of it."""
    at: Any = copied(document)
    whole = at
    for key in path[:-1]:
        at = at.setdefault(key, {}) if isinstance(at, dict) else at[key]
    at[path[-1]] = "@@"
    text = '{"a":' * depth + "1" + "}" * depth if kind == "{}" else "[" * depth + "]" * depth
    if path[-1] == LAST_APPLIED:
        text = json.dumps('{"metadata":{"labels":{}},"spec":{"x":' + text + "}}")
    return as_sent(whole).replace(MARK, text.encode())


def answered(path: str, body: bytes) -> Document:
    response = HOOK.post(path, body)
    assert response.status_code == 200, response.data[:300]
    return dict(json.loads(response.data))


def children(answer: Document) -> set[tuple[str, str]]:
    return {(child["kind"], child["metadata"]["name"]) for child in answer["children"]}


@pytest.mark.parametrize("depth", DEPTHS)
@pytest.mark.parametrize("where", UNREAD, ids=lambda path: ".".join(map(str, path[:5])))
def test_what_nobody_can_read_keeps_nothing_from_being_answered(
    where: tuple[Any, ...], depth: int
) -> None:
    """It was a 400; where /finalize gave it, the finalizer stayed, and with it the namespace."""
    for kind in ("{}", "[]"):
        body = nested(settled(), where, depth, kind)
        assert children(answered("/sync", body)) == kept()
        answered("/plan", body)
        answered("/customize", body)
        assert children(answered("/finalize", body))


@pytest.mark.parametrize("depth", DEPTHS)
@pytest.mark.parametrize("what", TEMPLATES)
def test_a_template_that_is_too_deep_is_named_and_every_child_kept(what: str, depth: int) -> None:
    body = nested(settled(), ("parent", *TEMPLATES[what]), depth)
    assert children(answered("/sync", body)) == kept()
    new = request(settled()["parent"], services=[])
    answer = answered("/sync", nested(new, ("parent", *TEMPLATES[what]), depth))
    told = [item["message"] for item in answer["status"]["conditions"] if "nested" in str(item)]
    assert told
    assert all(what.strip() in text or "serviceTemplate" in what for text in told)
    assert f"nested more than {DEEPEST} levels deep" in told[0]
    gone = copied(settled()["parent"])
    gone["metadata"]["deletionTimestamp"] = "2026-01-05T10:59:50Z"
    answered(
        "/finalize", nested({**settled(), "parent": gone}, ("parent", *TEMPLATES[what]), depth)
    )


@pytest.mark.parametrize("depth", DEPTHS)
@pytest.mark.parametrize("where", _fields("object"), ids=lambda path: path[1])
def test_a_pod_of_any_depth_keeps_its_status(where: tuple[Any, ...], depth: int) -> None:
    """Null leaves a status alone, which is written whole or not at all."""
    asked = {"object": settled()["children"][POD[0]][POD[1]]}
    response = HOOK.post("/pod-status", nested(asked, where, depth))
    assert response.status_code == 200
    status = asked["object"]["status"]
    assert json.loads(response.data)["status"] == (None if where[1] == "status" else status)


def test_memory_of_finished_instances_outlives_a_deep_field_beside_it() -> None:
    """An unreadable part of a status is absent, and the rest of it is read."""
    world = World(tapp(replicas=2), hook=HOOK)
    world.parent["status"] = {"observedGeneration": 1, "statuses": {"1": "Succ", "2": "Running"}}
    body = nested(world.request(), ("parent", "status", "x"), 2_000)
    assert answered("/sync", body)["status"]["statuses"]["1"] == "Succ"


def test_a_template_of_as_many_levels_as_may_be_is_used() -> None:
    world = World(tapp(), hook=HOOK)
    body = nested(world.request(), ("parent", "spec", "template", "x"), DEEPEST - 1)
    assert condition(answered("/sync", body), "TemplateNotFound") is None
    body = nested(world.request(), ("parent", "spec", "template", "x"), DEEPEST)
    assert condition(answered("/sync", body), "TemplateNotFound") is not None


DEEP = "[" * LEVELS
CUT: dict[str, tuple[str, str]] = {
    "as deep as may be": (DEEP + "]" * LEVELS, DEEP + "]" * LEVELS),
    "one level more": ("[" + DEEP + "1" + "]" * LEVELS + "]", DEEP + "null" + "]" * LEVELS),
    "brackets in strings": ('["' + DEEP * 2 + '\\"[{"]', '["' + DEEP * 2 + '\\"[{"]'),
    "two of them": (
        DEEP + '{"a":[1]},2,{"b":3}' + "]" * LEVELS,
        DEEP + "null,2,null" + "]" * LEVELS,
    ),
    "cut off": (DEEP + '[["a', DEEP + "null"),
    "cut off in an escape": ('["a\\', '["a\\'),
    "nothing": ("", ""),
}


@pytest.mark.parametrize(("text", "cut"), CUT.values(), ids=CUT)
def test_only_what_is_too_deep_is_cut_off(text: str, cut: str) -> None:
    assert shallow(text.encode()) == cut.encode()


def test_depth_is_that_of_objects_and_lists() -> None:
    value: Any = ["x"]
    for _ in range(DEEPEST - 1):
        value = {"a": value, "b": "text"}
    assert not is_too_deep(value)
    assert is_too_deep([value])
    assert not is_too_deep(None)
