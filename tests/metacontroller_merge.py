"""Applies Metacontroller's merge to a pod and tells what changes, for `tests.invariants`.

`merged` is the entry point. Most pods do not change from sync to sync, so the results for the same
documents are cached.
"""

import marshal
from functools import cached_property, lru_cache
from typing import Any

from tests.hook_calls import applied, bare, doubled, images

Document = dict[str, Any]


class Merged:
    """An observed pod and the pod that the hook returns for it; each property is computed once.

    Attributes:
        pod: the observed pod.
    """

    def __init__(self, request: Document, pod: Document, want: Document) -> None:
        self._request, self.pod, self._want = request, pod, want

    @cached_property
    def child(self) -> Document:
        """The observed pod after Metacontroller has merged the hook's pod into it."""
        return applied(self._request, self.pod, self._want)

    @cached_property
    def updates(self) -> bool:
        """True if the merge changes an image of the pod."""
        return images(self.child) != images(self.pod)

    @cached_property
    def changes(self) -> bool:
        """True if the merge changes anything except Metacontroller's own annotation."""
        return bare(self.child) != bare(self.pod)

    @cached_property
    def stays(self) -> bool:
        """True if a second merge of the same response changes nothing more."""
        return applied(self._request, self.child, self._want) == self.child

    @cached_property
    def doubled(self) -> bool:
        """True if a list of the observed pod has two items with the same merge key."""
        return doubled(self.pod)

    @cached_property
    def problems(self) -> list[str]:
        """Paths of the fields that the merge changes and that the API server does not allow to
        change.
        """
        return illegal_changes(self.pod, self.child)


def merged(request: Document, pod: Document, want: Document) -> Merged:
    """Returns the result of merging the hook's pod `want` into the observed pod `pod`.

    The result may be cached, so callers must not change it.
    """
    # In version 2 of marshal equal documents have equal bytes; the cached copy shares no object
    # with the arguments.
    return _merged(marshal.dumps((request["parent"]["metadata"]["uid"], pod, want), 2))


@lru_cache(maxsize=1000)
def _merged(documents: bytes) -> Merged:
    uid, pod, want = marshal.loads(documents)
    return Merged({"parent": {"metadata": {"uid": uid}}}, pod, want)


# --- the API server's rules on pod updates (Kubernetes 1.36, ValidatePodUpdate) -------------------


def illegal_changes(old: Document, new: Document) -> list[str]:
    """Returns the paths of the fields that differ between two states of a pod and must not be
    updated.
    """
    problems = [
        f"metadata.{field}"
        for field in ("name", "namespace", "uid", "creationTimestamp", "deletionTimestamp")
        if old["metadata"].get(field) != new["metadata"].get(field)
    ]
    for field in ("labels", "annotations"):
        for key, value in (new["metadata"].get(field) or {}).items():
            if not isinstance(value, str):
                problems.append(f"metadata.{field}.{key}")
    before, after = dict(old["spec"]), dict(new["spec"])
    for section in ("containers", "initContainers"):
        was, now = before.pop(section, None) or [], after.pop(section, None) or []
        if [_but_image(item) for item in was] != [_but_image(item) for item in now]:
            problems.append(f"spec.{section}")
        for item in now:
            image = item.get("image")
            if not isinstance(image, str) or not image or image != image.strip():
                problems.append(f"spec.{section}.{item.get('name')}.image")
    was, now = before.pop("tolerations", None) or [], after.pop("tolerations", None) or []
    kept = [_but_seconds(item) for item in now]
    problems += ["spec.tolerations" for item in was if _but_seconds(item) not in kept]
    deadline = before.pop("activeDeadlineSeconds", None), after.pop("activeDeadlineSeconds", None)
    if deadline[0] is not None and (deadline[1] is None or deadline[1] > deadline[0]):
        problems.append("spec.activeDeadlineSeconds")
    gates = before.pop("schedulingGates", None) or [], after.pop("schedulingGates", None) or []
    problems += ["spec.schedulingGates" for gate in gates[1] if gate not in gates[0]]
    problems += [
        f"spec.{field}"
        for field in sorted(before.keys() | after.keys())
        if field not in before or field not in after or before[field] != after[field]
    ]
    return problems


def _but_image(container: Document) -> Document:
    return {key: value for key, value in container.items() if key != "image"}


def _but_seconds(toleration: Document) -> Document:
    return {key: value for key, value in toleration.items() if key != "tolerationSeconds"}
