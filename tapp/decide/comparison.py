"""Recorded templates of pods that differ in more than their hashes can tell.

A template that is written in another way has another revision, and still its pod may be the one
that it describes (`tapp/declared/meaning.py`): then nothing about it is to change but its labels.
"""

from collections.abc import Iterable
from typing import NamedTuple

import msgspec

from tapp.decide.filling import LATER, MOST
from tapp.decide.instances import Instance
from tapp.declared.templates import Template, Unresolved, resolve
from tapp.kube.tolerations import of_pods
from tapp.pod.applied import applied_body
from tapp.pod.pod import Pod
from tapp.storage.records import Recorded
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
    history: Recorded | None = None
    others = set[tuple[str | None, str]]()
    pairs = _Pairs(world, options)
    for instance in instances:
        pod, template = instance.pod, instance.template
        if pod is None or instance.updated or not isinstance(template, Template):
            continue
        if pod.unreadable or pod.foreign or pod.spec.uniq_hash in template.hashes:
            continue
        history = history or Recorded(world, MOST)
        recorded = _recorded(history, pod, instance.id, template.name)
        if recorded is None and history.full:  # a later sync knows what its pod was made of
            late = Unresolved(template.name, LATER, Reason.WAITING_FOR_TURN)
            result[instance.id] = Comparison(late)
            continue
        bare = pod.spec.bare_hash or ("" if recorded is None else recorded.hashes.bare)
        pair = pod.spec.template_hash, template.revision
        before = recorded
        if before is None and pair not in others:  # one that differs tells of all of its revision
            before = _applied(world, pod)
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


def _recorded(history: Recorded, pod: Pod, instance: int, called: str) -> Template | None:
    label = pod.spec.written or pod.spec.template_hash or ""
    name = history.of_pod(pod, instance, called, ())
    if not label or not name.startswith(label):
        return None
    return history.template(name, instance, called)


def _applied(world: World, pod: Pod) -> Template | None:
    """The same as the pod's own text has it; None where that does not tell.

    Resources there may be somebody's resize: they are believed only if the revision says so.
    """
    body = applied_body(world.manifest_of(pod))
    if body is None:
        return None
    found = resolve("", body, ignores_resources=world.tapp.spec.ignores_resources)
    if not isinstance(found, Template):
        return None
    known = pod.spec.template_hash in (found.revision, found.other_revision)
    return found if known or found.hashes.whole == found.hashes.bare else None


class _Compared(NamedTuple):
    bare: bool  # whether they do, but for images, labels, annotations and resources
    pulling: frozenset[str] = frozenset()  # containers that say only now that they pull always
    alike: bool = False  # whether resources are the same, too, or are left to others
    whole: bool = False  # whether all else is


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
