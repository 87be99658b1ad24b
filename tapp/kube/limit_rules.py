"""Rules for single values, from which `limits.py` builds its tables.

A rule takes a value. It returns the requirement that the value does not meet, such as `it must be
1`, or an empty string if the API server accepts the value. Rules skip values of a wrong type,
because the CRD or the API server refuses them.
"""

import re
from collections.abc import Callable
from ipaddress import IPv6Address
from typing import Any, Final

from tapp.kube.canonical import nano
from tapp.kube.images import is_reference
from tapp.kube.names import (
    LABEL_LENGTH,
    MAX_NAME,
    is_dns_label,
    is_label_key,
    is_label_value,
    is_subdomain,
)

# A rule: returns the requirement that a value does not meet, or an empty string if the API server
# accepts the value.
Rule = Callable[[Any], str]

PORT_NAME_LENGTH = 15
LARGEST_NUMBER = 2**31 - 1
# Resources of a container that have no prefix, apart from huge pages.
STANDARD_RESOURCES = ("cpu", "memory", "ephemeral-storage")
# Printable ASCII without `=` (IsRelaxedEnvVarName).
_ENV_NAME = re.compile("[ -<>-~]+")
_CONFIG_KEY = re.compile("[-._a-zA-Z0-9]+")
_PORT_NAME = re.compile("(?=.*[a-z])[a-z0-9]++(?:-[a-z0-9]++)*+")
_SYSCTL = re.compile("[a-z0-9](?:[-_a-z0-9]*[a-z0-9])?(?:[./][a-z0-9](?:[-_a-z0-9]*[a-z0-9])?)*+")
_IPV4 = re.compile(r"[0-9]{1,20}(?:\.[0-9]{1,20}){3}")
_LARGEST_BYTE = 255
_FINALIZERS = ("kubernetes", "orphan", "foregroundDeletion")


def is_port_name(text: str) -> bool:
    """Returns True if a port may have this name (IsValidPortName)."""
    return len(text) <= PORT_NAME_LENGTH and _PORT_NAME.fullmatch(text) is not None


def _is_config_key(text: str) -> bool:
    """Returns True if a text is a valid key in a ConfigMap or Secret (IsConfigMapKey)."""
    fits = len(text) <= MAX_NAME and _CONFIG_KEY.fullmatch(text) is not None
    return fits and text != "." and not text.startswith("..")


def _is_finalizer(text: str) -> bool:
    """Returns True if a text is a valid name of a finalizer.

    Only Kubernetes' own finalizers may have a name without a prefix.
    """
    return is_label_key(text) and ("/" in text or text in _FINALIZERS)


def _is_address(text: str) -> bool:
    """Returns True if a text is an IP address (IsValidIPForLegacyField).

    Unlike Python, Go accepts leading zeros in IPv4 addresses, and accepts no zones in IPv6
    addresses.
    """
    if _IPV4.fullmatch(text):
        return all(int(each) <= _LARGEST_BYTE for each in text.split("."))
    try:
        return "%" not in text and IPv6Address(text) is not None
    except ValueError:
        return False


def _text(fits: Callable[[str], bool], rule: str) -> Rule:
    """Returns the rule for a text field.

    An empty text is valid, because it means that the field is not set.

    Args:
        fits: returns True for a valid text.
        rule: the requirement, for the message about an invalid text.
    """

    def check(value: Any) -> str:
        return rule if isinstance(value, str) and value and not fits(value) else ""

    return check


def one_of(*allowed: str) -> Rule:
    """Returns the rule for a text field that accepts only the texts in `allowed`."""
    return _text(lambda text: text in allowed, f"it must be one of {', '.join(allowed)}")


def number(least: int, most: int = LARGEST_NUMBER) -> Rule:
    """Returns the rule for a field that accepts whole numbers from `least` to `most`."""

    def check(value: Any) -> str:
        wrong = type(value) is int and not least <= value <= most
        return f"it must be a number from {least} to {most}" if wrong else ""

    return check


def anything(_: Any) -> str:
    """Accepts any value: returns an empty string."""
    return ""


IMAGE: Final = _text(
    is_reference,
    "it is not an image reference, and no container runtime can pull it. A reference is "
    "REGISTRY/PATH:TAG or REGISTRY/PATH@sha256:DIGEST, with a path of lower-case letters and "
    "digits, a tag of at most 128 characters, and a digest of 64 hexadecimal digits",
)
LABEL: Final = _text(
    is_dns_label,
    f"at most {LABEL_LENGTH} lower-case letters, digits and '-' are allowed, "
    "with a letter or digit at both ends",
)
SUBDOMAIN: Final = _text(
    is_subdomain,
    f"at most {MAX_NAME} lower-case letters, digits, '-' and '.' are allowed, "
    "with a letter or digit at both ends of each part",
)
_KEY = (
    f"at most {LABEL_LENGTH} letters, digits, '-', '_' and '.' are allowed, with a letter or digit "
    "at both ends, behind an optional prefix that is a DNS name and ends with '/'"
)
QUALIFIED: Final = _text(is_label_key, _KEY)
LABEL_VALUE: Final = _text(
    is_label_value,
    f"at most {LABEL_LENGTH} letters, digits, '-', '_' and '.' are allowed, with a letter or digit "
    "at both ends",
)
FINALIZER: Final = _text(_is_finalizer, f"{_KEY}; the prefix is needed")
ENV_NAME: Final = _text(
    lambda text: _ENV_NAME.fullmatch(text) is not None,
    "only printable ASCII characters without '=' are allowed",
)
PORT_NAME: Final = _text(
    is_port_name,
    f"at most {PORT_NAME_LENGTH} lower-case letters, digits and single '-' are allowed, "
    "with at least one letter",
)
CONFIG_KEY: Final = _text(
    _is_config_key, f"at most {MAX_NAME} letters, digits, '-', '_' and '.' are allowed"
)
ADDRESS: Final = _text(_is_address, "it must be an IP address")
SYSCTL: Final = _text(
    lambda text: len(text) <= MAX_NAME and _SYSCTL.fullmatch(text) is not None,
    f"at most {MAX_NAME} lower-case letters, digits, '-' and '_' are allowed, in parts that '.' or "
    "'/' separates",
)
# Only paths inside the volume are valid (validateLocalDescendingPath).
INNER_PATH: Final = _text(
    lambda text: not text.startswith("/") and ".." not in text.split("/"),
    "it must be a relative path without '..'",
)
NO_BACKSTEPS: Final = _text(lambda text: ".." not in text.split("/"), "it must not contain '..'")
PORT: Final = number(1, 65_535)
NO_PORT: Final = number(0, 65_535)
ID: Final = number(0)


def port_or_name(value: Any) -> str:
    """Returns the requirement that a port number or port name does not meet, or an empty string."""
    return PORT_NAME(value) if isinstance(value, str) else PORT(value)


def one_success(value: Any) -> str:
    """Returns the requirement that a probe's `successThreshold` does not meet, or an empty string.

    The rule is for liveness and startup probes, which pass with their first success.
    """
    # The API server replaces 0 by 1.
    return "it must be 1" if type(value) is int and value not in (0, 1) else ""


def annotation_key(key: Any) -> str:
    """Returns the requirement that the key of an annotation does not meet, or an empty string."""
    # The API server converts annotation keys to lower case before it checks them.
    return QUALIFIED(key.lower())


# Fields of a pod that an environment variable may read (validEnvDownwardAPIFieldPathExpressions,
# ConvertDownwardAPIFieldLabel).
_FIELD_PATHS = (
    *("metadata.name", "metadata.namespace", "metadata.uid", "spec.nodeName", "spec.host"),
    *("spec.serviceAccountName", "status.hostIP", "status.hostIPs", "status.podIP"),
    "status.podIPs",
)
_VOLUME_FIELD_PATHS = (
    *("metadata.name", "metadata.namespace", "metadata.uid"),
    *("metadata.labels", "metadata.annotations"),
)
_SUBSCRIPTED = re.compile(r"metadata\.(labels|annotations)\['.*'\]", re.DOTALL)
FIELD_PATH: Final = _text(
    lambda text: text in _FIELD_PATHS or _SUBSCRIPTED.fullmatch(text) is not None,
    f"an environment variable can read only {', '.join(_FIELD_PATHS[:4])}, "
    f"{', '.join(_FIELD_PATHS[5:])}, metadata.labels['KEY'] and metadata.annotations['KEY']",
)


FIELD_PATH_OF_VOLUME: Final = _text(
    lambda text: text in _VOLUME_FIELD_PATHS or _SUBSCRIPTED.fullmatch(text) is not None,
    f"a volume can read only {', '.join(_VOLUME_FIELD_PATHS)}, metadata.labels['KEY'] and "
    "metadata.annotations['KEY']",
)
_READABLE = re.compile(
    f"(limits|requests)[.]({'|'.join(STANDARD_RESOURCES)}|hugepages-.*)", re.DOTALL
)
READ_AMOUNT: Final = _text(
    lambda text: _READABLE.fullmatch(text) is not None,
    f"it must be limits. or requests., followed by one of {', '.join(STANDARD_RESOURCES)}, "
    "hugepages-SIZE",
)
HEADER: Final = _text(
    lambda text: re.fullmatch("[-A-Za-z0-9]+", text) is not None,
    "only letters, digits and '-' are allowed",
)


def not_negative(value: Any) -> str:
    """Returns the requirement that a negative quantity does not meet, or an empty string."""
    wrong = isinstance(value, str | int | float) and (nano(str(value)) or 0) < 0
    return "it must not be negative" if wrong else ""
