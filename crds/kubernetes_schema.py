"""Turns Kubernetes' own JSON schemas into structural schemas for a CRD.

The source is what the package kubernetes-validate ships: the schemas of the API server's types.
What is taken over is what catches mistakes (types, required fields, documentation). What could
refuse a template that the API server takes, today or in a later version, is left out.
"""

import json
import re
from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any, Final

from tapp.declared.placeholders import ANY, NUMBERS, WHOLE, Numbers
from tapp.kube.images import LONGEST

Schema = dict[str, Any]

KUBERNETES: Final = "1.37"  # The Kubernetes version whose pod and claim schemas the CRD carries

CORE: Final = "io.k8s.api.core.v1."
META: Final = "io.k8s.apimachinery.pkg.apis.meta.v1."

ANY_OBJECT: Final[Schema] = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}

QUANTITY: Final[Schema] = {
    # No type at all: `cpu: 0.5` is a JSON number that Kubernetes takes as a quantity, and the
    # usual `x-kubernetes-int-or-string` would refuse it. The pattern judges strings only.
    "x-kubernetes-preserve-unknown-fields": True,
    # With placeholders, what stands around them is what a quantity may have.
    "pattern": r"^\s*([+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([KMGTPE]i|[numkMGTPE]|[eE][+-]?[0-9]+)?"
    rf"|[-+.0-9A-Za-z]*({ANY}[-+.0-9A-Za-z]*)+)\s*$",
}

REPLACED: Final[dict[str, Schema]] = {
    "io.k8s.apimachinery.pkg.api.resource.Quantity": QUANTITY,
    "io.k8s.apimachinery.pkg.util.intstr.IntOrString": {"x-kubernetes-int-or-string": True},
    # Metadata inside a template is not treated as metadata by the API server: without a schema
    # of its own every label would be pruned.
    META + "ObjectMeta": {
        "type": "object",
        "x-kubernetes-preserve-unknown-fields": True,
        "properties": {
            "name": {"type": "string"},
            "labels": {"type": "object", "additionalProperties": {"type": "string"}},
            "annotations": {"type": "object", "additionalProperties": {"type": "string"}},
            "finalizers": {"type": "array", "items": {"type": "string"}},
        },
    },
    # Server-written, meaningless in a template; the old controller wrote `status: {}` there.
    CORE + "PersistentVolumeClaimStatus": ANY_OBJECT,
}

OMITTED: Final = {
    # Not allowed in a pod that is being created.
    CORE + "PodSpec": {"ephemeralContainers"},
    CORE + "PersistentVolumeClaim": {"apiVersion", "kind"},
}

NOT_REQUIRED: Final = {
    # Fields whose zero value the API server accepts: for its Go types "absent" is "zero".
    CORE + "HTTPHeader": {"value"},
    CORE + "ISCSIVolumeSource": {"lun"},
    CORE + "PreferredSchedulingTerm": {"preference"},
    CORE + "SleepAction": {"seconds"},
    CORE + "Sysctl": {"value"},
    # A TApp whose pods all come from the pool may have a `spec.template` with labels only, and
    # the old controller wrote `containers: null` into templates it found empty.
    CORE + "PodSpec": {"containers"},
}

REQUIRED: Final = {
    # Validation demands it in pods, and since 1.37 in templates, too; the schema does not.
    CORE + "ImageVolumeSource": {"reference"}
}
"""Fields that are there and not empty."""

UNIQUE_LISTS: Final = {
    # Lists that a server-side apply may merge by key. Only those whose keys the API server itself
    # demands and wants unique in every pod; ports, for one, may repeat a number (TCP and UDP).
    (CORE + "PodSpec", "containers"): ["name"],
    (CORE + "PodSpec", "initContainers"): ["name"],
    (CORE + "PodSpec", "volumes"): ["name"],
}

IMAGES: Final = {(CORE + "Container", "image"), (CORE + "ImageVolumeSource", "reference")}
"""Fields that have an image's reference."""

KEPT: Final = ("format", "x-kubernetes-map-type")


@cache
def _definitions() -> dict[str, Schema]:
    source = files("kubernetes_validate") / (
        f"kubernetes-json-schema/v{KUBERNETES}.0-local/_definitions.json"
    )
    definitions: dict[str, Schema] = json.loads(source.read_text(encoding="utf-8"))["$defs"]
    return definitions


def structural(name: str, *, described: bool = True) -> Schema:
    """The structural schema of a type (`CORE + "PodSpec"`), with short texts if `described`."""
    return _Translation(described).definition(name)


def summary(text: str) -> str:
    """The first sentence of a field's documentation.

    `kubectl apply` keeps a copy of the applied object in an annotation of at most 256 KiB. With
    whole texts the CRD would not fit, and only server-side apply could install it.
    """
    paragraph = re.sub(r"\s+", " ", text.split("\n\n", maxsplit=1)[0]).strip()
    end = re.search(r"(?<!e\.g)(?<!i\.e)(?<!etc)\.(?= [A-Z])", paragraph)
    return paragraph[: end.end()] if end else paragraph


def with_placeholders(template: Schema, fields: Mapping[str, Numbers] = NUMBERS) -> Schema:
    """The schema of a template, in which a placeholder may stand for the numbers in `fields`.

    Within a text it is alone, in some fields with digits around it.
    """
    for path, numbers in fields.items():
        *parents, last = path.split(".")
        node = template
        for part in parents:
            node = node["properties"][part.removesuffix("[]")]
            node = node["items"] if part.endswith("[]") else node
        field, digits = node["properties"][last], "[0-9]*" if numbers.mixed else ""
        if field.get("type") == "integer":
            del field["type"]
            field.pop("format", None)
            field |= {"x-kubernetes-int-or-string": True, "pattern": f"^{digits}{WHOLE}{digits}$"}
    return template


@dataclass(frozen=True)
class _Translation:
    described: bool

    def definition(self, name: str) -> Schema:
        if name in REPLACED:
            return deepcopy(REPLACED[name])
        source = _definitions()[name]
        translated = self._node(source, owner=name)
        if source.get("properties") is not None:
            required = {*source.get("required", ()), *REQUIRED.get(name, ())}
            required -= NOT_REQUIRED.get(name, set())
            if required:
                translated["required"] = sorted(required)
        return translated

    def _node(self, source: Schema, owner: str) -> Schema:
        node: Schema = {}
        if "$ref" in source:
            node = self.definition(source["$ref"].rsplit("/", maxsplit=1)[-1])
        elif "type" in source:
            node = self._typed(source, owner)
        else:
            message = f"{owner}: neither a type nor a reference: {sorted(source)}"
            raise ValueError(message)
        node.pop("description", None)
        if self.described and source.get("description"):
            node["description"] = summary(source["description"])
        return node

    def _typed(self, source: Schema, owner: str) -> Schema:
        kind = source["type"]
        # Null is an absent field: the API server prunes it before it validates.
        node: Schema = {"type": kind if isinstance(kind, str) else kind[0]}
        node |= {key: source[key] for key in KEPT if key in source}
        if node["type"] == "array":
            node["items"] = self._node(source["items"], owner)
        elif "additionalProperties" in source:
            node["additionalProperties"] = self._node(source["additionalProperties"], owner)
        elif node["type"] == "object":
            node["x-kubernetes-preserve-unknown-fields"] = True
            node["properties"] = {
                field: self._field(schema, owner, field)
                for field, schema in source.get("properties", {}).items()
                if field not in OMITTED.get(owner, ())
            }
        return node

    def _field(self, source: Schema, owner: str, field: str) -> Schema:
        node = self._node(source, owner)
        if (owner, field) in IMAGES:
            node["maxLength"] = LONGEST
        if field in REQUIRED.get(owner, ()):
            node["minLength"] = 1
        if (owner, field) in UNIQUE_LISTS:
            node["x-kubernetes-list-type"] = "map"
            node["x-kubernetes-list-map-keys"] = UNIQUE_LISTS[owner, field]
        return node
