"""Writes the schema of a TApp as a JSON Schema (draft 7), for editors and for kubeconform.

`render` is the entry point. The source is the CRD's schema (`crds.schema`). Left out are
descriptions of the status, and keywords that only an API server knows. The JSON Schema is stricter
than the API server in one point: an unknown field is an error everywhere except in `metadata`. So
an editor finds a misspelled field, which the API server silently keeps or drops.
"""

import json
from typing import Any, Final

from crds.kubernetes_schema import Schema
from crds.schema import tapp_schema
from tapp.words.vocabulary import API_VERSION, KIND

COPIED: Final = (
    *("description", "type", "enum", "default", "pattern", "minimum", "maximum"),
    *("minLength", "maxLength", "maxItems", "maxProperties", "required"),
)
"""The keywords that mean the same in a CRD's schema and in a JSON Schema."""


def render() -> str:
    """Returns the content of the file with the JSON Schema."""
    schema = as_json_schema(tapp_schema())
    schema["properties"] |= {
        "apiVersion": schema["properties"]["apiVersion"] | {"const": API_VERSION},
        "kind": schema["properties"]["kind"] | {"const": KIND},
        "metadata": {"type": "object"},
    }
    document = {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": KIND,
        **schema,
        "required": ["apiVersion", "kind", "metadata", "spec"],
    }
    return json.dumps(document, indent=1, ensure_ascii=False) + "\n"


def as_json_schema(node: Schema) -> dict[str, Any]:
    """Returns the JSON Schema for a part of the CRD's schema.

    Each type also accepts null, because the API server treats a field that is null as not set. If
    the part names fields of an object, the object accepts only these fields.
    """
    translated: dict[str, Any] = {key: node[key] for key in COPIED if key in node}
    if node.get("x-kubernetes-int-or-string"):
        translated["type"] = ["integer", "string", "null"]
    elif "type" in node:
        translated["type"] = [node["type"], "null"]
    if "enum" in node:
        translated["enum"] = [*node["enum"], None]
    if "properties" in node:
        children = node["properties"].items()
        translated["properties"] = {name: as_json_schema(child) for name, child in children}
        if node["properties"]:
            translated["additionalProperties"] = False
    for key in ("items", "additionalProperties"):
        if key in node:
            translated[key] = as_json_schema(node[key])
    return translated
