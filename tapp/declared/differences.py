"""Differences between two forms of a template, by field, and what each field asks for.

The same forms that the revisions are hashes of (`revision.py`): fields that mean the same are no
difference, and what is blanked in the second hash is what a kubelet changes in place.
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
    """Consequence of a changed field of a template."""

    RECREATE = "Recreate"  # New pods
    RESOURCES = "Resources"  # New pods in place of those that have other resources than these
    RESIZE = "Resize"  # Other resources for pods that run, as far as that can be; else new pods
    IN_PLACE = "InPlace"  # A container restarts, for its image or what it reads; the pod stays
    METADATA = "Metadata"  # Written on the pods; nothing restarts
    SAME = "Same"  # Nothing: a pod is made with it either way, and gets the new label
    NEW_PODS = "NewPods"  # Nothing for pods that are there; the next ones have it


class Difference(msgspec.Struct, frozen=True):
    """One field."""

    path: str  # such as `spec.containers[web].image`
    before: Any  # its value, None where it is absent; as it is written in the template
    after: Any  # the same of the other form
    effect: Effect  # what it asks for


def differences(
    before: dict[str, Any],
    after: dict[str, Any],
    *,
    ignores_resources: bool = False,
    resizes: bool = False,
) -> list[Difference]:
    """The fields in which two pod templates differ, in the order of the second one.

    Resources of running containers may be left to others (`ignores_resources`), or be given to the
    pods that run (`resizes`).
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
    meant = [_made(body.get("spec") or {}) for body in (before, after) if paths]
    for path in paths:
        effect = Effect.RECREATE if path in always else of_resources
        effect = effect if path in forcing else Effect.IN_PLACE
        if at(meant[0], path) == at(meant[1], path):
            effect = Effect.SAME
        found.append(_difference(("spec", *path), (before, after), effect))
    if (old.get("finalizers") or []) != (new.get("finalizers") or []):
        path = "metadata", "finalizers"
        found.append(_difference(path, (before, after), Effect.NEW_PODS))
    return found


def _made(spec: dict[str, Any]) -> dict[str, Any]:
    """The spec of the pods that are made of one, in the one form of all that mean the same."""
    made = meaning(canonical(spec))
    return {**made, "tolerations": with_defaults(made.get("tolerations") or [], SECONDS)}


def _effect(part: str, key: str, new: dict[str, str], read: set[str]) -> Effect:
    """Consequence of another label or annotation."""
    if part == "annotations" and key == RESTARTED_AT and new.get(key):
        return Effect.RECREATE
    return Effect.IN_PLACE if f"{part}/{key}" in read else Effect.METADATA


def _restarting_entries(before: dict[str, Any], after: dict[str, Any]) -> set[str]:
    """The entries of the metadata because of which a container restarts."""
    old, new = (
        read_by(
            running(body.get("spec") or {}),
            *((body.get("metadata") or {}).get(part) or {} for part in ("labels", "annotations")),
        )
        for body in (before, after)
    )
    return {entry for entries in restarting(old, new).values() for entry in entries}


def _difference(path: Path, bodies: tuple[Any, Any], effect: Effect) -> Difference:
    before, after = (at(body, path) for body in bodies)
    return Difference(written(path), before, after, effect)


def changed(before: Any, after: Any, path: Path = ()) -> Iterator[Path]:
    """The paths of all values that differ; items of lists by their merge key, `[name]`."""
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
                yield path  # another order is another template
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
    key = merge_key(before, after)
    if key is None:
        return None
    found = [([str(item[key]) for item in items], items) for items in (before, after)]
    return found if all(len(set(names)) == len(names) for names, _ in found) else None


def at(value: Any, path: Path) -> Any:
    """The value at a path of `changed`; None where there is none."""
    for part in path:
        if isinstance(value, dict):
            value = value.get(part)
        elif isinstance(value, list) and part.startswith("["):
            value = _item(value, part[1:-1])
        else:
            return None
    return value


def _item(items: list[Any], name: str) -> Any:
    key = merge_key(items)
    if key is not None:
        return next((item for item in items if str(item[key]) == name), None)
    index = whole(name)
    return None if index is None or index >= len(items) else items[index]


def written(path: Path) -> str:
    """A path as people write it: `spec.containers[web].image`, `metadata.labels["a/b"]`."""
    text = ""
    for part in path:
        if part.startswith("["):
            text += part
        elif all(character.isalnum() or character in "-_" for character in part):
            text += f".{part}" if text else part
        else:
            text += f'["{part}"]'
    return text
