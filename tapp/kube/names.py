"""Rules for names in Kubernetes (apimachinery, pkg/util/validation)."""

import re
from typing import Final

# Regular expression of a name without dots; the name also has at most `LABEL_LENGTH` characters.
DNS_LABEL: Final = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
LABEL_LENGTH: Final = 63
MAX_NAME: Final = 253
_SUBDOMAIN = re.compile(rf"{DNS_LABEL}(?:\.{DNS_LABEL})*+")
_LABEL = re.compile(DNS_LABEL)
_QUALIFIED = re.compile("[A-Za-z0-9]([-._A-Za-z0-9]{0,61}[A-Za-z0-9])?")


def is_subdomain(text: str) -> bool:
    """Returns True for a valid name of most kinds of objects (IsDNS1123Subdomain)."""
    return len(text) <= MAX_NAME and _SUBDOMAIN.fullmatch(text) is not None


def is_dns_label(text: str) -> bool:
    """Returns True for a valid name of a container, Service or host (IsDNS1123Label)."""
    return len(text) <= LABEL_LENGTH and _LABEL.fullmatch(text) is not None


def is_label_value(text: str) -> bool:
    """Returns True for a valid value of a label; it may be empty (IsValidLabelValue)."""
    return not text or _QUALIFIED.fullmatch(text) is not None


def is_label_key(text: str) -> bool:
    """Returns True for a valid key of a label (IsQualifiedName).

    A key is a name, with or without a prefix.
    """
    prefix, slash, name = text.rpartition("/")
    return (not slash or is_subdomain(prefix)) and _QUALIFIED.fullmatch(name) is not None
