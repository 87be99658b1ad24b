"""The texts for an instance's placeholders: number, name of the pod, namespace, and values."""

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
    """Returns placeholder -> text for the placeholders of one instance.

    Raises UnfilledError if a value is missing or invalid.

    Args:
        spec: the spec with the values.
        slots: the placeholders.
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
    """The values that a template reads, in the form in which ControllerRevisions have them."""

    kept: dict[str, Any]  # `values` and `defaultValues`, as in the spec; empty ones are left out.
    digest: str  # Digest of `kept`; empty if that is empty.
    size: int = 0  # Bytes of `kept` as JSON.


NO_VALUES: Final = KeptValues({}, "")
# Bytes. If the values are larger, they are not recorded, because they share a record with a
# template.
_MOST_KEPT: Final = 64 << 10


def kept_values(spec: TAppSpec, slots: Slots, instances: Iterable[str]) -> KeptValues:
    """Returns those values of a spec that a template reads, for a ControllerRevision.

    Returns `NO_VALUES` if there are no values, or too many bytes of them.

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
    """Returns True if a ControllerRevision's values fill in a template as the spec's values do.

    Args:
        spec: the spec.
        slots: the placeholders of the template.
        instances: the instances to compare, as keys of `spec.values`.
        values: the values of each instance in the ControllerRevision.
        defaults: the default values in the ControllerRevision.
    """
    keys = slots.keys
    return _only(defaults, keys) == _only(spec.default_values, keys) and all(
        _only(values.get(each, {}), keys) == _only(spec.values.get(each, {}), keys)
        for each in instances
    )


def _only(values: Mapping[str, str], keys: Container[str]) -> dict[str, str]:
    """Returns the entries of `values` with these keys."""
    return {key: value for key, value in values.items() if key in keys}
