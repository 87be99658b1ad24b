"""The OpenAPI 3.1 document of the service, at `GET /openapi.json`.

The TApp's schema comes from the model that reads it; the rest is written down here, and the tests
hold every route and every answer against it.
"""

from functools import cache
from typing import Any

import msgspec

from hooks.explain import Explanation
from hooks.version import VERSION
from hooks.wire.decode import CLAIMS, PODS, REVISIONS, SERVICES
from tapp.spec.model import ObservedCondition, ObservedStatus, Parent, TApp

Schema = dict[str, Any]

_STRING: Schema = {"type": "string"}
_BOOLEAN: Schema = {"type": "boolean"}
_COUNT: Schema = {"type": "integer", "minimum": 0}
_STRINGS: Schema = {"type": "object", "additionalProperties": _STRING}
_NAMES: Schema = {"type": "array", "items": _STRING}
_METRICS = "text/plain"


@cache
def document() -> Schema:
    """The whole document; nobody may change it."""
    paths: Schema = {
        "/sync": _hook("sync", "SyncRequest", "SyncAnswer", "What should be there", "503"),
        "/finalize": _hook("finalize", "FinalizeRequest", "FinalizeAnswer", "What may stay"),
        "/customize": _hook("customize", "CustomizeRequest", "CustomizeAnswer", "What to show"),
        "/plan": _hook("plan", "SyncRequest", "Explanation", "What a sync would do, and why"),
        "/pod-status": _hook("pod-status", "PodRequest", "PodAnswer", "What a pod's status says"),
        "/healthz": _probe("healthz", "Health", "The process answers"),
        "/readyz": _probe("readyz", "Health", "The process is ready for hooks"),
        "/version": _probe("version", "Version", "Versions of the service and its libraries"),
        "/metrics": _probe("metrics", None, "Metrics in Prometheus' text format"),
        "/openapi.json": _probe("openapi", "Document", "This document"),
    }
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "TApp hooks",
            "version": VERSION,
            "summary": "Metacontroller's hooks for TApp",
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "paths": paths,
        "components": {
            "schemas": {**_models(), **_requests(), **_answers(), **_plan(), **_others()},
            "responses": _errors(),
            "securitySchemes": {
                "bearer": {
                    "type": "http",
                    "scheme": "bearer",
                    "description": "Where the service runs with TAPP_AUTH_TOKEN_FILE.",
                }
            },
        },
    }


# --- paths ----------------------------------------------------------------------------------------


def _hook(name: str, request: str, answer: str, summary: str, *more: str) -> Schema:
    errors = ("400", "401", "408", "411", "413", "415", "500", *more)
    return {
        "post": {
            "operationId": name,
            "summary": summary,
            "security": [{"bearer": []}, {}],
            "requestBody": {"required": True, "content": _json(request)},
            "responses": {
                "200": {"description": summary, "content": _json(answer)},
                **{code: {"$ref": f"#/components/responses/{code}"} for code in sorted(errors)},
            },
        }
    }


def _probe(name: str, answer: str | None, summary: str) -> Schema:
    content = {_METRICS: {"schema": _STRING}} if answer is None else _json(answer)
    return {
        "get": {
            "operationId": name,
            "summary": summary,
            "security": [],
            "responses": {"200": {"description": summary, "content": content}},
        }
    }


def _json(name: str) -> Schema:
    return {"application/json": {"schema": _ref(name)}}


def _ref(name: str) -> Schema:
    return {"$ref": f"#/components/schemas/{name}"}


def _errors() -> Schema:
    texts = {
        "400": "Not a request of Metacontroller's, or a spec that cannot be read",
        "401": "No valid bearer token",
        "408": "It has not arrived within TAPP_BODY_SECONDS",
        "411": "Without a Content-Length",
        "413": "Larger than TAPP_MAX_BODY_BYTES",
        "415": "Not JSON, or compressed",
        "500": "A bug; the log has more under the id",
        "503": "Claims are due, but the request does not show their Namespace",
    }
    challenge = {"WWW-Authenticate": {"required": True, "schema": {"const": "Bearer"}}}
    return {
        code: {
            "description": text,
            "content": _json("Error"),
            **({"headers": challenge} if code == "401" else {}),
        }
        for code, text in texts.items()
    }


# --- schemas --------------------------------------------------------------------------------------


def _object(required: Schema, optional: Schema | None = None, *, more: bool = False) -> Schema:
    schema: Schema = {"type": "object", "properties": {**required, **(optional or {})}}
    if required:
        schema["required"] = list(required)
    return schema if more else {**schema, "additionalProperties": False}


def _list(item: Schema) -> Schema:
    return {"type": "array", "items": item}


def _nullable(schema: Schema) -> Schema:
    return {"anyOf": [schema, {"type": "null"}]}


def _with_nulls(schema: Schema) -> Schema:
    """A field that may be null; where it is a map, its entries may be, too."""
    entries = schema.get("additionalProperties")
    if isinstance(entries, dict):
        schema = {**schema, "additionalProperties": _with_nulls(entries)}
    return _nullable(schema)


def _models() -> Schema:
    """The parent as `tapp.spec.model` reads it; a null is an absent field."""
    found: Schema = {}
    for model in (TApp, Parent):
        schema = model.model_json_schema(ref_template="#/components/schemas/{model}")
        found |= schema.pop("$defs", {})
        found[model.__name__] = schema
    for schema in found.values():
        properties = schema["properties"]
        for key in properties.keys() - schema.get("required", []):
            properties[key] = _with_nulls(properties[key])
    text = "As it was last written; what of it makes no sense is taken as absent."
    found["TApp"]["properties"]["status"] = {"description": text}
    for unused in (ObservedStatus, ObservedCondition):
        del found[unused.__name__]
    return found


def _requests() -> Schema:
    name = {"type": "string", "minLength": 1}
    child = _object(
        {"metadata": _object({"name": name}, {"namespace": _nullable(_STRING)}, more=True)},
        more=True,
    )
    some = _nullable(_ref("ObservedMap"))
    children = {
        "type": "object",
        "properties": dict.fromkeys((PODS, CLAIMS, REVISIONS, SERVICES), some),
        "additionalProperties": _nullable({"type": "object", "maxProperties": 0}),
    }
    related_namespaces = {"type": "object", "additionalProperties": _ref("RelatedNamespace")}
    others = {"type": "object", "description": "Not read."}
    classes = {
        "type": "object",
        "description": "Where claims may grow, its `allowVolumeExpansion` is read. One that "
        "cannot be read does not allow it.",
    }
    kinds = {
        "type": "object",
        "properties": {
            "Namespace.v1": related_namespaces,
            "StorageClass.storage.k8s.io/v1": classes,
        },
        "additionalProperties": others,
    }
    world = {"children": children}
    related = {"related": _nullable(kinds)}
    rest = {
        "controller": {"description": "Which children it declares; the rest is not read."},
        "finalizing": {"description": "Not read."},
    }
    return {
        "Observed": child,
        "RelatedNamespace": _object(
            {"metadata": _object({"name": _STRING}, {"uid": _nullable(_STRING)}, more=True)},
            more=True,
        ),
        "ObservedMap": {"type": "object", "additionalProperties": _ref("Observed")},
        "SyncRequest": _object({"parent": _ref("TApp"), **world}, {**related, **rest}, more=True),
        "FinalizeRequest": _object(
            {"parent": _ref("Parent"), **world}, {**related, **rest}, more=True
        ),
        "CustomizeRequest": _object({"parent": _ref("Parent")}, rest, more=True),
        "PodRequest": _object({"object": child}, rest, more=True),
    }


def _answers() -> Schema:
    metadata = _object(
        {"name": {"type": "string", "minLength": 1}},
        {"namespace": _STRING, "labels": {"type": "object"}, "annotations": {"type": "object"}},
        more=True,
    )
    child = _object(
        {
            "apiVersion": {"enum": ["v1", "apps/v1"]},
            "kind": {"enum": ["Pod", "PersistentVolumeClaim", "ControllerRevision", "Service"]},
            "metadata": metadata,
        },
        {"spec": {"type": "object"}, "data": {"type": "object"}, "revision": _COUNT},
        more=True,
    )
    status = {"type": "object", "description": "As the CustomResourceDefinition of TApps has it."}
    again = {"resyncAfterSeconds": {"type": "number", "exclusiveMinimum": 0}}
    children = _list(_ref("Child"))
    selector = _object(
        {"apiVersion": _STRING, "resource": _STRING},
        {"names": _NAMES, "namespace": _STRING, "labelSelector": {"type": "object"}},
    )
    return {
        "Child": child,
        "SyncAnswer": _object({"status": status, "children": children}, again),
        "FinalizeAnswer": _object(
            {"status": {"type": "object"}, "children": children, "finalized": _BOOLEAN}, again
        ),
        "CustomizeAnswer": _object({"relatedResources": _list(selector)}),
        "PodAnswer": _object({"status": {"description": "As observed, or with changes."}}, again),
    }


def _plan() -> Schema:
    """The explanation as `hooks.explain` types it."""
    template = "#/components/schemas/{name}"
    return msgspec.json.schema_components([Explanation], ref_template=template)[1]


def _others() -> Schema:
    short = {"type": "string", "maxLength": 600}
    return {
        "Error": _object({"error": {**short, "minLength": 1}}, {"path": short, "requestId": short}),
        "Health": _object({"status": {"const": "ok"}}),
        "Version": _object({"version": _STRING, "libraries": _STRINGS}),
        "Document": _object({"openapi": _STRING, "info": {"type": "object"}}, more=True),
    }
