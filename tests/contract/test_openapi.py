"""The OpenAPI document tells the truth: every route is in it, and every answer is as it says."""

import json
import re
from typing import Any

import pytest
from jsonschema import Draft202012Validator, ValidationError
from openapi_spec_validator import OpenAPIV31SpecValidator
from werkzeug.test import TestResponse

from hooks.app import create_app
from hooks.customize import customize
from hooks.service.openapi import document
from hooks.service.settings import Settings
from tapp.spec.model import Parent
from tapp.world import Declared
from tests.builders import Document
from tests.contract.calls import ABOUT_TAPPS, CLIENT, HOOKS, client, good, post
from tests.fuzz.corpus import documents
from tests.fuzz.oracle import Service

OPENAPI: Document = json.loads(CLIENT.get("/openapi.json").data)
CORPUS = documents(Service().post)
ANSWERED_BY = {"/sync": ("/sync", "/plan"), "/finalize": ("/finalize", "/customize")}
REQUESTS = {path: OPENAPI["paths"][path]["post"]["requestBody"]["content"] for path in HOOKS}


def validator(schema: Document) -> Draft202012Validator:
    return Draft202012Validator({**schema, "components": OPENAPI["components"]})


def resolved(response: Document) -> Document:
    """A response, `$ref` or not."""
    name = response.get("$ref", "").rpartition("/")[2]
    found: Document = OPENAPI["components"]["responses"][name] if name else response
    return found


def check(path: str, response: TestResponse) -> int:
    """Holds an answer against what the document says of its route, status and content type."""
    operation = OPENAPI["paths"][path][response.request.method.lower()]
    told = resolved(operation["responses"][str(response.status_code)])
    schema = told["content"][response.mimetype]["schema"]
    is_json = response.mimetype == "application/json"
    validator(schema).validate(json.loads(response.data) if is_json else response.text)
    for header, entry in told.get("headers", {}).items():
        validator(entry["schema"]).validate(response.headers[header])
    return response.status_code


def test_it_is_an_openapi_document() -> None:
    OpenAPIV31SpecValidator(OPENAPI).validate()
    assert json.loads(json.dumps(document())) == OPENAPI


def test_every_route_is_in_it_and_nothing_else() -> None:
    routes = {
        (rule.rule, method.lower())
        for rule in create_app(Settings()).url_map.iter_rules()
        for method in (rule.methods or set()) - {"HEAD"}
    }
    told = {(path, method) for path, item in OPENAPI["paths"].items() for method in item}
    assert routes == told


def test_every_reference_leads_somewhere_and_every_schema_is_used() -> None:
    found = set(re.findall(r"#/components/([^\"]+)", json.dumps(OPENAPI)))
    components = OPENAPI["components"]
    assert found == {
        f"{kind}/{name}" for kind in ("schemas", "responses") for name in components[kind]
    }


def test_every_kind_that_customize_asks_for_is_in_it() -> None:
    parent = Parent.model_validate(good()["parent"])
    asked = customize(parent, True, Declared(growing_claims=True))["relatedResources"]
    kinds = OPENAPI["components"]["schemas"]["SyncRequest"]["properties"]["related"]["anyOf"][0]
    keys = {"namespaces": "Namespace.v1", "storageclasses": "StorageClass.storage.k8s.io/v1"}
    assert {keys[each["resource"]] for each in asked} == set(kinds["properties"])


@pytest.mark.parametrize("path", ["/healthz", "/readyz", "/version", "/metrics", "/openapi.json"])
def test_probes_answer_as_it_says(path: str) -> None:
    assert check(path, CLIENT.get(path)) == 200


@pytest.mark.parametrize("number", range(len(CORPUS)))
def test_real_requests_and_their_answers_are_as_it_says(number: int) -> None:
    meant, request = CORPUS[number]
    paths = ANSWERED_BY.get(meant, (meant,))
    for path in paths:
        content = OPENAPI["paths"][path]["post"]["requestBody"]["content"]
        validator(content["application/json"]["schema"]).validate(request)
        assert check(path, post(path, request)) == 200


def without(request: Document, *path: str) -> Document:
    inner: Any = request
    for key in path[:-1]:
        inner = inner[key]
    del inner[path[-1]]
    return request


@pytest.mark.parametrize("path", ABOUT_TAPPS)
@pytest.mark.parametrize("field", ["apiVersion", "kind", "metadata"])
def test_what_it_calls_no_request_is_refused(path: str, field: str) -> None:
    request = without(good(), "parent", field)
    with pytest.raises(ValidationError):
        validator(REQUESTS[path]["application/json"]["schema"]).validate(request)
    assert check(path, post(path, request)) == 400


@pytest.mark.parametrize("path", HOOKS)
def test_errors_are_as_it_says(path: str, tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    token = tmp_path / "token"
    token.write_text("a")
    assert check(path, client(auth_token_file=token).post(path)) == 401
    assert check(path, post(path, good(), "text/plain")) == 415
    small = client(max_body_bytes=1024)
    assert check(path, small.post(path, data=b" " * 2000, content_type="application/json")) == 413

    def bug(*_: Any) -> None:
        raise ZeroDivisionError

    request = good()
    for name in ("Request", "customize_parent", "answer_pod_status"):
        monkeypatch.setattr(f"hooks.app.{name}", bug)
    assert check(path, post(path, request)) == 500


def test_a_missing_namespace_is_as_it_says() -> None:
    number = next(i for i, (_, item) in enumerate(CORPUS) if "volumeClaimTemplates" in str(item))
    request = json.loads(json.dumps(CORPUS[number][1]))
    request["related"] = {}
    assert check("/sync", post("/sync", request)) == 503
