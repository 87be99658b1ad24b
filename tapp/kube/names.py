"""Names that Kubernetes takes (apimachinery, pkg/util/validation)."""

import re
from typing import Final

DNS_LABEL: Final = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
"""A name without dots, as a regular expression; it has at most `LABEL_LENGTH` characters."""
LABEL_LENGTH: Final = 63
MAX_NAME: Final = 253
_SUBDOMAIN = re.compile(rf"{DNS_LABEL}(\.{DNS_LABEL})*")
_LABEL = re.compile(DNS_LABEL)
_QUALIFIED = re.compile("[A-Za-z0-9]([-._A-Za-z0-9]{0,61}[A-Za-z0-9])?")


def is_subdomain(text: str) -> bool:
    """True for what most objects may be called (IsDNS1123Subdomain)."""
    return len(text) <= MAX_NAME and _SUBDOMAIN.fullmatch(text) is not None


def is_dns_label(text: str) -> bool:
    """True for the name of a container, a Service, a host (IsDNS1123Label)."""
    return len(text) <= LABEL_LENGTH and _LABEL.fullmatch(text) is not None


def is_label_value(text: str) -> bool:
    """True for the value of a label, which may be empty (IsValidLabelValue)."""
    return not text or _QUALIFIED.fullmatch(text) is not None


def is_label_key(text: str) -> bool:
    """True for the key of a label: a name, behind a subdomain and a slash or not."""
    prefix, slash, name = text.rpartition("/")
    return (not slash or is_subdomain(prefix)) and _QUALIFIED.fullmatch(name) is not None
