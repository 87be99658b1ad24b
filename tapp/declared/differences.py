"""Lists the fields in which two versions of a template differ, with the effect on pods.

The entry point is `differences`. It compares the canonical forms from which the revisions are
computed (`revision.py`), so two notations of the same value are no difference. If the hash
`Revisions.uniq` leaves out a changed field, the kubelet can change the field in place.
"""

from collections.abc import Iterator
from enum import StrEnum
from typing import Any

import msgspec

from tapp.declared.meaning import meaning
from tapp.declared.reads import read_by, restarting
from tapp.declared.revision import own_annotations, own_labels, without_images, without_resources
from tapp.declared.templates import running
from tapp.kube.canonical import canonical, comparable
from tapp.kube.project import merge_key
from tapp.kube.tolerations import SECONDS, with_defaults
from tapp.words.digits import whole
from tapp.words.vocabulary import RESTARTED_AT

Path = tuple[str, ...]
_ABSENT = object()


class Effect(StrEnum):
    """The effect that a changed field of a template has on existing pods."""

    RECREATE = "Recreate"  # Pods are replaced.
    RESOURCES = "Resources"  # Pods are replaced, unless they have the new resources already.
    RESIZE = "Resize"  # Pods are resized; a pod that cannot be resized is replaced.
    # A container restarts in place: its image changes, or an input that it reads (`reads.py`).
    IN_PLACE = "InPlace"
    METADATA = "Metadata"  # A label or annotation of the pods changes; nothing restarts.
    SAME = "Same"  # Only the revision label of pods changes: both versions create the same pod.
    NEW_PODS = "NewPods"  # Existing pods stay as they are; only new pods have the change.


class Difference(msgspec.Struct, frozen=True):
    """One changed field of a template, with both values and the effect of the change on pods."""

    path: str  # Path, such as `spec.containers[web].image`.
    before: Any  # Old value as written in the template; None if absent.
    after: Any  # New value as written in the template; None if absent.
    effect: Effect  # Effect on the pods.


def differences(
    before: dict[str, Any],
    after: dict[str, Any],
    *,
    ignores_resources: bool = False,
    resizes: bool = False,
) -> list[Difference]:
    """Returns the fields in which two pod templates differ, in the order of the new template.

    Args:
        before: the old template.
        after: the new template.
        ignores_resources: True if other controllers set the resources of running containers
            (`resources: Ignore`).
        resizes: True if running containers are resized (`resources: InPlace`).
    """
    old, new = before.get("metadata") or {}, after.get("metadata") or {}
    read = _restarting_entries(before, after)
    found = [
        _difference(
            ("metadata", part, *path), (before, after), _effect(part, path[0], own(new), read)
        )
        for part, own in (("labels", own_labels), ("annotations", own_annotations))
        for path in changed(own(old), own(new))
    ]
    one, other = comparable(before.get("spec") or {}), comparable(after.get("spec") or {})
    forcing = set(changed(without_images(one), without_images(other)))
    always = set(changed(without_resources(one), without_resources(other)))
    of_resources = Effect.RESIZE if resizes else Effect.RESOURCES
    of_resources = Effect.NEW_PODS if ignores_resources else of_resources
    paths = list(changed(one, other))
    meant = [_pod_meaning(body.get("spec") or {}) for body in (before, after) if paths]
    for path in paths:
        effect = Effect.RECREATE if path in always else of_resources
        effect = effect if path in forcing else Effect.IN_PLACE
        if value_at(meant[0], path) == value_at(meant[1], path):
            effect = Effect.SAME
        found.append(_difference(("spec", *path), (before, after), effect))
    if (old.get("finalizers") or []) != (new.get("finalizers") or []):
        path = "metadata", "finalizers"
        found.append(_difference(path, (before, after), Effect.NEW_PODS))
    return found


def _pod_meaning(spec: dict[str, Any]) -> dict[str, Any]:
    """Returns the canonical form of the pod that a pod spec creates, for comparisons.

    It includes the tolerations that a cluster adds by default. `spec` is the pod spec of a
    template.
    """
    made = meaning(canonical(spec))
    return {**made, "tolerations": with_defaults(made.get("tolerations") or [], SECONDS)}


def _effect(part: str, key: str, new: dict[str, str], read: set[str]) -> Effect:
    """Returns the effect that the change of a label or annotation has on pods.

    Args:
        part: `labels` or `annotations`.
        key: the key of the label or annotation.
        new: all labels or annotations of the new template.
        read: the labels and annotations whose change restarts a container, such as `labels/app`.
    """
    if part == "annotations" and key == RESTARTED_AT and new.get(key):
        return Effect.RECREATE
    return Effect.IN_PLACE if f"{part}/{key}" in read else Effect.METADATA


def _restarting_entries(before: dict[str, Any], after: dict[str, Any]) -> set[str]:
    """Returns the labels and annotations whose change restarts a container, such as `labels/app`.

    Args:
        before: the old template.
        after: the new template.
    """
    old, new = (
        read_by(
            running(body.get("spec") or {}),
            *((body.get("metadata") or {}).get(part) or {} for part in ("labels", "annotations")),
        )
        for body in (before, after)
    )
    return {entry for entries in restarting(old, new).values() for entry in entries}


def _difference(path: Path, bodies: tuple[Any, Any], effect: Effect) -> Difference:
    """Returns the difference at a path, with the old and the new value.

    `bodies` are the old and the new template.
    """
    before, after = (value_at(body, path) for body in bodies)
    return Difference(written(path), before, after, effect)


def changed(before: Any, after: Any, path: Path = ()) -> Iterator[Path]:
    """Yields the paths of all values in which two JSON values differ.

    An item of a list is named `[KEY]` in a path, by its merge key, or by its position if it has
    none. If the items of two lists cannot be matched, or have another order, the path of the list
    is yielded.

    Args:
        before: the old value.
        after: the new value.
        path: the path of both values in the template; each yielded path begins with it.
    """
    if before == after and type(before) is type(after):
        return
    if isinstance(before, dict) and isinstance(after, dict):
        for key in dict.fromkeys([*after, *before]):
            yield from changed(before.get(key, _ABSENT), after.get(key, _ABSENT), (*path, key))
        return
    if isinstance(before, list) and isinstance(after, list) and before and after:
        names = _names(before, after)
        if names is not None:
            one, other = (dict(zip(keys, items, strict=True)) for keys, items in names)
            if [key for key in one if key in other] != [key for key in other if key in one]:
                # The order of a list is part of the template's revision.
                yield path
                return
            for name in dict.fromkeys([*other, *one]):
                item = (*path, f"[{name}]")
                yield from changed(one.get(name, _ABSENT), other.get(name, _ABSENT), item)
            return
        if len(before) == len(after):
            for index, (old, new) in enumerate(zip(before, after, strict=True)):
                yield from changed(old, new, (*path, f"[{index}]"))
            return
    yield path


def _names(before: list[Any], after: list[Any]) -> list[tuple[list[str], list[Any]]] | None:
    """Returns (merge keys, items) of the old list, and (merge keys, items) of the new list.

    Returns None if the items have no merge key, or if two items of one list have the same merge
    key.

    Args:
        before: the old list.
        after: the new list.
    """
    key = merge_key(before, after)
    if key is None:
        return None
    found = [([str(item[key]) for item in items], items) for items in (before, after)]
    return found if all(len(set(names)) == len(names) for names, _ in found) else None


def value_at(value: Any, path: Path) -> Any:
    """Returns the value at a path; None if there is no value at this path.

    Args:
        value: the JSON value that contains the wanted value.
        path: a path that `changed` has yielded.
    """
    for part in path:
        if isinstance(value, dict):
            value = value.get(part)
        elif isinstance(value, list) and part.startswith("["):
            value = _item(value, part[1:-1])
        else:
            return None
    return value


def _item(items: list[Any], name: str) -> Any:
    """Returns the item of a list with the given merge key or position; None if there is no such
    item.

    If the items have merge keys, `name` is a merge key. If they have none, `name` is a position.
    """
    key = merge_key(items)
    if key is not None:
        return next((item for item in items if str(item[key]) == name), None)
    index = whole(name)
    return None if index is None or index >= len(items) else items[index]


def written(path: Path) -> str:
    """Returns a path as text, such as `spec.containers[web].image` or `metadata.labels["a/b"]`."""
    text = ""
    for part in path:
        if part.startswith("["):
            text += part
        elif all(character.isalnum() or character in "-_" for character in part):
            text += f".{part}" if text else part
        else:
            text += f'["{part}"]'
    return text
