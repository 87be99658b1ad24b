"""What pods were made of that differ in more than their hashes can tell.

A template that is written in another way has another revision, and still its pod may be the one
that it describes (`tapp/spec/meaning.py`): then nothing about it is to change but its labels.
"""

from collections.abc import Iterable

from tapp.decide.filling import LATER, MOST
from tapp.decide.instances import Instance
from tapp.kube.tolerations import of_pods
from tapp.pod.pod import Pod
from tapp.spec.templates import Template, Unresolved
from tapp.storage.origins import Origins
from tapp.words.reasons import Reason
from tapp.world import Options, World


def recall(world: World, instances: Iterable[Instance], options: Options) -> None:
    """Sets what the templates of such pods were, and whether they mean what they are to run."""
    origins: Origins | None = None
    others = set[tuple[str | None, str]]()
    for instance in instances:
        pod, template = instance.pod, instance.template
        if pod is None or instance.updated or not isinstance(template, Template):
            continue
        if pod.odd or pod.foreign or pod.spec.uniq_hash in template.hashes:
            continue
        origins = origins or Origins(world, MOST)
        recorded = origins.recorded(pod, instance.id, template.name)
        if recorded is None and origins.full:  # a later sync knows what its pod was made of
            instance.template = Unresolved(template.name, LATER, Reason.WAITING_FOR_TURN)
            continue
        instance.recorded = pod.spec.bare_hash or ("" if recorded is None else recorded.hashes.bare)
        pair = pod.spec.template_hash, template.revision
        before = recorded
        if before is None and pair not in others:  # one that differs tells of all of its revision
            before = origins.applied(pod)
        if before is not None:
            _compare(world, instance, pod, (before, template), options)
        if not instance.alike:
            others.add(pair)


def _compare(
    world: World,
    instance: Instance,
    pod: Pod,
    templates: tuple[Template, Template],
    options: Options,
) -> None:
    """Sets whether two templates mean the same: what the pod was made of, and what it is to run."""
    before, template = templates
    old, new = before.meaning.content, template.meaning.content
    if old.bare != new.bare:
        return
    moved, seconds = world.tapp.spec.force_delete_pod, options.toleration_seconds
    tolerated = [of_pods(one.tolerations, seconds, moved=moved) for one in (old, new)]
    # A tag's default comes about with the pod, and another tag in place does not change it.
    lacking = (new.pulling - old.pulling).intersection(pod.spec.not_pulling)
    if tolerated[0] != tolerated[1] or lacking:
        return
    if instance.recorded:
        instance.recorded = template.hashes.bare
    instance.alike = template.ignores_resources or old.uniq == new.uniq
    instance.respelled = (
        instance.alike
        and before.images == template.images
        and before.labels == template.labels
        and before.annotations == template.annotations
    )
