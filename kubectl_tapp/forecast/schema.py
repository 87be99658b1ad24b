"""Checks a TApp from a file against the CRD's schema, and its pods against some API rules.

Used for plans without a cluster. From the schema it checks types, required fields, enums, patterns
and bounds. From the API server's rules for pods it checks fields with a few valid values, bounds of
numbers, and names of ports. It does not check rules between fields (CEL) and other rules of the API
server; `UNCHECKED` tells the user so.
"""

import re
from collections.abc import Iterator
from typing import Any

from kubectl_tapp.base import shipped
from kubectl_tapp.base.observed import Document
from tapp.kube.limits import PORT_NAME_LENGTH, is_port_name

UNCHECKED = (
    "no API server was asked: the CRD's rules between fields, most of Kubernetes' rules for pods, "
    "quotas, admission and your rights were not checked; plan with a cluster checks them"
)
_MAX_MISTAKES = 10  # The most mistakes that are listed
_TYPES: dict[str, tuple[type, ...]] = {
    "object": (dict,), "array": (list,), "string": (str,), "boolean": (bool,), "integer": (int,),
    "number": (int, float),
}  # fmt: skip
_VALID_VALUES: dict[str, tuple[str, ...]] = {
    "imagePullPolicy": ("Always", "IfNotPresent", "Never"),
    "protocol": ("TCP", "UDP", "SCTP"),
    "scheme": ("HTTP", "HTTPS"),
    "terminationMessagePolicy": ("File", "FallbackToLogsOnError"),
    "dnsPolicy": ("ClusterFirst", "ClusterFirstWithHostNet", "Default", "None"),
    "restartPolicy": ("Always", "OnFailure", "Never"),
    "whenUnsatisfiable": ("DoNotSchedule", "ScheduleAnyway"),
    "fsGroupChangePolicy": ("Always", "OnRootMismatch"),
    "effect": ("NoSchedule", "PreferNoSchedule", "NoExecute"),
    "preemptionPolicy": ("Never", "PreemptLowerPriority"),
}
"""Field of a pod to its valid values. Source: k8s.io/kubernetes, pkg/apis/core/validation."""
_BOUNDS: dict[str, tuple[int, int]] = {
    "containerPort": (1, 65535), "hostPort": (0, 65535),
    **dict.fromkeys(("runAsUser", "runAsGroup", "fsGroup"), (0, 2**31 - 1)),
    **dict.fromkeys(("initialDelaySeconds", "timeoutSeconds", "periodSeconds", "successThreshold",
                     "failureThreshold"), (0, 2**31 - 1)),
    **dict.fromkeys(("defaultMode", "mode"), (0, 0o777)),
    "activeDeadlineSeconds": (1, 2**31 - 1), "maxSkew": (1, 2**31 - 1), "weight": (1, 100),
}  # fmt: skip
"""Field of a pod to its least and greatest value. Source: k8s.io/kubernetes,
pkg/apis/core/validation."""
_FREE_FIELDS = ("labels", "annotations", "matchLabels", "nodeSelector", "limits", "requests")


def mistakes(tapp: Document) -> tuple[str, ...]:
    """Returns sentences about mistakes for which an API server would refuse the TApp."""
    versions = shipped.manifest(shipped.DEFINITION)["spec"]["versions"]
    schema = versions[0]["schema"]["openAPIV3Schema"]["properties"]["spec"]
    found: list[str] = list(_value_mistakes("spec", tapp.get("spec"), schema))
    spec = tapp.get("spec")
    if isinstance(spec, dict):
        pool = spec.get("templatePool")
        bodies = {"spec.template": spec.get("template")}
        if isinstance(pool, dict):
            bodies |= {f"spec.templatePool.{name}": body for name, body in pool.items()}
        for path, body in bodies.items():
            pod = body.get("spec") if isinstance(body, dict) else None
            found += _pod_mistakes(f"{path}.spec", pod)
    more = [f"and {len(found) - _MAX_MISTAKES} more"] if len(found) > _MAX_MISTAKES else []
    return (*found[:_MAX_MISTAKES], *more)


def _value_mistakes(path: str, value: Any, schema: Document) -> Iterator[str]:
    """Yields the mistakes of a value; null is ignored, because the API server drops most nulls."""
    if value is None:
        return
    if schema.get("x-kubernetes-int-or-string"):
        if isinstance(value, bool) or not isinstance(value, int | str):
            yield f"{path}: Invalid value: must be an integer or a string"
        return
    kind = schema.get("type")
    if kind in _TYPES and not _has_type(value, kind):
        yield f"{path}: Invalid value: must be of type {kind}"
        return
    yield from _bound_mistakes(path, value, schema)
    if isinstance(value, dict):
        properties, rest = schema.get("properties") or {}, schema.get("additionalProperties")
        for key in schema.get("required") or ():
            if value.get(key) is None:
                yield f"{path}.{key}: Required value"
        for key, item in value.items():
            inner = properties.get(key, rest)
            if isinstance(inner, dict):
                yield from _value_mistakes(f"{path}.{key}", item, inner)
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _value_mistakes(f"{path}[{index}]", item, schema.get("items") or {})


def _has_type(value: Any, kind: str) -> bool:
    if isinstance(value, bool) or kind == "boolean":
        return isinstance(value, bool) and kind == "boolean"
    return isinstance(value, _TYPES[kind])


def _bound_mistakes(path: str, value: Any, schema: Document) -> Iterator[str]:
    if (enum := schema.get("enum")) and value not in enum:
        yield f"{path}: Unsupported value: {value!r}: supported values: {', '.join(map(str, enum))}"
    if isinstance(value, str) and not re.search(schema.get("pattern") or "", value):
        yield f"{path}: Invalid value: {value!r}: must match {schema['pattern']}"
    if isinstance(value, int | float) and not isinstance(value, bool):
        least, most = schema.get("minimum"), schema.get("maximum")
        if least is not None and value < least:
            yield f"{path}: Invalid value: {value}: must be at least {least}"
        if most is not None and value > most:
            yield f"{path}: Invalid value: {value}: must be at most {most}"
    for key, kind, less in _SIZES:
        limit = schema.get(key)
        if limit is not None and isinstance(value, kind) and (len(value) - limit) * less > 0:
            yield f"{path}: Invalid value: {key} is {limit}, and it has {len(value)}"


_SIZES = (
    ("maxLength", str, 1), ("minLength", str, -1), ("maxItems", list, 1), ("minItems", list, -1),
    ("maxProperties", dict, 1),
)  # fmt: skip


def _pod_mistakes(path: str, value: Any, section: str = "") -> Iterator[str]:
    """Yields the mistakes in a pod spec; `section` is the field that contains `value`."""
    if isinstance(value, list):
        for index, item in enumerate(value):
            yield from _pod_mistakes(f"{path}[{index}]", item, section)
    if not isinstance(value, dict):
        return
    for key, item in value.items():
        if key not in _FREE_FIELDS:
            place = f"{path}.{key}"
            yield from _field_mistakes(place, key, item, section)
            yield from _pod_mistakes(place, item, key)


def _field_mistakes(path: str, key: str, value: Any, section: str) -> Iterator[str]:
    """Yields the mistakes of one field of a pod spec; `section` is the field that contains it."""
    if isinstance(value, str) and "$(" not in value:
        values = _VALID_VALUES.get(key)
        if values and value not in values:
            yield f"{path}: Unsupported value: {value!r}: supported: {', '.join(values)}"
        if section == "ports" and key == "name" and not is_port_name(value):
            yield (
                f"{path}: Invalid value: {value!r}: must be at most {PORT_NAME_LENGTH} lower "
                "case letters, digits and single '-', with a letter"
            )
    if isinstance(value, int) and not isinstance(value, bool) and key in _BOUNDS:
        least, most = _BOUNDS[key]
        if not least <= value <= most:
            yield f"{path}: Invalid value: {value}: must be between {least} and {most}"
        if key == "successThreshold" and section in ("livenessProbe", "startupProbe") and value > 1:
            yield f"{path}: Invalid value: {value}: must be 1"
