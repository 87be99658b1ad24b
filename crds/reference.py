"""Renders the fields of a TApp as a Markdown page, from the schema of the CRD.

`render` is the entry point.
"""

from collections.abc import Iterator
from typing import Any, Final

from crds.schema import tapp_schema

KUBERNETES: Final = {
    "template": "PodTemplateSpec",
    "templatePool": "map of PodTemplateSpec",
    "selector": "LabelSelector",
    "volumeClaimTemplates": "list of PersistentVolumeClaim",
    "serviceTemplate": "`metadata` and `spec` of a Service",
}
"""Fields of the spec whose own fields are defined by Kubernetes, so the page does not list them."""

HEAD: Final = """\
<!-- Generated from the CRD: do not edit. Change tapp/declared/model.py, then run: make generate -->
# API reference

`apiVersion: apps.tkestack.io/v1`, `kind: TApp`, short name `tapp`. The fields of pod templates and
claim templates are Kubernetes' own; `kubectl explain tapp.spec.template.spec` lists them. What must
hold between fields is checked by `kubectl apply`, with a message.
"""

Schema = dict[str, Any]


def render() -> str:
    """Returns the Markdown of the reference page, with a table of spec fields and one of status
    fields.
    """
    fields = tapp_schema()["properties"]
    parts = [HEAD]
    for part in ("spec", "status"):
        parts += [f"## {part}\n", f"{fields[part]['description']}\n", "| field | type | meaning |"]
        parts += ["|---|---|---|", *_rows(fields[part], ""), ""]
    return "\n".join(parts).rstrip("\n") + "\n"


def _rows(schema: Schema, prefix: str) -> Iterator[str]:
    for name, field in schema["properties"].items():
        path = f"{prefix}{name}"
        kubernetes_type = KUBERNETES.get(name) if not prefix else None
        meaning = field["description"].replace("|", "\\|")
        default = field.get("default")
        if default is not None:
            meaning += f" Default: {default}."
        yield f"| `{path}` | {kubernetes_type or _type_name(field)} | {meaning} |"
        if kubernetes_type is None:
            yield from _rows_within(field, path)


def _rows_within(field: Schema, path: str) -> Iterator[str]:
    parts = ((field, "."), (field.get("additionalProperties"), "{}."), (field.get("items"), "[]."))
    for schema, suffix in parts:
        if isinstance(schema, dict) and "properties" in schema:
            yield from _rows(schema, f"{path}{suffix}")


def _type_name(field: Schema) -> str:
    if field.get("x-kubernetes-int-or-string"):
        return "integer or percentage"
    if "enum" in field:
        return " or ".join(f"`{value}`" for value in field["enum"])
    if field.get("format") == "date-time":
        return "time"
    values = field.get("additionalProperties")
    if isinstance(values, dict):
        return f"map of {_type_name(values)}"
    if field["type"] == "array":
        return f"list of {_type_name(field['items'])}"
    return str(field["type"])
