"""Pods that carry no revision of ours: does their template describe them already?

A pod of the old controller has decimal hash labels. It is compared field by field: what the
template says must be in the pod; what the pod has on top (defaults, injected sidecars, tokens) is
nobody's reason to touch it (docs/design.md, "Revisions").
"""

from typing import Any

from tapp.declared.revision import without_images
from tapp.kube.project import merge_key

_CANNOT_BE_INJECTED = {"command", "args"}


def describes(template: Any, observed: Any) -> bool:
    """True if every field of `template` stands in `observed`.

    Both in the form of `canonical.comparable`. Lists of objects match by their merge key, other
    lists item by item in order; the observed ones may hold more, except for `command` and `args`.
    """
    if isinstance(template, dict):
        return isinstance(observed, dict) and all(
            item == observed.get(key)
            if key in _CANNOT_BE_INJECTED
            else describes(item, observed.get(key))
            for key, item in template.items()
        )
    if isinstance(template, list):
        return isinstance(observed, list) and _list_describes(template, observed)
    return bool(template == observed)


def differs_in_images_only(template: dict[str, Any], observed: dict[str, Any]) -> bool:
    """The same for two pod specs, with the images of running containers left out."""
    return describes(without_images(template), without_images(observed))


def _list_describes(template: list[Any], observed: list[Any]) -> bool:
    key = merge_key(template)
    if key is not None and merge_key(observed) is not None:
        # Two ports of one number differ by protocol: an item may match any of its key.
        return all(
            any(
                item[key] == candidate.get(key) and describes(item, candidate)
                for candidate in observed
            )
            for item in template
        )
    rest = iter(observed)
    return all(any(describes(item, candidate) for candidate in rest) for item in template)
