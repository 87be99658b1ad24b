"""Resource quantities as an API server takes them: what is none is refused.

How they are read and written back is in one place for the service and the simulator.
"""

from simulator.objects.objects import Json
from tapp.kube.canonical import nano, quantity


class QuantityError(ValueError):
    """The text is not a quantity."""


def canonical(value: Json) -> str:
    """Return the canonical form of a quantity given as text or number."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise QuantityError(f"quantities must be strings or numbers, not {value!r}")
    text = str(value).strip()
    _read(text)
    return str(quantity(text))


def compare(left: str, right: str) -> int:
    """Return -1, 0 or 1: which of two quantities is the larger one."""
    first, second = _read(left), _read(right)
    return (first > second) - (first < second)


def _read(text: str) -> int:
    found = nano(text)
    if found is None:
        raise QuantityError(f"quantities must match the regular expression: {text!r}")
    return found
