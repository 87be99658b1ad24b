"""Resource quantities in the API server's canonical form.

Source: apimachinery's resource.Quantity: no fraction, the largest suffix that loses nothing, binary
suffixes only from 1024 up. `0.5` becomes `500m`, `1024Mi` becomes `1Gi`, `1000` becomes `1k`.
"""

import re
from decimal import ROUND_UP, Decimal
from functools import lru_cache

from simulator.objects.objects import Json

_FORM = re.compile(r"([+-]?(?:\d+(?:\.\d*)?|\.\d+))([a-zA-Z]{0,2}|[eE][+-]?\d+)", re.ASCII)
_BINARY = {"Ki": 1, "Mi": 2, "Gi": 3, "Ti": 4, "Pi": 5, "Ei": 6}
_DECIMAL = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_LARGEST_FIRST = sorted(_DECIMAL.items(), key=lambda pair: -pair[1])
_NANO = Decimal("1e-9")


class QuantityError(ValueError):
    """The text is not a quantity."""


def canonical(value: Json) -> str:
    """Return the canonical form of a quantity given as text or number."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise QuantityError(f"quantities must be strings or numbers, not {value!r}")
    return _canonical(str(value).strip())


def compare(left: str, right: str) -> int:
    """Return -1, 0 or 1: which of two quantities is the larger one."""
    (first, _), (second, _) = _read(left), _read(right)
    return (first > second) - (first < second)


def _read(text: str) -> tuple[Decimal, str]:
    """A quantity's value and its suffix."""
    match = _FORM.fullmatch(text)
    if match is None:
        raise QuantityError(f"quantities must match the regular expression: {text!r}")
    number, suffix = Decimal(match[1]), match[2]
    if suffix in _BINARY:
        return number * 1024 ** _BINARY[suffix], suffix
    if suffix in _DECIMAL:
        return number.scaleb(_DECIMAL[suffix]), suffix
    if suffix[0] in "eE" and suffix[1:]:
        return number.scaleb(int(suffix[1:])), suffix
    raise QuantityError(f"unable to parse quantity's suffix: {text!r}")


@lru_cache(maxsize=4096)
def _canonical(text: str) -> str:
    number, suffix = _read(text)
    return _binary(number) if suffix in _BINARY else _decimal(number, suffix not in _DECIMAL)


def _binary(number: Decimal) -> str:
    number = _in_nanos(number)
    if abs(number) < 1024 or number != number.to_integral_value():  # noqa: PLR2004
        return _decimal(number)
    whole, power = int(number), 0
    while whole % 1024 == 0 and power < len(_BINARY):
        whole, power = whole // 1024, power + 1
    suffix = next((name for name, value in _BINARY.items() if value == power), "")
    return f"{whole}{suffix}"


def _in_nanos(number: Decimal) -> Decimal:
    return number.quantize(_NANO, rounding=ROUND_UP) if number % _NANO else number


def _decimal(number: Decimal, exponent: bool = False) -> str:
    number = _in_nanos(number)
    if not number:
        return "0"
    for suffix, power in _LARGEST_FIRST:
        scaled = number.scaleb(-power)
        if scaled == scaled.to_integral_value():
            digits = f"{scaled.to_integral_value():f}"
            return digits + (f"e{power}" if exponent and power else suffix)
    raise AssertionError(number)
