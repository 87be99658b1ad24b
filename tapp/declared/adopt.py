"""Compares a template with a pod that another controller created.

Such a pod has no revision of this service; the old tapp-controller wrote decimal hashes. So the pod
is compared field by field. It matches the template if it has every field of the template. Further
fields of the pod (defaults, injected sidecars, tokens) do not matter (docs/history.md,
"Revisions").
"""

from typing import Any

from tapp.declared.revision import without_images
from tapp.kube.project import merge_key

_CANNOT_BE_INJECTED = {"command", "args"}


def describes(template: Any, observed: Any) -> bool:
    """Returns True if `observed` has every field of `template` with the same value.

    Objects in a list are matched by their merge key. Items of other lists are matched in their
    order. The observed list may have further items, except for `command` and `args`.

    Args:
        template: a part of a template, in the form of `canonical.comparable`.
        observed: the same part of an existing pod, in the form of `canonical.comparable`.
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
    """Returns True if a pod has every field of a template, except for images of running containers.

    Args:
        template: the spec of the template, in the form of `canonical.comparable`.
        observed: the spec of the pod, in the form of `canonical.comparable`.
    """
    return describes(without_images(template), without_images(observed))


def _list_describes(template: list[Any], observed: list[Any]) -> bool:
    """Returns True if each item of the template's list matches an item of the observed list."""
    key = merge_key(template)
    if key is not None and merge_key(observed) is not None:
        # Several items may have one merge key, such as a port number on TCP and on UDP.
        return all(
            any(
                item[key] == candidate.get(key) and describes(item, candidate)
                for candidate in observed
            )
            for item in template
        )
    rest = iter(observed)
    return all(any(describes(item, candidate) for candidate in rest) for item in template)
