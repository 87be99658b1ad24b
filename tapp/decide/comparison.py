"""Compares the template that a pod was created from with the template that it should run.

The same template in another notation has another revision, although its pods would be identical
(`tapp/declared/meaning.py`). In this case only the pod's labels change. The hashes in the pod's
labels cannot show that, so the pod's own template is looked up: in the history, or in the copy that
Metacontroller keeps of the applied pod.
"""

from collections.abc import Iterable
from typing import NamedTuple

from tapp.decide.instances import Comparison, Instance
from tapp.declared.metadata import Metadata
from tapp.declared.reads import restarting
from tapp.declared.templates import Template, resolve, running
from tapp.kube.resources import Sizes, sizes_of, with_requests
from tapp.kube.tolerations import of_pods
from tapp.pod.applied import applied_body
from tapp.pod.pod import Pod
from tapp.storage.records import Records
from tapp.world import Options, World


def compare(
    world: World, records: Records, instances: Iterable[Instance], options: Options
) -> dict[int, Comparison]:
    """Compares the template that each pod was created from with the one that it should run.

    Returns instance number -> comparison. These pods have no entry:

    - Pods that have the revision of their template.
    - Pods that differ from their template in images only.
    - Pods that are unreadable or belong to another controller.

    Args:
        world: the TApp with its children.
        records: the templates in the history.
        instances: all instances of the TApp.
        options: the operator's settings.
    """
    result = dict[int, Comparison]()
    different = set[tuple[str | None, str]]()
    pairs = _Pairs(world, options)
    for instance in instances:
        pod, template = instance.pod, instance.template
        if pod is None or instance.updated or template is None:
            continue
        same_hash = pod.spec.uniq_hash in template.hashes
        if same_hash and pod.spec.metadata == template.metadata:
            continue  # only images differ, and the hashes say that
        # Pods of other controllers have no hash of this service, so `judge` compares them field by
        # field.
        if pod.unreadable or pod.foreign:
            continue
        recorded = _recorded(records, pod, instance)
        metadata = None if recorded is None else Metadata(recorded.labels, recorded.annotations)
        if same_hash:
            result[instance.id] = Comparison(metadata=metadata)
            continue
        bare = pod.spec.bare_hash or ("" if recorded is None else recorded.hashes.bare)
        revisions = pod.spec.template_hash, template.revision
        before = recorded
        # Metacontroller's copy is large. If one pod of a revision differs, all pods of it do.
        if before is None and revisions not in different:
            before = _applied(world, pod)
        same_spec = same = False
        if before is not None:
            found = pairs.compared(before, template, shared=recorded is not None)
            # The API server defaults imagePullPolicy from the tag when a pod is created. An image
            # that is changed in place does not change the policy of the pod.
            if found.bare and not found.pulling.intersection(pod.spec.not_pulling):
                bare = bare and template.hashes.bare
                same_spec = found.same_spec
                same = found.same_spec and found.same_rest
        rereads = () if same_spec else _rereads(pod, recorded, template)
        result[instance.id] = Comparison(bare, same_spec, same, metadata, rereads)
        if not same_spec:
            different.add(revisions)
    return result


def _rereads(pod: Pod, recorded: Template | None, template: Template) -> tuple[str, ...]:
    """Returns the containers that have to restart to read resources that the template has changed.

    These containers have their resources in environment variables, which change only with a
    restart. Containers that the kubelet restarts for the resize anyway (`resizePolicy`) are left
    out.

    Args:
        pod: the pod of the instance.
        recorded: the template that the pod was created from. If it is None (unknown), the function
            returns all containers that read resources.
        template: the template that the instance should run.
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
    """Returns container name -> requests and limits of the container, as numbers."""
    containers = running(template.spec)
    return {each["name"]: sizes_of(with_requests(each.get("resources"))) for each in containers}


def _recorded(records: Records, pod: Pod, instance: Instance) -> Template | None:
    """Returns the template that a pod was created from, or None if the history does not have it."""
    label = pod.spec.written or pod.spec.template_hash or ""
    revision = records.of_pod(pod, instance.id, instance.template_name, ())
    if not label or not revision.startswith(label):
        return None
    return records.template(revision, instance.id, instance.template_name)


def _applied(world: World, pod: Pod) -> Template | None:
    """Returns the template that a pod was created from, read from Metacontroller's copy of the pod.

    Metacontroller keeps this copy in an annotation of the pod. Returns None if the copy is missing
    or has no valid template, or if its resources may come from a resize.
    """
    body = applied_body(world.manifests[pod.name])
    if body is None:
        return None
    found = resolve("", body, ignores_resources=world.tapp.spec.ignores_resources)
    if not isinstance(found, Template):
        return None
    # The resources in the copy may come from a resize. The copy is trusted if its revision matches,
    # or if it sets no resources.
    known = pod.spec.template_hash in (found.revision, found.other_revision)
    return found if known or found.hashes.whole == found.hashes.bare else None


class _Compared(NamedTuple):
    """The result of comparing two templates."""

    # True if both templates make the same pod, except for images, labels, annotations, resources
    bare: bool
    # Containers that have the pull policy Always in the new template, but not in the old one
    pulling: frozenset[str] = frozenset()
    # True if `bare` is True and the resources are the same, or the TApp ignores resources
    same_spec: bool = False
    same_rest: bool = False  # True if images, labels and annotations are the same


class _Pairs:
    """Compares pairs of templates, and compares each pair only once even if many pods have it."""

    def __init__(self, world: World, options: Options) -> None:
        self._moved, self._seconds = world.tapp.spec.force_delete_pod, options.toleration_seconds
        self._known: dict[tuple[int, int], tuple[Template, Template, _Compared]] = {}

    def compared(self, before: Template, template: Template, *, shared: bool) -> _Compared:
        """Returns the differences between the template of an existing pod and the new template.

        Args:
            before: the template that the pod was created from.
            template: the template that the instance should run.
            shared: True if other pods may have the same two templates. The result is then stored.
        """
        key = id(before), id(template)
        if key in self._known:
            return self._known[key][2]
        found = self._compare(before, template)
        if shared:
            # The templates are stored as well, so that they continue to exist: Python gives the id
            # of a deleted object to another one.
            self._known[key] = before, template, found
        return found

    def _compare(self, before: Template, template: Template) -> _Compared:
        """Computes the differences between two templates; the arguments are those of `compared`."""
        old, new = before.meaning.content, template.meaning.content
        if old.bare != new.bare:
            return _Compared(bare=False)
        tolerated = [
            of_pods(one.tolerations, self._seconds, moved=self._moved) for one in (old, new)
        ]
        if tolerated[0] != tolerated[1]:
            return _Compared(bare=False)
        same_spec = template.ignores_resources or old.uniq == new.uniq
        same_rest = (
            before.images == template.images
            and before.labels == template.labels
            and before.annotations == template.annotations
        )
        return _Compared(True, new.pulling - old.pulling, same_spec, same_rest)
