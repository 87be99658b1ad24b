"""One form for all spellings of a template, so that re-formatting never restarts a pod.

Sources: Kubernetes' quantity format (apimachinery `resource.Quantity`), the `omitempty` tags of
`core/v1` types. The hash in `revision.py` stands on this module: a change of
what it returns for a template restarts that template's pods, so test vectors freeze it.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Self

_Write = Callable[[str | float], Any]
_Known = dict[tuple[int, str], Any]  # (identity, key) of a part -> its form
Form = Callable[[Any], Any]

_QUANTITY = re.compile(
    r"([+-]?)(\d+(?:\.\d*)?|\.\d+)(?:([eE][+-]?\d{1,2})|([KMGTPE]i|[numkMGTPE]?))", re.ASCII
)
_LARGEST = 2**63 - 1  # Kubernetes' limit for any larger one that is written with a binary unit
_LONGEST = 400  # Characters of a quantity that is read; Python prints no number of 4,300 digits
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
_ZERO = {
    *("hostPort", "initialDelaySeconds", "timeoutSeconds", "periodSeconds"),
    *("successThreshold", "failureThreshold", "partition"),
}
_BLANK = {
    *("subPath", "subPathExpr", "workingDir", "hostIP", "value", "medium", "effect", "operator"),
    *("serviceAccountName", "serviceAccount", "nodeName", "hostname", "subdomain"),
    *("schedulerName", "priorityClassName", "restartPolicy", "dnsPolicy", "imagePullPolicy"),
    *("protocol", "terminationMessagePath", "terminationMessagePolicy", "fsType"),
}
"""Fields whose zero value the API server drops: no pointer in `core/v1`, tagged `omitempty`."""


def nano(value: str) -> int | None:
    """A quantity (`500m`, `1Gi`, `1e3`) in billionths, rounded up as by Kubernetes, or None."""
    match = _QUANTITY.fullmatch(value) if len(value) <= _LONGEST else None
    if match is None:
        return None
    sign, digits, exponent, suffix = match.groups()
    whole, _, fraction = digits.partition(".")
    number = int(whole + fraction or "0") * (-1 if sign == "-" else 1)
    power = 9 - len(fraction)
    if exponent is not None:
        power += int(exponent[1:])
    elif suffix in _BINARY:
        number <<= _BINARY[suffix]
    else:
        power += _DECIMAL[suffix]
    factor: int = 10 ** abs(power)
    return number * factor if power >= 0 else -(-number // factor)


def quantity(value: str | float) -> str | float:
    """A quantity as the API server writes it back (`1000m` -> `1`, `1024Mi` -> `1Gi`).

    What is no quantity comes back as it was: the API server will say what is wrong with it.
    """
    text = str(value)
    billionths = nano(text)
    if billionths is None:
        return value
    units = {unit: power + 9 for unit, power in _DECIMAL.items()}
    if "e" in text.lower() and not text.endswith(("E", "Ei")):
        units = {f"e{power}" if power else "": power + 9 for power in _DECIMAL.values()}
    if text.endswith("i"):
        billionths = min(billionths, _LARGEST * 10**9)
        if billionths % 10**9 == 0 and abs(billionths) >= 1024 * 10**9:
            return _in_units(billionths // 10**9, {"": 0, **_BINARY}, 2)
    return _in_units(billionths, units, 10)


def _in_units(number: int, units: dict[str, int], base: int) -> str:
    """A whole number in the largest unit that leaves it whole; `units` ascend."""
    if number == 0:
        return "0"
    unit = max(
        (unit for unit in units if number % base ** units[unit] == 0), key=lambda unit: units[unit]
    )
    return f"{number // base ** units[unit]}{unit}"


def _number(value: str | float) -> str:
    """A quantity as its bare number: the form in which two spellings compare."""
    billionths = nano(str(value))
    return str(value) if billionths is None else f"#{billionths}"


def canonical(value: Any) -> Any:
    """A template or claim spec in the one form that we create objects from.

    Nulls, empty lists, zero values of `omitempty` fields and maps that Kubernetes takes as absent
    are dropped, quantities written as the API server writes them, whole floats become ints.
    """
    return _walk(value, "", quantity, {})


def comparable(value: Any) -> Any:
    """The same, with quantities as bare numbers: equal exactly when the meaning is equal."""
    return _walk(value, "", _number, {})


@dataclass(frozen=True)
class Forms:
    """Both forms of specs: what has them is shared by all, and changed by nobody."""

    canonical: Form = canonical
    comparable: Form = comparable

    @classmethod
    def of_copies(cls, spec: Any) -> Self:
        """Forms of a spec's copies; for the parts that a copy shares with it, they are known."""
        return cls(_of_copies(spec, quantity), _of_copies(spec, _number))


FORMS = Forms()


def _of_copies(spec: Any, write_quantity: _Write) -> Form:
    known: _Known = {}
    _walk(spec, "", write_quantity, known, learns=True)

    def form(copy: Any, _alive: Any = spec) -> Any:
        return _walk(copy, "", write_quantity, known)

    return form


def _walk(
    value: Any, key: str, write_quantity: _Write, known: _Known, *, learns: bool = False
) -> Any:
    if not isinstance(value, (dict, list)):
        return int(value) if isinstance(value, float) and value.is_integer() else value
    if known and (found := known.get((id(value), key))) is not None:
        return found
    found = _walk_into(value, key, write_quantity, known, learns=learns)
    if learns:
        known[id(value), key] = found
    return found


def _walk_into(
    value: dict[str, Any] | list[Any],
    key: str,
    write_quantity: _Write,
    known: _Known,
    *,
    learns: bool,
) -> Any:
    if isinstance(value, list):
        return [
            _walk(item, "", write_quantity, known, learns=learns)
            for item in value
            if item is not None
        ]
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
        kept = _walk(item, name, write_quantity, known, learns=learns)
        if not _is_absent(name, kept):
            result[name] = kept
    return result


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
