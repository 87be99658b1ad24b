"""Recorded templates of pods that differ in more than their hashes can tell.

A template that is written in another way has another revision, and still its pod may be the one
that it describes (`tapp/declared/meaning.py`): then nothing about it is to change but its labels.
"""

from collections.abc import Iterable
from typing import NamedTuple

import msgspec

from tapp.decide.instances import Instance
from tapp.declared.metadata import Metadata
from tapp.declared.reads import restarting
from tapp.declared.templates import Template, resolve, running
from tapp.kube.resources import Sizes, sizes_of, with_requests
from tapp.kube.tolerations import of_pods
from tapp.pod.applied import applied_body
from tapp.pod.pod import Pod
from tapp.storage.records import Recorded
from tapp.world import Options, World


class Comparison(msgspec.Struct, frozen=True, gc=False):
    """The part of an `Instance` that a pod of another revision than its template's tells."""

    template: Template
    recorded: str = ""
    alike: bool = False
    respelled: bool = False
    before: Metadata | None = None
    rereads: tuple[str, ...] = ()


def compare(
    world: World, history: Recorded, instances: Iterable[Instance], options: Options
) -> dict[int, Comparison]:
    """Finds what the templates of such pods were, and whether they mean what they are to run."""
    result = dict[int, Comparison]()
    others = set[tuple[str | None, str]]()
    pairs = _Pairs(world, options)
    for instance in instances:
        pod, template = instance.pod, instance.template
        if pod is None or instance.updated or not isinstance(template, Template):
            continue
        if pod.unreadable or pod.foreign:
            continue
        same_spec = pod.spec.uniq_hash in template.hashes
        if same_spec and pod.spec.metadata == template.metadata:
            continue
        recorded = _recorded(history, pod, instance.id, template.name)
        told = None if recorded is None else Metadata(recorded.labels, recorded.annotations)
        if same_spec:
            result[instance.id] = Comparison(template, before=told)
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
        again = () if found.alike else _rereads(pod, recorded, template)
        result[instance.id] = msgspec.structs.replace(found, before=told, rereads=again)
        if not found.alike:
            others.add(pair)
    return result


def _rereads(pod: Pod, recorded: Template | None, template: Template) -> tuple[str, ...]:
    """Returns the containers whose environment has other resources than their template by now.

    All that read any if nobody knows the resources of the pod's revision. The kubelet itself
    restarts a container whose `resizePolicy` says so.
    """
    if not template.sizes or template.ignores_resources:
        return ()
    if recorded is None:
        return tuple(template.sizes)
    before, after = _sizes(recorded), _sizes(template)

    def is_restarted(name: str) -> bool:
        old, new = before.get(name, {}), after.get(name, {})
        changed = {key[1] for key in old.keys() | new.keys() if old.get(key) != new.get(key)}
        return not changed.isdisjoint(pod.spec.resize_restarts.get(name, ()))

    found = restarting(recorded.sizes, template.sizes)
    return tuple(name for name in found if not is_restarted(name))


def _sizes(template: Template) -> dict[str, Sizes]:
    containers = running(template.spec)
    return {each["name"]: sizes_of(with_requests(each.get("resources"))) for each in containers}


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
