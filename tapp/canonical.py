"""One form for all spellings of a template, so that re-formatting never restarts a pod.

Sources: Kubernetes' quantity format (apimachinery `resource.Quantity`), the `omitempty` tags of
`core/v1` types, design section 3.3. The hash in `revision.py` stands on this module: a change of
what it returns for a template restarts that template's pods, so test vectors freeze it.
"""

import re
from collections.abc import Callable
from fractions import Fraction
from typing import Any

_QUANTITY = re.compile(r"([+-]?)(\d+\.?\d*|\.\d+)(?:([eE][+-]?\d{1,2})|([KMGTPE]i|[numkMGTPE]?))")
_DECIMAL = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}

_QUANTITY_MAPS = {"requests", "limits", "overhead"}
_QUANTITY_FIELDS = {"sizeLimit", "divisor"}
_FREE_MAPS = {"labels", "annotations", "matchLabels", "nodeSelector", "volumeAttributes", "options"}
"""Maps of the author's own keys: every value in them means something, `""` too."""

_ABSENT_WHEN_EMPTY = {
    *("metadata", "labels", "annotations", "matchLabels", "nodeSelector", "affinity"),
    *("resources", "requests", "limits", "overhead", "securityContext", "dnsConfig"),
}
"""Maps that Kubernetes reads as absent when empty; `emptyDir: {}` and others are not."""

_FALSE = {"readOnly", "stdin", "stdinOnce", "tty", "hostNetwork", "hostPID", "hostIPC"}
_ZERO = {"hostPort"}
_BLANK = {
    *("subPath", "subPathExpr", "workingDir", "hostIP", "value", "medium", "effect", "operator"),
    *("serviceAccountName", "serviceAccount", "nodeName", "hostname", "subdomain"),
    *("schedulerName", "priorityClassName", "restartPolicy", "dnsPolicy", "imagePullPolicy"),
    *("protocol", "terminationMessagePath", "terminationMessagePolicy", "fsType"),
}
"""Fields whose zero value the API server drops: no pointer in `core/v1`, tagged `omitempty`."""


def parse_quantity(value: str | float) -> Fraction | None:
    """The number that a quantity such as `500m`, `1Gi` or `1e3` stands for; None if it is none."""
    match = _QUANTITY.fullmatch(str(value))
    if match is None:
        return None
    sign, digits, exponent, suffix = match.groups()
    number = Fraction(digits) * (-1 if sign == "-" else 1)
    if exponent is not None:
        return number * _power_of_ten(int(exponent[1:]))
    if suffix in _BINARY:
        return number * (1 << _BINARY[suffix])
    return number * _power_of_ten(_DECIMAL[suffix])


def _power_of_ten(exponent: int) -> Fraction:
    return Fraction(10**exponent) if exponent >= 0 else Fraction(1, 10**-exponent)


def quantity(value: str | float) -> str | float:
    """A quantity as the API server writes it back (`1000m` -> `1`, `1024Mi` -> `1Gi`).

    What is no quantity comes back as it was: the API server will say what is wrong with it.
    """
    number = parse_quantity(value)
    if number is None:
        return value
    text = str(value)
    if "e" in text.lower() and not text.endswith(("E", "Ei")):
        return value  # the exponent family keeps its own form; rare, and one harmless write
    binary = any(text.endswith(suffix) for suffix in _BINARY)
    if binary and number.denominator == 1 and abs(number) >= 1024:  # noqa: PLR2004 - one Ki
        return _binary(int(number))
    nano = -((-number * 10**9) // 1)  # finer than a nano is rounded up, as Kubernetes does
    return _decimal(int(nano))


def _binary(number: int) -> str:
    for suffix, power in reversed(_BINARY.items()):
        if number % (1 << power) == 0:
            return f"{number >> power}{suffix}"
    return str(number)


def _decimal(nano: int) -> str:
    if nano == 0:
        return "0"
    for suffix, power in reversed(_DECIMAL.items()):
        unit = 10 ** (power + 9)
        if nano % unit == 0:
            return f"{nano // unit}{suffix}"
    return f"{nano}n"


def _number(value: str | float) -> str:
    """A quantity as its bare number: the form in which two spellings compare."""
    number = parse_quantity(value)
    return str(value) if number is None else f"#{number}"


def canonical(value: Any) -> Any:
    """A template or claim spec in the one form that we create objects from.

    Nulls, empty lists, zero values of `omitempty` fields and maps that Kubernetes takes as absent
    are dropped, quantities written as the API server writes them, whole floats become ints.
    """
    return _walk(value, "", quantity)


def comparable(value: Any) -> Any:
    """The same, with quantities as bare numbers: equal exactly when the meaning is equal."""
    return _walk(value, "", _number)


def _walk(value: Any, key: str, write_quantity: Callable[[str | float], Any]) -> Any:
    if isinstance(value, dict):
        if key in _FREE_MAPS:
            return {name: item for name, item in value.items() if item is not None}
        quantities = key in _QUANTITY_MAPS
        result = {}
        for name, item in value.items():
            if item is None:
                continue
            if (quantities or name in _QUANTITY_FIELDS) and isinstance(item, (str, int, float)):
                result[name] = write_quantity(item)
                continue
            kept = _walk(item, name, write_quantity)
            if not _is_absent(name, kept):
                result[name] = kept
        return result
    if isinstance(value, list):
        return [_walk(item, "", write_quantity) for item in value if item is not None]
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value


def _is_absent(key: str, value: Any) -> bool:
    if value == [] and isinstance(value, list):
        return True
    if isinstance(value, dict):
        return not value and key in _ABSENT_WHEN_EMPTY
    if value is False:
        return key in _FALSE
    if isinstance(value, str):
        return not value and key in _BLANK
    return key in _ZERO and value == 0
