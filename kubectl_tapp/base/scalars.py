"""Resolves plain scalars of YAML as go-yaml v2 does: YAML 1.1 with Go's notation of numbers.

The entry point is `resolve_scalar`. Other YAML 1.1 parsers differ: go-yaml takes `81111e1`, `0o17`
and `08` as numbers, and times and numbers to the base of 60 as texts.

Source: go.yaml.in/yaml/v2, resolve.go.
"""

import math
import re
import struct
from typing import Any

_TRUE = {"y", "Y"} | {form for word in ("yes", "true", "on") for form in
                      (word, word.capitalize(), word.upper())}  # fmt: skip
_FALSE = {"n", "N"} | {form for word in ("no", "false", "off") for form in
                       (word, word.capitalize(), word.upper())}  # fmt: skip
_NULL = {"", "~", "null", "Null", "NULL"}
_SPECIAL = {
    sign + word: value
    for sign, value in (("", math.inf), ("+", math.inf), ("-", -math.inf))
    for word in (".inf", ".Inf", ".INF")
} | dict.fromkeys((".nan", ".NaN", ".NAN"), math.nan)
_INTEGER = re.compile(
    r"([-+]?)(?:0b([01]+)|0x([\da-f]+)|0o?([0-7]+)|(0|[1-9]\d*))", re.ASCII | re.IGNORECASE
)
_BASES = (2, 16, 8, 10)
# If a text is in none of Go's own notations, go-yaml also accepts a sign behind `0b`.
_SIGNED_BINARY = re.compile(r"0b([-+][01]+)", re.ASCII)
_FLOAT = re.compile(r"[-+]?(?:\.\d+|\d+(?:\.\d*)?)(?:[eE][-+]?\d+)?", re.ASCII)
_FRACTION = re.compile(r"\.\d++(?:_\d++)*+(?:[eE][-+]?\d++(?:_\d++)*+)?", re.ASCII)
LEAST_INT, MOST_INT, _MOST_UNSIGNED = -(2**63), 2**63 - 1, 2**64 - 1
_LONGEST_INT = 100  # Largest number of characters of a text that is parsed as an integer


def resolve_scalar(text: str) -> Any:
    """Returns the value of a plain scalar: None, a boolean, an integer, a float, or a text."""
    if text in _TRUE or text in _FALSE:
        return text in _TRUE
    if text in _NULL:
        return None
    if text in _SPECIAL:
        return _SPECIAL[text]
    if not text.startswith(tuple("0123456789+-.")):
        return text
    digits = text.replace("_", "")
    if text.startswith("."):
        return _finite(digits, text) if _FRACTION.fullmatch(text) else text
    if found := _INTEGER.fullmatch(digits):
        sign, *parts = found.groups()
        base, part = next((b, p) for b, p in zip(_BASES, parts, strict=True) if p is not None)
        # A longer number does not fit into 64 bits anyway, and `int` raises an error for texts
        # above 4,300 digits.
        value = int(part, base) if len(part) <= _LONGEST_INT else math.inf
        value = -value if sign == "-" else value
        if LEAST_INT <= value <= (MOST_INT if sign else _MOST_UNSIGNED):
            return value
    if _FLOAT.fullmatch(digits):
        return _finite(digits, text)
    if (found := _SIGNED_BINARY.fullmatch(digits)) and len(digits) <= _LONGEST_INT:
        value = int(found[1], 2)
        return value if LEAST_INT <= value <= MOST_INT else text
    return text


def _finite(digits: str, text: str) -> float | str:
    """Returns the number that `digits` spell, or `text` if the number is too large for a float.

    `text` is the scalar as written, and `digits` is the same text without underscores.
    """
    number = float(digits)
    return number if math.isfinite(number) else text


def float_key_text(value: float) -> str:
    """Returns a float as go-yaml writes it in a key: Go's `FormatFloat(value, 'g', -1, 32)`.

    The result is the shortest text that identifies the value as a 32-bit float.
    """
    try:
        single = struct.unpack("f", struct.pack("f", value))[0]
    except OverflowError:
        single = math.copysign(math.inf, value)
    if not math.isfinite(single):
        return ".nan" if math.isnan(single) else ".inf" if single > 0 else "-.inf"
    texts = (f"{single:.{digits}e}" for digits in range(9))
    shortest = next(x for x in texts if struct.unpack("f", struct.pack("f", float(x)))[0] == single)
    mantissa, _, exponent = shortest.partition("e")
    power, digits = int(exponent), len(mantissa.lstrip("-").replace(".", ""))
    if -5 < power < 6:  # noqa: PLR2004 - outside these limits Go's format 'g' writes an exponent
        return f"{float(shortest):.{max(digits - 1 - power, 0)}f}"
    return f"{mantissa}e{exponent}"
