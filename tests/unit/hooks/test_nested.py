"""Tests JSON that is nested as deeply as the API server accepts: every request still gets a
response.
"""

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
"""Above the limits of templates, of recursive functions and of the decoder, and far above."""
MARK = b'"@@"'
LAST_APPLIED = "metacontroller.k8s.io/last-applied-configuration"
POD, CLAIM = ("Pod.v1", "shop/web-0"), ("PersistentVolumeClaim.v1", "shop/data-web-0")
SERVICE = ("Service.v1", "shop/web-0")


@cache
def settled_request() -> Document:
    """Returns the sync request of a TApp with two instances that have claims, Services and a
    history.
    """
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
def settled_children() -> set[tuple[str, str]]:
    return names_of_children(response_to("/sync", as_sent(settled_request())))


def _fields(*path: str) -> list[tuple[Any, ...]]:
    return [(*path, part, "x") for part in ("metadata", "spec", "status")]


REVISIONS = ("children", "ControllerRevision.apps/v1")
MANAGED = ("metadata", "managedFields", 0, "fieldsV1")
UNUSED_FIELDS: list[tuple[Any, ...]] = [
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


def with_nested_value(
    document: Document, path: tuple[Any, ...], depth: int, kind: str = "{}"
) -> bytes:
    """Returns the request with a value of this depth at `path`, as bytes.

    `kind` is `{}` for nested objects and `[]` for nested lists. If the path ends with an
    annotation, the value is written as JSON text.
    """
    at: Any = copied(document)
    whole = at
    for key in path[:-1]:
        at = at.setdefault(key, {}) if isinstance(at, dict) else at[key]
    at[path[-1]] = "@@"
    text = '{"a":' * depth + "1" + "}" * depth if kind == "{}" else "[" * depth + "]" * depth
    if path[-1] == LAST_APPLIED:
        text = json.dumps('{"metadata":{"labels":{}},"spec":{"x":' + text + "}}")
    return as_sent(whole).replace(MARK, text.encode())


def response_to(path: str, body: bytes) -> Document:
    response = HOOK.post(path, body)
    assert response.status_code == 200, response.data[:300]
    return dict(json.loads(response.data))


def names_of_children(answer: Document) -> set[tuple[str, str]]:
    return {(child["kind"], child["metadata"]["name"]) for child in answer["children"]}


@pytest.mark.parametrize("depth", DEPTHS)
@pytest.mark.parametrize("where", UNUSED_FIELDS, ids=lambda path: ".".join(map(str, path[:5])))
def test_deep_value_in_an_unused_field_changes_no_response(
    where: tuple[Any, ...], depth: int
) -> None:
    """Puts a deep value into fields that no rule reads: each endpoint responds as without it.

    A 400 of `/finalize` would keep the finalizer, and with it the namespace.
    """
    for kind in ("{}", "[]"):
        body = with_nested_value(settled_request(), where, depth, kind)
        assert names_of_children(response_to("/sync", body)) == settled_children()
        response_to("/plan", body)
        response_to("/customize", body)
        assert names_of_children(response_to("/finalize", body))


@pytest.mark.parametrize("depth", DEPTHS)
@pytest.mark.parametrize("what", TEMPLATES)
def test_template_that_is_too_deep_sets_a_condition_and_every_child_is_kept(
    what: str, depth: int
) -> None:
    body = with_nested_value(settled_request(), ("parent", *TEMPLATES[what]), depth)
    assert names_of_children(response_to("/sync", body)) == settled_children()
    new = request(settled_request()["parent"], services=[])
    answer = response_to("/sync", with_nested_value(new, ("parent", *TEMPLATES[what]), depth))
    told = [item["message"] for item in answer["status"]["conditions"] if "nested" in str(item)]
    assert told
    assert all(what.strip() in text or "serviceTemplate" in what for text in told)
    assert f"nested more than {DEEPEST} levels deep" in told[0]
    gone = copied(settled_request()["parent"])
    gone["metadata"]["deletionTimestamp"] = "2026-01-05T10:59:50Z"
    response_to(
        "/finalize",
        with_nested_value(
            {**settled_request(), "parent": gone}, ("parent", *TEMPLATES[what]), depth
        ),
    )


@pytest.mark.parametrize("depth", DEPTHS)
@pytest.mark.parametrize("where", _fields("object"), ids=lambda path: path[1])
def test_deeply_nested_pod_keeps_its_status(where: tuple[Any, ...], depth: int) -> None:
    """Sends a pod with a deep value to the pod-status hook.

    If the status itself is too deep, the response has null, which writes nothing. Otherwise it has
    the whole status.
    """
    asked = {"object": settled_request()["children"][POD[0]][POD[1]]}
    response = HOOK.post("/pod-status", with_nested_value(asked, where, depth))
    assert response.status_code == 200
    status = asked["object"]["status"]
    assert json.loads(response.data)["status"] == (None if where[1] == "status" else status)


def test_finished_instances_are_kept_in_a_status_with_a_deep_field() -> None:
    """A too deep field of the TApp's status counts as absent; the statuses of instances are still
    read.
    """
    world = World(tapp(replicas=2), hook=HOOK)
    world.parent["status"] = {"observedGeneration": 1, "statuses": {"1": "Succ", "2": "Running"}}
    body = with_nested_value(world.request(), ("parent", "status", "x"), 2_000)
    assert response_to("/sync", body)["status"]["statuses"]["1"] == "Succ"


def test_template_with_the_maximum_depth_is_used() -> None:
    world = World(tapp(), hook=HOOK)
    body = with_nested_value(world.request(), ("parent", "spec", "template", "x"), DEEPEST - 1)
    assert condition(response_to("/sync", body), "TemplateNotFound") is None
    body = with_nested_value(world.request(), ("parent", "spec", "template", "x"), DEEPEST)
    assert condition(response_to("/sync", body), "TemplateNotFound") is not None


DEEP = "[" * LEVELS
CUT: dict[str, tuple[str, str]] = {
    "maximum depth": (DEEP + "]" * LEVELS, DEEP + "]" * LEVELS),
    "one level too deep": ("[" + DEEP + "1" + "]" * LEVELS + "]", DEEP + "null" + "]" * LEVELS),
    "brackets in strings": ('["' + DEEP * 2 + '\\"[{"]', '["' + DEEP * 2 + '\\"[{"]'),
    "two values too deep": (
        DEEP + '{"a":[1]},2,{"b":3}' + "]" * LEVELS,
        DEEP + "null,2,null" + "]" * LEVELS,
    ),
    "truncated": (DEEP + '[["a', DEEP + "null"),
    "truncated in an escape": ('["a\\', '["a\\'),
    "empty": ("", ""),
}


@pytest.mark.parametrize(("text", "expected"), CUT.values(), ids=CUT)
def test_only_values_that_are_too_deep_are_replaced_by_null(text: str, expected: str) -> None:
    assert shallow(text.encode()) == expected.encode()


def test_depth_counts_objects_and_lists() -> None:
    value: Any = ["x"]
    for _ in range(DEEPEST - 1):
        value = {"a": value, "b": "text"}
    assert not is_too_deep(value)
    assert is_too_deep([value])
    assert not is_too_deep(None)
