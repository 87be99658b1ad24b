"""Builds the schema of a TApp from the models that parse it (`tapp/declared/model.py`).

`tapp_schema` is the entry point. A model has the type, limits, description and keywords of each of
its fields. Fields with Kubernetes' own types are plain maps in the models; this module inserts the
schemas of these types.
"""

import ast
from collections.abc import Iterator
from copy import copy
from inspect import getsource
from itertools import pairwise
from types import NoneType, UnionType
from typing import Any, Final, Literal, Union, get_args, get_origin

from annotated_types import Ge, Le
from pydantic import BaseModel
from pydantic.alias_generators import to_camel
from pydantic.fields import FieldInfo

from crds.kubernetes_schema import CORE, META, Schema, structural, with_placeholders
from tapp.declared import rules
from tapp.declared.model import TApp
from tapp.declared.placeholders import SERVICE_NUMBERS
from tapp.kube.names import MAX_NAME

SIMPLE_TYPES: Final = {str: "string", bool: "boolean"}


def tapp_schema() -> Schema:
    """Returns the OpenAPI schema of a TApp, as the CRD contains it."""
    fields = dict(_fields(TApp))
    return {
        "type": "object",
        "description": "TApp runs numbered instances, each of which may have its own pod template, "
        "and may be stopped, started and updated alone.",
        "properties": {
            "apiVersion": {
                "type": "string",
                "description": "Version of this API: apps.tkestack.io/v1.",
            },
            "kind": {"type": "string", "description": "TApp."},
            "metadata": {"type": "object"},
            "spec": _schema_of_field(fields["spec"], _kubernetes_schemas()),
            "status": _schema_of_field(fields["status"], {}),
        },
        "required": ["spec"],
        **rules.POD_HOSTNAMES,
    }


def _kubernetes_schemas() -> dict[str, Schema]:
    """Returns field of the spec -> schema, for fields whose types Kubernetes defines."""
    pod = CORE + "PodTemplateSpec"
    pooled = with_placeholders(structural(pod, described=False)) | rules.CONTAINERS
    claim = structural(CORE + "PersistentVolumeClaim")
    # CEL rules compare these names, and the API server needs a bound of a rule's cost.
    claim["properties"]["metadata"]["properties"]["name"]["maxLength"] = MAX_NAME
    service = {
        "type": "object",
        "description": "",
        "properties": {
            "metadata": structural(META + "ObjectMeta"),
            "spec": structural(CORE + "ServiceSpec") | rules.NO_SELECTOR,
        },
        "required": ["spec"],
    }
    return {
        "selector": structural(META + "LabelSelector"),
        "template": with_placeholders(structural(pod)),
        "templatePool": pooled,
        "volumeClaimTemplates": claim,
        "serviceTemplate": with_placeholders(service, SERVICE_NUMBERS),
    }


def _schema_of_field(field: FieldInfo, kubernetes_schema: Schema) -> Schema:
    """Returns the schema of one field of a model.

    Args:
        field: the field.
        kubernetes_schema: the schema of Kubernetes' type, if the field is a plain map. If the field
            is itself a model, this maps the names of the inner model's fields to their Kubernetes
            schemas.
    """
    kind = field.annotation
    alternatives = get_args(kind) if get_origin(kind) in (Union, UnionType) else (kind,)
    kinds = [each for each in alternatives if each is not NoneType]
    described: Schema = {"description": field.description} if field.description else {}
    extra: Any = field.json_schema_extra or {}
    if len(kinds) > 1:
        return {"x-kubernetes-int-or-string": True, **described, **extra}
    if field.annotation is not kinds[0]:
        field = FieldInfo.from_annotation(kinds[0])
    kind, parts = field.annotation, get_args(field.annotation)
    if kind is int:
        return _number(field.metadata, described, extra)
    if kind in SIMPLE_TYPES:
        return {"type": SIMPLE_TYPES[kind], **described, **extra}
    if get_origin(kind) is Literal:
        return {"type": "string", **described, "enum": list(parts), **extra}
    if isinstance(kind, type) and issubclass(kind, BaseModel):
        fields = {
            name: _schema_of_field(each, kubernetes_schema.get(name, {}))
            for name, each in _fields(kind)
        }
        return {"type": "object", **described, "properties": fields, **extra}
    if parts == (str, Any):
        return {**kubernetes_schema, **described, **extra}
    item_schema = _schema_of_field(FieldInfo.from_annotation(parts[-1]), kubernetes_schema)
    if get_origin(kind) is dict:
        return {"type": "object", **described, "additionalProperties": item_schema, **extra}
    if "x-kubernetes-list-map-keys" in extra:
        return {"type": "array", **described, **extra, "items": item_schema}
    return {"type": "array", **described, "items": item_schema, **extra}


def _number(limits: list[Any], described: Schema, extra: Schema) -> Schema:
    minimum = next(({"minimum": each.ge} for each in limits if isinstance(each, Ge)), {})
    maximum = next(({"maximum": each.le} for each in limits if isinstance(each, Le)), {})
    return {"type": "integer", "format": "int32", **described, **minimum, **extra, **maximum}


def _fields(model: type[BaseModel]) -> Iterator[tuple[str, FieldInfo]]:
    """Yields the JSON name and the definition of each field of a model, with its description.

    Fields that the model inherits are not included.
    """
    descriptions = _descriptions(model)
    for name, annotation in model.__annotations__.items():
        # A field that only the CRD has, and the service does not read, is a ClassVar of its type.
        declared = model.model_fields.get(name) or FieldInfo.from_annotation(*get_args(annotation))
        field = copy(declared)
        field.description = field.description or descriptions[name]
        yield field.alias or to_camel(name), field


def _descriptions(model: type[BaseModel]) -> dict[str, str]:
    """Returns field name -> description, for the fields of a model.

    The description is the string below the field.
    """
    source: Any = ast.parse(getsource(model)).body[0]
    return {
        ast.unparse(field.target): " ".join(ast.literal_eval(text.value).split())
        for field, text in pairwise(source.body)
        if isinstance(field, ast.AnnAssign) and isinstance(text, ast.Expr)
    }
