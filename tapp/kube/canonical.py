"""The canonical form of templates: two notations of one template have the same form and hash.

So a changed notation never restarts a pod. For example, `1000m` and `1` are the same, and an empty
field and a missing field are the same. `tapp/declared/revision.py` hashes this form. If the form of
a template changed, all of its pods would restart, so test vectors freeze the forms.

Sources: Kubernetes' quantity format (apimachinery, resource.Quantity) and the `omitempty` tags of
core/v1.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Self

_Write = Callable[[str | float], Any]
# Cache: (`id` of a part of a spec, field that has the part) -> canonical form of the part.
_Known = dict[tuple[int, str], Any]
Form = Callable[[Any], Any]

_QUANTITY = re.compile(
    r"([+-]?)(\d+(?:\.\d*)?|\.\d+)(?:([eE][+-]?\d{1,2})|([KMGTPE]i|[numkMGTPE]?))", re.ASCII
)
# The largest quantity with a binary unit. Kubernetes reduces a larger quantity to this one.
_LARGEST = 2**63 - 1
# Most characters of a quantity. Python refuses to print numbers with more than 4,300 digits.
_LONGEST = 400
_DECIMAL = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}

_QUANTITY_MAPS = {"requests", "limits", "overhead"}
_QUANTITY_FIELDS = {"sizeLimit", "divisor"}
# Maps whose keys the author chooses. Every value in them is kept, even an empty one.
_FREE_MAPS = {"labels", "annotations", "matchLabels", "nodeSelector", "volumeAttributes", "options"}

# Maps that are left out if they are empty. Other empty maps, such as `emptyDir: {}`, are kept.
_ABSENT_WHEN_EMPTY = {
    *("metadata", "labels", "annotations", "matchLabels", "nodeSelector", "affinity"),
    *("resources", "requests", "limits", "overhead", "securityContext", "dnsConfig"),
}

# Booleans that the API server drops if they are false. In core/v1, these fields are no pointers and
# have the tag `omitempty`.
_FALSE = {"readOnly", "stdin", "stdinOnce", "tty", "hostNetwork", "hostPID", "hostIPC"}
_ZERO = {
    *("hostPort", "initialDelaySeconds", "timeoutSeconds", "periodSeconds"),
    *("successThreshold", "failureThreshold", "partition"),
}
# Texts that the API server drops if they are empty.
_BLANK = {
    *("subPath", "subPathExpr", "workingDir", "hostIP", "value", "medium", "effect", "operator"),
    *("serviceAccountName", "serviceAccount", "nodeName", "hostname", "subdomain"),
    *("schedulerName", "priorityClassName", "restartPolicy", "dnsPolicy", "imagePullPolicy"),
    *("protocol", "terminationMessagePath", "terminationMessagePolicy", "fsType"),
}


def nano(value: str) -> int | None:
    """Returns a quantity (`500m`, `1Gi`, `1e3`) in billionths, rounded up as in Kubernetes.

    Returns None if `value` is no quantity.
    """
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
    """Returns a quantity in the notation of the API server (`1000m` -> `1`, `1024Mi` -> `1Gi`).

    A value that is no quantity is returned unchanged, because the API server refuses it.
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
    """Returns a number as text, with the largest unit that divides the number without a remainder.

    Args:
        number: the number.
        units: unit -> exponent of the unit.
        base: the base of the exponents: 2 or 10.
    """
    if number == 0:
        return "0"
    unit = max(
        (unit for unit in units if number % base ** units[unit] == 0), key=lambda unit: units[unit]
    )
    return f"{number // base ** units[unit]}{unit}"


def _number(value: str | float) -> str:
    """Returns a quantity as the text of a number of billionths, so that equal quantities are equal
    texts.

    A value that is no quantity is returned as text.
    """
    billionths = nano(str(value))
    return str(value) if billionths is None else f"#{billionths}"


def canonical(value: Any) -> Any:
    """Returns a template or claim spec in the canonical form from which the service creates
    objects.

    Nulls, empty lists, and empty values that Kubernetes drops are removed. Quantities are in the
    API server's notation, and floats without a fraction become integers.
    """
    return _walk(value, "", quantity, {})


def comparable(value: Any) -> Any:
    """Returns a canonical form in which two specs are equal if and only if they have the same
    meaning.

    Quantities are texts of numbers in this form (`_number`).
    """
    return _walk(value, "", _number, {})


@dataclass(frozen=True)
class Forms:
    """The functions `canonical` and `comparable`, possibly with a cache for copies of one spec.

    Their results share parts with each other, so the caller must not change them.
    """

    canonical: Form = canonical
    comparable: Form = comparable

    @classmethod
    def of_copies(cls, spec: Any) -> Self:
        """Returns functions that are fast for copies of a spec that share parts with the spec.

        The canonical forms of all parts of `spec` are computed here, once.
        """
        return cls(_of_copies(spec, quantity), _of_copies(spec, _number))


FORMS = Forms()


def _of_copies(spec: Any, write_quantity: _Write) -> Form:
    """Returns a function that computes the canonical form of a copy of `spec`.

    The function reuses the canonical forms of all parts that the copy shares with `spec`.
    `write_quantity` returns a quantity in the notation of the canonical form.
    """
    known: _Known = {}
    _walk(spec, "", write_quantity, known, learns=True)

    # The default argument keeps `spec` alive. The keys of `known` are identities of its parts. If
    # `spec` were deleted, Python could give these identities to other objects.
    def form(copy: Any, _alive: Any = spec) -> Any:
        return _walk(copy, "", write_quantity, known)

    return form


def _walk(
    value: Any, key: str, write_quantity: _Write, known: _Known, *, learns: bool = False
) -> Any:
    """Returns a value in canonical form.

    Args:
        value: the value.
        key: the field that has the value; empty for the whole spec and for an entry of a list.
        write_quantity: returns a quantity in the notation of the canonical form.
        known: cache of the canonical forms of parts.
        learns: True if the function adds the canonical forms of all parts to `known`.
    """
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
    """Returns a map or list in canonical form.

    Args:
        value: the map or list.
        key: the field that has the value; empty for an entry of a list.
        write_quantity: returns a quantity in the notation of the canonical form.
        known: cache of the canonical forms of parts.
        learns: True if the function adds the canonical forms of all parts to `known`.
    """
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
    """Returns True if the API server drops a field with this key and value."""
    if value == [] and isinstance(value, list):
        return True
    if isinstance(value, dict):
        return not value and key in _ABSENT_WHEN_EMPTY
    if value is False:
        return key in _FALSE
    if isinstance(value, str):
        return not value and key in _BLANK
    return key in _ZERO and value == 0
