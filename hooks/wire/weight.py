"""Bytes that values take in memory, counted object by object."""

from collections.abc import Iterable
from sys import getrefcount, getsizeof
from types import FunctionType, MappingProxyType
from typing import Any, Final

import msgspec
from pydantic import BaseModel


def _alone() -> int:
    holder = [object()]
    left = list(holder)
    value = left.pop()
    return getrefcount(value)


_ALONE: Final = _alone()
"""References to an object that only its holder has: the holder's, a variable's, and an argument's
where Python does not lend it, as 3.14 does."""


_RAW_BYTES: Final = 100


def fitted(text: bytes) -> msgspec.Raw:
    """A text to be held: msgspec's encoder leaves room for half as much again behind it."""
    return msgspec.Raw(bytes(memoryview(text)))


def weight(*values: Any) -> int:
    """Bytes of these values and all that they refer to, each object once.

    They are what our own code makes: plain values, structs, dataclasses, models, closures.
    """
    seen, found = set[int](), 0
    left = list(values)
    while left:
        value = left.pop()
        if not value:  # None, "" and () are held once for all
            found += getsizeof(value) if isinstance(value, dict | list | set) else 0
            continue
        if value is True or isinstance(value, type):
            continue
        if getrefcount(value) > _ALONE:  # only what is shared has to be told apart: most is not
            if id(value) in seen:
                continue
            seen.add(id(value))
        if isinstance(value, _PLAIN):
            found += getsizeof(value)
            continue
        if isinstance(value, msgspec.Raw):  # it says of itself that it takes terabytes
            found += _RAW_BYTES + len(bytes(value))
            continue
        found += getsizeof(value)
        if isinstance(value, _MAPS):
            left += value.keys()
            left += value.values()
        elif isinstance(value, _LISTS):
            left += value
        else:
            left += _parts(value)
    return found


_PLAIN, _MAPS = (str, bytes, int, float), (dict, MappingProxyType)
_LISTS = (list, tuple, set, frozenset)


def _parts(value: Any) -> Iterable[Any]:
    if isinstance(value, msgspec.Struct):
        return msgspec.structs.astuple(value)
    if isinstance(value, BaseModel):
        return [value.__dict__, value.model_fields_set]
    if isinstance(value, FunctionType):
        return [value.__defaults__, *[cell.cell_contents for cell in value.__closure__ or ()]]
    kind = type(value)
    names: Iterable[str] = getattr(kind, "__dataclass_fields__", ()) or getattr(
        kind, "__slots__", ()
    )
    return [getattr(value, name) for name in names]
