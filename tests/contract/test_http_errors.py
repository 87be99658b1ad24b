"""Tests that any request to any endpoint gets a valid JSON response, and the process stays healthy
(P7).
"""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.builders import Document
from tests.contract.calls import ABOUT_TAPPS, CLIENT, HOOKS, WITH_CHILDREN, check_error, good, post
from tests.hook_calls import desired
from tests.scenarios.life import manifest

# --- invalid JSON, and invalid requests -----------------------------------------------------------


@pytest.mark.parametrize("path", HOOKS)
@pytest.mark.parametrize(
    "body",
    [
        b"",
        b" ",
        b"{",
        b"[]",
        b"null",
        b"5",
        b'"text"',
        b"{}",
        b"\xff\xfe",
        b'{"parent": "\xff"}',
        b'{"parent": "\\ud800"}',
        b'{"parent": {}, "children": {}',
        b"{'parent': {}}",
        b'{"parent": NaN}',
        b"\x00",
        b"\xef\xbb\xbf{}",
        b'{"parent": {}}{"parent": {}}',
        b"<xml/>",
    ],
)
def test_bytes_that_are_no_valid_request_are_refused(path: str, body: bytes) -> None:
    check_error(post(path, body), 400)


@pytest.mark.parametrize("path", HOOKS)
@pytest.mark.parametrize("opening", [b"[", b'{"a":'], ids=["lists", "objects"])
def test_deep_nesting_is_refused(path: str, opening: bytes) -> None:
    for body in (opening * 100_000, b'{"parent":' + opening * 100_000):
        check_error(post(path, body), 400)
    assert CLIENT.get("/healthz").status_code == 200


@pytest.mark.parametrize("depth", [100, 400, 900, 3000, 50_000])
@pytest.mark.parametrize("place", ["template", "pod", "status", "annotation"])
def test_nesting_inside_a_request_is_processed_or_refused(depth: int, place: str) -> None:
    document = good()
    (pod,) = document["children"]["Pod.v1"].values()
    nested = b"[" * depth + b"]" * depth
    if place == "template":
        document["parent"]["spec"]["template"]["spec"]["extra"] = "@@"
    elif place == "pod":
        pod["spec"]["extra"] = "@@"
    elif place == "status":
        document["parent"]["status"] = {"statuses": "@@"}
    else:
        key = "metacontroller.k8s.io/last-applied-configuration"
        pod["metadata"]["annotations"][key] = nested.decode()
    body = json.dumps(document).encode().replace(b'"@@"', nested)
    response = post("/sync", body)
    if response.status_code == 200:
        assert sorted(desired(json.loads(response.data), "Pod")) == ["web-0"]
    else:
        check_error(response, 400)
    assert CLIENT.get("/healthz").status_code == 200


def test_field_of_ten_megabytes_is_processed_or_refused() -> None:
    long = "x" * 10_000_000
    document = good()
    document["parent"]["metadata"]["annotations"] = {"long": long}
    (pod,) = document["children"]["Pod.v1"].values()
    pod["status"]["message"] = long
    assert post("/sync", document).status_code == 200
    for path in (("parent", "kind"), ("parent", "spec", "replicas"), ("children", "Pod.v1")):
        check_error(post("/sync", put(good(), path, long)), 400)


def put(document: Document, path: tuple[str, ...], value: Any) -> Document:
    """Sets the value at a path in the document, and returns the document; `...` removes the
    value.
    """
    inner: Any = document
    for key in path[:-1]:
        inner = inner[key]
    if value is ...:
        del inner[path[-1]]
    else:
        inner[path[-1]] = value
    return document


PARENT = ("parent",)
META = ("parent", "metadata")


@pytest.mark.parametrize("hook", ABOUT_TAPPS)
@pytest.mark.parametrize(
    ("path", "value", "where"),
    [
        pytest.param(PARENT, ..., "parent", id="no parent"),
        pytest.param(PARENT, None, "parent", id="null parent"),
        pytest.param(PARENT, [], "parent", id="parent is a list"),
        pytest.param((*PARENT, "kind"), ..., "parent.kind", id="no kind"),
        pytest.param((*PARENT, "kind"), "Deployment", "parent.kind", id="another kind"),
        pytest.param((*PARENT, "apiVersion"), ..., "parent.apiVersion", id="no apiVersion"),
        pytest.param((*PARENT, "apiVersion"), "apps/v1", "parent.apiVersion", id="another group"),
        pytest.param(META, ..., "parent.metadata", id="no metadata"),
        pytest.param(META, "web", "parent.metadata", id="metadata is a string"),
        pytest.param((*META, "uid"), ..., "parent.metadata.uid", id="no UID"),
        pytest.param((*META, "uid"), "", "parent.metadata.uid", id="empty UID"),
        pytest.param((*META, "uid"), 5, "parent.metadata.uid", id="UID is a number"),
        pytest.param((*META, "name"), ..., "parent.metadata.name", id="no name"),
        pytest.param((*META, "namespace"), ..., "parent.metadata.namespace", id="no namespace"),
    ],
)
def test_parent_without_identity_is_refused_with_the_path(
    hook: str, path: tuple[str, ...], value: Any, where: str
) -> None:
    assert check_error(post(hook, put(good(), path, value)), 400)["path"].startswith(where)


@pytest.mark.parametrize("hook", WITH_CHILDREN)
@pytest.mark.parametrize(
    ("path", "value"),
    [
        pytest.param(("children",), ..., id="no children"),
        pytest.param(("children",), None, id="null children"),
        pytest.param(("children",), [], id="children is a list"),
        pytest.param(("children", "Pod.v1"), [], id="pods is a list"),
        pytest.param(("children", "Pod.v1"), "x", id="pods is a string"),
        pytest.param(("children", "Pod.v1", "shop/web-1"), None, id="null pod"),
        pytest.param(("children", "Pod.v1", "shop/web-1"), [], id="pod is a list"),
        pytest.param(("children", "Pod.v1", "shop/web-1"), {}, id="empty pod"),
        pytest.param(
            ("children", "Pod.v1", "shop/web-1"), {"metadata": {"name": ""}}, id="empty name"
        ),
        pytest.param(
            ("children", "Pod.v1", "shop/web-1"), {"metadata": {"name": 5}}, id="name is a number"
        ),
        pytest.param(
            ("children", "Pod.v1", "shop/other"),
            {"metadata": {"name": "web-0", "namespace": "shop"}},
            id="pod twice",
        ),
        pytest.param(
            ("children", "Pod.v1", "other/web-1"),
            {"metadata": {"name": "web-1", "namespace": "other"}},
            id="pod of another namespace",
        ),
        pytest.param(("children", "PersistentVolumeClaim.v1", "shop/data"), None, id="null claim"),
        pytest.param(
            ("children", "ConfigMap.v1"), {"shop/a": {"metadata": {"name": "a"}}}, id="another kind"
        ),
    ],
)
def test_invalid_or_repeated_children_are_refused(
    hook: str, path: tuple[str, ...], value: Any
) -> None:
    assert check_error(post(hook, put(good(), path, value)), 400)["path"].startswith("children")


SPEC = ("parent", "spec")


@pytest.mark.parametrize("hook", ["/sync", "/plan"])
@pytest.mark.parametrize(
    ("path", "value", "where"),
    [
        (SPEC, ..., "parent.spec"),
        (SPEC, [], "parent.spec"),
        ((*SPEC, "replicas"), "3", "parent.spec.replicas"),
        ((*SPEC, "replicas"), -1, "parent.spec.replicas"),
        ((*SPEC, "replicas"), 1.5, "parent.spec.replicas"),
        ((*SPEC, "replicas"), 10**30, "parent.spec.replicas"),
        ((*SPEC, "template"), "nginx", "parent.spec.template"),
        ((*SPEC, "templatePool"), [], "parent.spec.templatePool"),
        ((*SPEC, "templatePool"), {"a": "nginx"}, "parent.spec.templatePool.a"),
        ((*SPEC, "templates"), {"0": 1}, "parent.spec.templates.0"),
        ((*SPEC, "statuses"), {"0": True}, "parent.spec.statuses.0"),
        ((*SPEC, "updateStrategy"), {"maxUnavailable": []}, "parent.spec.updateStrategy.maxUn"),
        ((*SPEC, "minReadySeconds"), -5, "parent.spec.minReadySeconds"),
        ((*SPEC, "volumeClaimTemplates"), {}, "parent.spec.volumeClaimTemplates"),
        (
            (*SPEC, "persistentVolumeClaimRetentionPolicy"),
            {"whenDeleted": "Sometimes"},
            "parent.spec.persistentVolumeClaimRetentionPolicy.whenDeleted",
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else None,
)
def test_invalid_spec_is_refused_with_its_field(
    hook: str, path: tuple[str, ...], value: Any, where: str
) -> None:
    """An invalid spec gets 400 with the path of the field.

    Metacontroller keeps all children after a 4xx, and shows the error on the TApp.
    """
    assert check_error(post(hook, put(good(), path, value)), 400)["path"].startswith(where)


@pytest.mark.parametrize("path", HOOKS)
def test_internal_error_is_a_500_with_a_request_id_and_no_traceback(
    path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def bug(*_arguments: Any) -> None:
        raise ZeroDivisionError("secret detail")

    document = good()
    for name in ("Request", "customize_parent", "answer_pod_status"):
        monkeypatch.setattr(f"hooks.app.{name}", bug)
    response = post(path, document)
    body = check_error(response, 500)
    assert body["requestId"]
    assert b"secret" not in response.data


@pytest.mark.parametrize("path", HOOKS)
@given(body=st.binary(max_size=200))
def test_random_bytes_are_refused(path: str, body: bytes) -> None:
    check_error(post(path, body), 400)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=8,
)


def paths(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Returns the paths of all values in a document, beginning with the path of the document
    itself.
    """
    items: Any = ()
    if isinstance(value, dict):
        items = value.items()
    elif isinstance(value, list):
        items = enumerate(value)
    return [path, *(found for key, item in items for found in paths(item, (*path, key)))]


READ = ("parent", "children", "related", "object")
PLACES = [path for path in paths(good()) if path and path[0] in READ]


@given(st.sampled_from(PLACES), JSON)
def test_random_value_anywhere_in_a_request_is_processed_or_refused(
    path: tuple[Any, ...], value: Any
) -> None:
    """Replaces any value of a valid request by a random one, and sends the request to each
    endpoint.

    The response is never a 200 with fewer children, and an error is a short JSON document.
    """
    document = put(good(), path, value)
    for hook in HOOKS:
        response = post(hook, document)
        if response.status_code != 200:
            error = check_error(response, 400, 503)["error"]
            assert response.status_code == 400 or "Namespace" in error
        elif hook == "/sync":
            _check_kept(document, json.loads(response.data))
        elif hook == "/plan":
            assert json.loads(response.data).keys() >= {"instances", "budget", "claims", "refused"}


def typed(schema: Document, path: tuple[str, ...] = SPEC) -> Iterator[tuple[tuple[str, ...], str]]:
    """Yields the path and the type of each field of the spec in the CRD, without fields of
    Kubernetes itself.

    In a map, the entry "0" represents all entries.
    """
    yield path, schema.get("type", "")
    if "x-kubernetes-preserve-unknown-fields" not in schema:
        fields = {**schema.get("properties", {}), "0": schema.get("additionalProperties")}
        for name, field in fields.items():
            if field is not None and not field.get("x-kubernetes-int-or-string"):
                yield from typed(field, (*path, name))


CRD: Document = manifest("crds/tapp.yaml")["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
FIELDS = [
    (path, kind)
    for path, kind in typed(CRD["properties"]["spec"])
    if "serviceTemplate" not in path[:-1]  # fields of Kubernetes, like pod templates
]
TYPES = {"object": dict, "array": list, "string": str, "boolean": bool, "integer": int}


OTHERS = (True, 0, 1, 1.0, 1.5, "", "1", "true", "Retain", [], [1], {}, {"0": 1}, {"0": {}})
"""Values that a lenient parser would convert to another type."""


@pytest.mark.parametrize(("path", "kind"), FIELDS, ids=[".".join(path[1:]) for path, _ in FIELDS])
def test_value_of_another_type_is_refused_at_its_field(path: tuple[str, ...], kind: str) -> None:
    """Sets each field of the spec to values of other types: each gets 400 with the path of the
    field.

    A TApp that is older than the CRD may have such values.
    """
    for value in (each for each in OTHERS if type(each) is not TYPES[kind]):
        document = good()
        inner = document
        for key in path[:-1]:
            inner = inner.setdefault(key, {})
        inner[path[-1]] = value
        assert check_error(post("/plan", document), 400)["path"] == ".".join(path), value


def _check_kept(document: Document, answer: Document) -> None:
    spec = document["parent"]["spec"]
    replicas = spec.get("replicas")
    completed = [
        pod for pod in (document["children"].get("Pod.v1") or {}).values() if _has_ended(pod)
    ]
    if replicas is None or replicas > 0:
        template = good()["parent"]["spec"]["template"]
        same = spec.get("template") == template and not completed
        if same and not spec.get("statuses") and document["children"].get("Pod.v1"):
            assert desired(answer, "Pod")


def _has_ended(pod: Any) -> bool:
    status = pod.get("status")
    return isinstance(status, dict) and status.get("phase") in ("Failed", "Succeeded")
