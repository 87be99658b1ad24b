"""Converts Kubernetes' JSON schemas into structural schemas for a CRD.

`structural` is the entry point. The source is the package kubernetes-validate, which contains the
schemas of the API server's types. The conversion keeps the parts that find mistakes of users:
types, required fields, documentation. It omits all parts that could refuse a template that the API
server accepts, now or in a later version.
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

KUBERNETES: Final = "1.37"  # the Kubernetes version of the schemas in the CRD

CORE: Final = "io.k8s.api.core.v1."
META: Final = "io.k8s.apimachinery.pkg.apis.meta.v1."

ANY_OBJECT: Final[Schema] = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}

QUANTITY: Final[Schema] = {
    # `cpu: 0.5` is a JSON number that Kubernetes accepts as a quantity, and
    # `x-kubernetes-int-or-string` would refuse it. So the schema has no type, and the pattern
    # applies to strings only.
    "x-kubernetes-preserve-unknown-fields": True,
    # Between placeholders a quantity may have letters, digits, points and signs.
    "pattern": r"^\s*([+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([KMGTPE]i|[numkMGTPE]|[eE][+-]?[0-9]+)?"
    rf"|[-+.0-9A-Za-z]*({ANY}[-+.0-9A-Za-z]*)+)\s*$",
}

REPLACED: Final[dict[str, Schema]] = {
    "io.k8s.apimachinery.pkg.api.resource.Quantity": QUANTITY,
    "io.k8s.apimachinery.pkg.util.intstr.IntOrString": {"x-kubernetes-int-or-string": True},
    # The API server does not treat the metadata of a template as metadata. Without this schema it
    # would prune all labels.
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
    # The API server writes this status, so it has no meaning in a template. The old controller
    # wrote `status: {}` there.
    CORE + "PersistentVolumeClaimStatus": ANY_OBJECT,
}

OMITTED: Final = {
    # Not allowed in a new pod.
    CORE + "PodSpec": {"ephemeralContainers"},
    CORE + "PersistentVolumeClaim": {"apiVersion", "kind"},
}

NOT_REQUIRED: Final = {
    # Fields whose zero value the API server accepts, because a Go type cannot tell a zero value
    # from a missing one.
    CORE + "HTTPHeader": {"value"},
    CORE + "ISCSIVolumeSource": {"lun"},
    CORE + "PreferredSchedulingTerm": {"preference"},
    CORE + "SleepAction": {"seconds"},
    CORE + "Sysctl": {"value"},
    # If all pods of a TApp come from the pool, `spec.template` may have labels only. The old
    # controller wrote `containers: null` into empty templates.
    CORE + "PodSpec": {"containers"},
}

REQUIRED: Final = {
    # The API server requires the field in pods, and since 1.37 in templates, too; its schema does
    # not.
    CORE + "ImageVolumeSource": {"reference"}
}
"""Fields that must be present and not empty."""

UNIQUE_LISTS: Final = {
    # Lists that server-side apply merges by key. Only lists whose keys the API server requires to
    # be unique in every pod; ports, for example, may repeat a number (TCP and UDP).
    (CORE + "PodSpec", "containers"): ["name"],
    (CORE + "PodSpec", "initContainers"): ["name"],
    (CORE + "PodSpec", "volumes"): ["name"],
}

IMAGES: Final = {(CORE + "Container", "image"), (CORE + "ImageVolumeSource", "reference")}
"""Fields that contain an image reference."""

KEPT_KEYWORDS: Final = ("format", "x-kubernetes-map-type")


@cache
def _definitions() -> dict[str, Schema]:
    source = files("kubernetes_validate") / (
        f"kubernetes-json-schema/v{KUBERNETES}.0-local/_definitions.json"
    )
    definitions: dict[str, Schema] = json.loads(source.read_text(encoding="utf-8"))["$defs"]
    return definitions


def structural(name: str, *, described: bool = True) -> Schema:
    """Returns the structural schema of a Kubernetes type, as a CRD needs it.

    `name` is the name of the type, such as `CORE + "PodSpec"`. If `described` is True, the
    description of each field is the first sentence of its documentation. If it is False, fields
    have no description.
    """
    return _Translation(described).definition(name)


def first_sentence(text: str) -> str:
    """Returns the first sentence of the documentation of a field.

    `kubectl apply` stores a copy of the applied object in an annotation of at most 256 KiB. A CRD
    with the complete texts would be larger, so that only server-side apply could install it.
    """
    paragraph = re.sub(r"\s+", " ", text.split("\n\n", maxsplit=1)[0]).strip()
    end = re.search(r"(?<!e\.g)(?<!i\.e)(?<!etc)\.(?= [A-Z])", paragraph)
    return paragraph[: end.end()] if end else paragraph


def with_placeholders(template: Schema, fields: Mapping[str, Numbers] = NUMBERS) -> Schema:
    """Changes a schema so that fields for numbers also accept placeholders, and returns the schema.

    `fields` maps the path of each such field to the numbers that the field accepts. The field then
    also accepts a string that is one placeholder, or, in some fields, a placeholder between digits.
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
            node["description"] = first_sentence(source["description"])
        return node

    def _typed(self, source: Schema, owner: str) -> Schema:
        kind = source["type"]
        # The API server prunes null before it validates, so a schema that allows null needs only
        # its other type.
        node: Schema = {"type": kind if isinstance(kind, str) else kind[0]}
        node |= {key: source[key] for key in KEPT_KEYWORDS if key in source}
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
