"""The texts that fill an instance's placeholders, and the values that ControllerRevisions record.

The texts are the number of the instance, the name of its pod, the namespace, and its values.
"""

from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, Final

import msgspec

from tapp.declared.fields import LONGEST_VALUE
from tapp.declared.model import TAppSpec
from tapp.declared.placeholders import VALUES, Slots, UnfilledError
from tapp.words.quoted import quoted


def own_of(spec: TAppSpec, slots: Slots, instance: int, app: str, namespace: str) -> dict[str, str]:
    """Returns placeholder -> text for one instance.

    Raises UnfilledError if a value that a placeholder reads is missing or invalid.

    Args:
        spec: the spec with the values.
        slots: the placeholders of a template.
        instance: the number of the instance.
        app: the name of the TApp.
        namespace: the namespace of the TApp.
    """
    number = str(instance)
    found = {"index": number, "name": f"{app}-{number}", "namespace": namespace}
    own = spec.values.get(number, {})
    for name in slots.names:
        if name in found:
            continue
        key = name.removeprefix(VALUES)
        value = own.get(key, spec.default_values.get(key))
        if value is None:
            raise UnfilledError(
                f"{slots.where[name]} reads the value {quoted(key)}, and the instance has none: "
                f"set it in spec.values[{quoted(number)}] or spec.defaultValues"
            )
        if len(value) > LONGEST_VALUE or "\0" in value:
            wrong = "has a NUL" if "\0" in value else f"is longer than {LONGEST_VALUE} characters"
            raise UnfilledError(f"the value {quoted(key)} of {slots.where[name]} {wrong}")
        found[name] = value
    return {name: found[name] for name in slots.names}


@dataclass(frozen=True)
class KeptValues:
    """The entries of `spec.values` and `spec.defaultValues` that one template reads.

    They have the form in which a ControllerRevision records them.
    """

    # Entries `values` and `defaultValues`, in the form of the spec; an empty entry is left out.
    kept: dict[str, Any]
    digest: str  # Digest of `kept`; empty if `kept` is empty.
    size: int = 0  # Bytes of `kept` as JSON.


NO_VALUES: Final = KeptValues({}, "")
# Most bytes of the values in a ControllerRevision. Larger values are not recorded, because the
# ControllerRevision also has to contain the template.
_MOST_KEPT: Final = 64 << 10


def kept_values(spec: TAppSpec, slots: Slots, instances: Iterable[str]) -> KeptValues:
    """Returns the entries of `spec.values` and `spec.defaultValues` that a template reads.

    They are for a ControllerRevision. Returns `NO_VALUES` if there are no such entries, or if they
    have more than `_MOST_KEPT` bytes.

    Args:
        spec: the spec with the values.
        slots: the placeholders of the template.
        instances: the instances that run the template, as keys of `spec.values`.
    """
    keys = slots.keys
    kept: dict[str, Any] = {
        "values": {
            each: read for each in instances if (read := _only(spec.values.get(each, {}), keys))
        },
        "defaultValues": _only(spec.default_values, keys),
    }
    kept = {part: values for part, values in kept.items() if values}
    text = msgspec.json.encode(kept, order="sorted")
    if not kept or len(text) > _MOST_KEPT:
        return NO_VALUES
    return KeptValues(kept, sha256(text).hexdigest()[:20], len(text))


def fill_alike(
    spec: TAppSpec,
    slots: Slots,
    instances: Iterable[str],
    values: Mapping[str, Mapping[str, str]],
    defaults: Mapping[str, str],
) -> bool:
    """Returns True if recorded values give the same texts as the values in the spec.

    Only values are compared that the placeholders of a template read.

    Args:
        spec: the spec with its values.
        slots: the placeholders of the template.
        instances: the instances to compare, as keys of `spec.values`.
        values: instance -> values, as a ControllerRevision has recorded them.
        defaults: the default values that the ControllerRevision has recorded.
    """
    keys = slots.keys
    return _only(defaults, keys) == _only(spec.default_values, keys) and all(
        _only(values.get(each, {}), keys) == _only(spec.values.get(each, {}), keys)
        for each in instances
    )


def _only(values: Mapping[str, str], keys: Container[str]) -> dict[str, str]:
    """Returns the entries of `values` whose key is one of `keys`."""
    return {key: value for key, value in values.items() if key in keys}
