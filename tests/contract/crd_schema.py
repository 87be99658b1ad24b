"""Reads the schema of the CRD, and validates specs with it."""

from collections.abc import Iterator
from typing import Any

import yaml

from crds import generate

Node = dict[str, Any]
CRD: Node = yaml.load(generate.PATH.read_text(encoding="utf-8"), yaml.CSafeLoader)
VERSION: Node = CRD["spec"]["versions"][0]
OPENAPI: Node = VERSION["schema"]["openAPIV3Schema"]
SPEC: Node = OPENAPI["properties"]["spec"]
STATUS: Node = OPENAPI["properties"]["status"]


def nodes(node: Node, path: str = "") -> Iterator[tuple[str, Node]]:
    """Yields this node of the schema and all nodes below it, each with its path.

    `path` is the path of this node; "" for the root.
    """
    yield path, node
    for name, child in node.get("properties", {}).items():
        yield from nodes(child, f"{path}.{name}")
    if "additionalProperties" in node:
        yield from nodes(node["additionalProperties"], f"{path}.*")
    if "items" in node:
        yield from nodes(node["items"], f"{path}[]")


ALL_NODES = list(nodes(OPENAPI))


def as_json_schema(node: Node) -> Node:
    """Returns a node of the schema as a JSON schema, without keywords that only Kubernetes
    knows.
    """
    if node.get("x-kubernetes-int-or-string"):
        return {"type": ["integer", "string"], **{k: node[k] for k in node if k == "pattern"}}
    said = {"type", "enum", "pattern", "minimum", "maximum", "required", "minLength", "maxLength"}
    plain = {key: value for key, value in node.items() if key in said}
    if "properties" in node:
        plain["properties"] = {
            name: as_json_schema(child) for name, child in node["properties"].items()
        }
        if not node.get("x-kubernetes-preserve-unknown-fields") and node is not OPENAPI:
            plain["additionalProperties"] = False
    for key in ("items", "additionalProperties"):
        if key in node:
            plain[key] = as_json_schema(node[key])
    return plain


def with_container(**fields: Any) -> Node:
    """Returns a spec whose template has a single container with these fields."""
    return {"template": {"spec": {"containers": [{"name": "main", **fields}]}}}
