"""Limits of the API server that can be checked before an object is sent.

`limit_problem` compares a pod, a claim or a Service with a table that has the shape of the object.
The table has only limits of single values: lengths, allowed characters, ranges. Values that
admission may still add, and rules that depend on the cluster, are left to the API server.
Annotations have a limit on their sum, which includes Metacontroller's copy of the object:
`bytes_of` and `length_in_go` count it.

Sources: Kubernetes 1.34 to 1.37, pkg/apis/core/validation and apimachinery's ObjectMeta validation.
If the versions differ, the rule that accepts more counts.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

import msgspec

from tapp.kube.images import is_reference
from tapp.kube.names import (
    LABEL_LENGTH,
    MAX_NAME,
    is_dns_label,
    is_label_key,
    is_label_value,
    is_subdomain,
)
from tapp.kube.parts import maps_of
from tapp.words.quoted import quoted

# Returns the requirement that a value violates, or an empty string if the API server accepts it.
Rule = Callable[[Any], str]

# Most bytes of all annotations of an object, keys and values (TotalAnnotationSizeLimitB).
MOST_ANNOTATIONS: Final = 256 << 10
# Bytes of a copy that the admission policy `tapp-lean-pods` can remove in any case. The API server
# limits the cost of a policy's expression, and leaves a larger copy as it is.
MOST_CUT: Final = 300_000

# Characters of a wrong value that a message shows.
_SHOWN = 80
# Printable ASCII without `=` (IsRelaxedEnvVarName).
_ENV_NAME = re.compile("[ -<>-~]+")
_CONFIG_KEY = re.compile("[-._a-zA-Z0-9]+")
_PORT_NAME = re.compile("(?=.*[a-z])[a-z0-9]++(?:-[a-z0-9]++)*+")
PORT_NAME_LENGTH = 15
_LARGEST_ID = 2**31 - 1


def is_port_name(text: str) -> bool:
    """Returns True if a port may have this name (IsValidPortName)."""
    return len(text) <= PORT_NAME_LENGTH and _PORT_NAME.fullmatch(text) is not None


def _is_config_key(text: str) -> bool:
    """Returns True if a text may be a key of a ConfigMap or Secret (IsConfigMapKey)."""
    fits = len(text) <= MAX_NAME and _CONFIG_KEY.fullmatch(text) is not None
    return fits and text != "." and not text.startswith("..")


def _is_finalizer(text: str) -> bool:
    """Returns True if a text may be a finalizer: only Kubernetes' own may lack a prefix."""
    return is_label_key(text) and ("/" in text or text in _FINALIZERS)


_FINALIZERS = ("kubernetes", "orphan", "foregroundDeletion")


def _text(fits: Callable[[str], bool], rule: str) -> Rule:
    """Returns the rule for a text field.

    An empty text is valid, because it means that the field is not set.
    """

    def check(value: Any) -> str:
        return rule if isinstance(value, str) and value and not fits(value) else ""

    return check


def _number(least: int, most: int) -> Rule:
    def check(value: Any) -> str:
        wrong = type(value) is int and not least <= value <= most
        return f"it must be a number from {least} to {most}" if wrong else ""

    return check


_IMAGE = _text(
    is_reference,
    "it is not an image reference, and no container runtime can pull it. A reference is "
    "REGISTRY/PATH:TAG or REGISTRY/PATH@sha256:DIGEST, with a path of lower-case letters and "
    "digits, a tag of at most 128 characters, and a digest of 64 hexadecimal digits",
)
_LABEL = _text(
    is_dns_label,
    f"at most {LABEL_LENGTH} lower-case letters, digits and '-' are allowed, "
    "with a letter or digit at both ends",
)
_SUBDOMAIN = _text(
    is_subdomain,
    f"at most {MAX_NAME} lower-case letters, digits, '-' and '.' are allowed, "
    "with a letter or digit at both ends of each part",
)
_KEY = (
    f"at most {LABEL_LENGTH} letters, digits, '-', '_' and '.' are allowed, with a letter or digit "
    "at both ends, behind an optional prefix that is a DNS name and ends with '/'"
)
_VALUE = (
    f"at most {LABEL_LENGTH} letters, digits, '-', '_' and '.' are allowed, with a letter or digit "
    "at both ends"
)
_QUALIFIED = _text(is_label_key, _KEY)
_ENV = _text(
    lambda text: _ENV_NAME.fullmatch(text) is not None,
    "only printable ASCII characters without '=' are allowed",
)
_PORT_TEXT = _text(
    is_port_name,
    f"at most {PORT_NAME_LENGTH} lower-case letters, digits and single '-' are allowed, "
    "with at least one letter",
)
_KEY_OF_CONFIG = _text(
    _is_config_key, f"at most {MAX_NAME} letters, digits, '-', '_' and '.' are allowed"
)
_PORT, _NO_PORT, _ID = _number(1, 65_535), _number(0, 65_535), _number(0, _LARGEST_ID)


class _Entries:
    """The rules for the keys and the values of a map such as labels."""

    def __init__(self, key: Rule, value: Rule) -> None:
        self.key, self.value = key, value


def _annotation_key(key: Any) -> str:
    # The API server converts annotation keys to lower case before it checks them.
    return _QUALIFIED(key.lower())


def _anything(_: Any) -> str:
    return ""


_LABELS = _Entries(_QUALIFIED, _text(is_label_value, _VALUE))
_METADATA = {
    "name": _SUBDOMAIN,
    "labels": _LABELS,
    "annotations": _Entries(_annotation_key, _anything),
    "finalizers": [_text(_is_finalizer, f"{_KEY}; the prefix is needed")],
}
_READ = {"name": _SUBDOMAIN, "key": _KEY_OF_CONFIG}
_CONTAINER = {
    "name": _LABEL,
    "image": _IMAGE,
    "ports": [{"name": _PORT_TEXT, "containerPort": _PORT, "hostPort": _NO_PORT}],
    "env": [{"name": _ENV, "valueFrom": {"configMapKeyRef": _READ, "secretKeyRef": _READ}}],
    "securityContext": {"runAsUser": _ID, "runAsGroup": _ID},
}
_POD = {
    "metadata": _METADATA,
    "spec": {
        "hostname": _LABEL,
        "subdomain": _LABEL,
        "containers": [_CONTAINER],
        "initContainers": [_CONTAINER],
        "volumes": [{"name": _LABEL, "image": {"reference": _IMAGE}}],
        "nodeName": _SUBDOMAIN,
        "nodeSelector": _LABELS,
        "serviceAccountName": _SUBDOMAIN,
        "priorityClassName": _SUBDOMAIN,
        "runtimeClassName": _SUBDOMAIN,
        "readinessGates": [{"conditionType": _QUALIFIED}],
        "schedulingGates": [{"name": _QUALIFIED}],
        "resourceClaims": [{"name": _LABEL}],
        "hostAliases": [{"hostnames": [_SUBDOMAIN]}],
        "tolerations": [{"key": _QUALIFIED}],
        "activeDeadlineSeconds": _number(1, _LARGEST_ID),
        "securityContext": {"runAsUser": _ID, "runAsGroup": _ID, "fsGroup": _ID},
    },
}
_CLAIM = {"metadata": _METADATA, "spec": {"storageClassName": _SUBDOMAIN}}
_SERVICE = {
    "metadata": {**_METADATA, "name": _LABEL},
    "spec": {
        "ports": [{"name": _LABEL, "port": _PORT, "nodePort": _NO_PORT}],
        "externalName": _SUBDOMAIN,
    },
}
# Kind -> its limits, in the shape of the object; a list has the limits of each entry.
TABLES: Final[Mapping[str, Any]] = {
    "Pod": _POD,
    "PersistentVolumeClaim": _CLAIM,
    "Service": _SERVICE,
}


def limit_problem(kind: str, document: Mapping[str, Any]) -> str:
    """Returns the first value of an object that exceeds a limit, with its path and the limit.

    Returns an empty string if all values are valid. Values of a wrong type are skipped, because the
    CRD or the API server refuses them.
    """
    return _limit_problem(document, TABLES[kind], "")


def _limit_problem(value: Any, limits: Any, path: str) -> str:
    if isinstance(limits, _Entries):
        return _entries_problem(value, limits, path)
    if callable(limits):
        wrong = limits(value)
        return wrong and f"{path[1:]} is {quoted(value, _SHOWN)}: {wrong}"
    parts: Iterator[str] = iter(())
    if isinstance(limits, list) and isinstance(value, list):
        parts = (
            _limit_problem(item, limits[0], f"{path}[{index}]") for index, item in enumerate(value)
        )
    elif isinstance(limits, dict) and isinstance(value, dict):
        parts = (
            _limit_problem(value.get(key), limit, f"{path}.{key}")
            for key, limit in limits.items()
            if key in value
        )
    return next(filter(None, parts), "")


def missing_image(spec: Mapping[str, Any]) -> str:
    """Returns which container or image volume of a pod spec lacks its image, or an empty string.

    The API server refuses such a pod unless admission fills in the image.
    """
    for section in ("containers", "initContainers", "volumes"):
        for index, item in enumerate(maps_of(spec.get(section))):
            field: str = "image"
            holder: Any = item
            if section == "volumes":
                field, holder = "image.reference", item.get("image")
            if isinstance(holder, dict) and not holder.get(field.rpartition(".")[2]):
                path = f"spec.{section}[{index}].{field}"
                return f"{path} is missing, and the API server refuses a pod without it"
    return ""


def _entries_problem(value: Any, limits: _Entries, path: str) -> str:
    for key, text in (value if isinstance(value, dict) else {}).items():
        if wrong := limits.key(key):
            return f"{path[1:]} has the key {quoted(key, _SHOWN)}: {wrong}"
        if wrong := limits.value(text):
            return f"{path[1:]}[{quoted(key, _SHOWN)}] is {quoted(text, _SHOWN)}: {wrong}"
    return ""


def length_in_go(value: Any) -> int:
    """Returns the length of a value's JSON in bytes, as Go encodes it."""
    return go_length(msgspec.json.encode(value))


def go_length(text: bytes) -> int:
    """Returns the length that a JSON text has in bytes if Go encodes it.

    Go encodes each of `<`, `>`, `&`, U+2028 and U+2029 with six bytes.
    """
    return len(text) + sum([extra * text.count(part) for part, extra in _LONGER_IN_GO])


# Encoded character -> bytes that Go needs in addition.
_LONGER_IN_GO = ((b"<", 5), (b">", 5), (b"&", 5), ("\u2028".encode(), 3), ("\u2029".encode(), 3))


def bytes_of(annotations: Mapping[str, str]) -> int:
    """Returns the size of annotations in bytes, as the API server counts it: keys and values."""
    return sum([len(key.encode()) + len(text.encode()) for key, text in annotations.items()])
