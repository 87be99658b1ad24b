"""Lists the places of a request whose cost is measured: the fields of a TApp's spec and status, and
the labels and annotations that the service reads.

`every_field` is the entry point. The list comes from the CRD, the models and the vocabulary, so a
new field is measured without a change of this file.
"""

from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, Final, NamedTuple, get_args, get_origin

import yaml

from tapp.declared.observed import ObservedStatus
from tapp.words import vocabulary

Schema = dict[str, Any]
CRD: Final = Path(__file__).parents[2] / "crds" / "tapp.yaml"
_OPENED: Final = (
    "updateStrategy",
    "updateStrategy.forceUpdate",
    "updateStrategy.inPlaceUpdateStrategy",
    "disruptionBudget",
    "template",
    "template.metadata",
    "template.spec",
    "template.spec.containers",
    "serviceTemplate",
    "serviceTemplate.metadata",
    "serviceTemplate.spec",
    "volumeClaimTemplates",
    "volumeClaimTemplates.metadata",
    "volumeClaimTemplates.spec",
)
"""Paths of objects in the spec whose fields are measured one by one.

Every other object is measured as a single field.
"""


class Field(NamedTuple):
    """A place in a request, with the schema of its value.

    Attributes:
        where: `spec` or `status`, or the object that carries the label or annotation: `pod`, `tapp`
            or `template`.
        path: the keys below that object.
        schema: the JSON schema of the value, within the limits of a structural schema.
    """

    where: str
    path: tuple[str, ...]
    schema: Schema

    def __str__(self) -> str:
        return f"{self.where}.{'.'.join(self.path)}"


@cache
def spec_schema() -> Schema:
    """Returns the JSON schema of `spec` from the CRD."""
    (version, *_) = yaml.load(CRD.read_text(), yaml.CSafeLoader)["spec"]["versions"]
    found: Schema = version["schema"]["openAPIV3Schema"]["properties"]["spec"]
    return found


def every_field() -> list[Field]:
    """Returns all fields of the spec and the status, and all labels and annotations, in a fixed
    order.
    """
    return [*_spec((), spec_schema()), *_status(), *_names()]


def _spec(path: tuple[str, ...], schema: Schema) -> Iterator[Field]:
    if path and ".".join(path) not in _OPENED:
        yield Field("spec", path, schema)
        return
    if "x-kubernetes-preserve-unknown-fields" in schema:
        yield Field("spec", (*path, "unknown"), {"x-kubernetes-preserve-unknown-fields": True})
    inner = schema.get("items", schema)
    for name, part in inner["properties"].items():
        yield from _spec((*path, name), part)


def _status() -> Iterator[Field]:
    for name, field in ObservedStatus.model_fields.items():
        kind = get_args(field.annotation)[0] if get_origin(field.annotation) else field.annotation
        schema: Schema = {"type": "string"}
        if "dict" in str(field.annotation) or "dict" in str(kind):
            schema = {"type": "object", "additionalProperties": {"type": "string"}}
        if name == "conditions":
            texts = {key: {"type": "string"} for key in ("type", "status", "reason", "message")}
            schema = {"type": "array", "items": {"type": "object", "properties": texts}}
        yield Field("status", (field.alias or name,), schema)


def _names() -> Iterator[Field]:
    """Yields a field for each label and annotation of the vocabulary, on each object that may carry
    it.
    """
    for constant, value in sorted(vars(vocabulary).items()):
        if constant.isupper() and isinstance(value, str) and constant not in _OTHER_CONSTANTS:
            for where in ("pod", "template", "tapp"):
                yield Field(where, (value,), {"type": "string"})


_OTHER_CONSTANTS: Final = (
    "API_VERSION",
    "DEFAULT_TEMPLATE",
    "GROUP",
    "KIND",
    "NODE_LOST",
    "VALUE_KEY",
)
