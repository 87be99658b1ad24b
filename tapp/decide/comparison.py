"""Recorded templates of pods that differ in more than their hashes can tell.

A template that is written in another way has another revision, and still its pod may be the one
that it describes (`tapp/spec/meaning.py`): then nothing about it is to change but its labels.
"""

from collections.abc import Iterable
from typing import NamedTuple

import msgspec

from tapp.decide.filling import LATER, MOST
from tapp.decide.instances import Instance
from tapp.kube.tolerations import of_pods
from tapp.spec.templates import Template, Unresolved
from tapp.storage.origins import Origins
from tapp.words.reasons import Reason
from tapp.world import Options, World


class Comparison(msgspec.Struct, frozen=True, gc=False):
    """The part of an `Instance` that a pod of another revision than its template's tells."""

    template: Template | Unresolved
    recorded: str = ""
    alike: bool = False
    respelled: bool = False


def compare(world: World, instances: Iterable[Instance], options: Options) -> dict[int, Comparison]:
    """Finds what the templates of such pods were, and whether they mean what they are to run."""
    result = dict[int, Comparison]()
    origins: Origins | None = None
    others = set[tuple[str | None, str]]()
    pairs = _Pairs(world, options)
    for instance in instances:
        pod, template = instance.pod, instance.template
        if pod is None or instance.updated or not isinstance(template, Template):
            continue
        if pod.odd or pod.foreign or pod.spec.uniq_hash in template.hashes:
            continue
        origins = origins or Origins(world, MOST)
        recorded = origins.recorded(pod, instance.id, template.name)
        if recorded is None and origins.full:  # a later sync knows what its pod was made of
            late = Unresolved(template.name, LATER, Reason.WAITING_FOR_TURN)
            result[instance.id] = Comparison(late)
            continue
        bare = pod.spec.bare_hash or ("" if recorded is None else recorded.hashes.bare)
        pair = pod.spec.template_hash, template.revision
        before = recorded
        if before is None and pair not in others:  # one that differs tells of all of its revision
            before = origins.applied(pod)
        found = Comparison(template, bare)
        if before is not None:
            compared = pairs.compared(before, template, again=recorded is not None)
            # A tag's default comes about with the pod, and another tag in place does not change it.
            if compared.bare and not compared.pulling.intersection(pod.spec.not_pulling):
                found = Comparison(
                    template,
                    bare and template.hashes.bare,
                    compared.alike,
                    compared.alike and compared.whole,
                )
        result[instance.id] = found
        if not found.alike:
            others.add(pair)
    return result


class _Compared(NamedTuple):
    """The comparison of two templates: what pods were made of, and what they are to run.

    Attributes:
        bare: whether they do, but for images, labels, annotations and resources.
        pulling: containers that say only now that they pull always.
        alike: whether resources are the same, too, or are left to others.
        whole: whether all else is.
    """

    bare: bool
    pulling: frozenset[str] = frozenset()
    alike: bool = False
    whole: bool = False


class _Pairs:
    """Compares templates, those of many pods once."""

    def __init__(self, world: World, options: Options) -> None:
        self._moved, self._seconds = world.tapp.spec.force_delete_pod, options.toleration_seconds
        self._known: dict[tuple[int, int], tuple[Template, Template, _Compared]] = {}

    def compared(self, before: Template, template: Template, *, again: bool) -> _Compared:
        """Compares two templates; remembers that if other pods may be made of them, too."""
        key = id(before), id(template)
        if key in self._known:
            return self._known[key][2]
        found = self._compare(before, template)
        if again:  # with the templates: an id is that of another one when they are gone
            self._known[key] = before, template, found
        return found

    def _compare(self, before: Template, template: Template) -> _Compared:
        old, new = before.meaning.content, template.meaning.content
        if old.bare != new.bare:
            return _Compared(bare=False)
        tolerated = [
            of_pods(one.tolerations, self._seconds, moved=self._moved) for one in (old, new)
        ]
        if tolerated[0] != tolerated[1]:
            return _Compared(bare=False)
        alike = template.ignores_resources or old.uniq == new.uniq
        whole = (
            before.images == template.images
            and before.labels == template.labels
            and before.annotations == template.annotations
        )
        return _Compared(True, new.pulling - old.pulling, alike, whole)
