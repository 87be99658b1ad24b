"""Instances as the history has them: with claims and Service (docs/design.md, "The partition")."""

from typing import NamedTuple

import msgspec

from tapp.decide.instances import Instance, is_updated
from tapp.declared.beside import beside_of, claim_templates
from tapp.declared.lookup import Templates
from tapp.declared.templates import Template, Unresolved
from tapp.pod.pod import Pod
from tapp.storage.records import Recorded
from tapp.words.notes import REVISION
from tapp.words.quoted import short
from tapp.words.ranges import SHOWN
from tapp.world import World


class AsKept(msgspec.Struct, frozen=True, gc=False):
    """The part of an `Instance` that is another one where a partition keeps it."""

    template: Template | Unresolved
    updated: bool
    service_name: str
    kept: str = ""
    past: Templates | None = None
    otherwise: str = ""
    doubt: str = ""


class _Past(NamedTuple):
    """A revision, as it was beside its template."""

    then: Templates | None  # the TApp as it was; None where no record has it
    otherwise: str  # what its pods have that those of today have not, for a person
    service: str | None  # the Service that they are in, None where neither record nor pods say so


class AsRecorded:
    """Instances as the history has them; each revision is looked at once."""

    def __init__(self, world: World, recorded: Recorded) -> None:
        """`world` is what was observed, `recorded` its history."""
        self._world, self._recorded = world, recorded
        self._now = beside_of(world.tapp.spec)
        self._past, self._differs = dict[str, _Past](), dict[str, bool]()
        self._services: dict[str, set[str]] | None = None

    def at(self, instance: Instance, revision: str, template: Template) -> AsKept:
        """An instance whose next pod is made of a template of the history, and what was beside."""
        past, doubt = self._of(revision, template), ""
        service = instance.service_name if past.service is None else past.service
        if past.service is None and instance.pod is None:
            doubt = (
                f"the history does not say which serviceName revision {revision} had, and no pod "
                f"shows it: it gets that of today, {instance.service_name or 'none'}"
            )
        updated = is_updated(instance.pod, template)
        return AsKept(template, updated, service, revision, past.then, past.otherwise, doubt)

    def at_newest(self, instance: Instance, revision: str) -> AsKept | None:
        """One at the newest revision, as recorded; None where the spec is the same beside it."""
        called = instance.template.name
        if revision not in self._differs:
            then = self._recorded.then(revision, called)
            self._differs[revision] = then is not None and then.beside.differs_from(self._now)
        if not self._differs[revision]:
            return None
        template = self._recorded.template(revision, instance.id, called)
        if template is None:
            return None
        found = self.at(instance, revision, template)
        return msgspec.structs.replace(found, updated=instance.updated, kept="")

    def _of(self, revision: str, template: Template) -> _Past:
        found = self._past.get(revision)
        if found is None:
            found = self._past[revision] = self._look_up(revision, template)
        return found

    def _look_up(self, revision: str, template: Template) -> _Past:
        then = self._recorded.then(revision, template.name)
        if then is None:
            return _Past(None, "", None)
        beside, today = then.beside, claim_templates(self._world.tapp.spec)
        unsaid = beside.volume_claim_templates is None
        names = template.mounts if unsaid else claim_templates(then.spec)
        own = [name for name in names if name not in today]
        parts = [f"with its claim {short(name)}" for name in own[:SHOWN]]
        if len(own) > SHOWN:
            parts.append(f"and {len(own) - SHOWN} more")
        service = beside.service_name
        service = self._seen_in(revision) if service is None else service
        if service not in {None, self._now.service_name}:
            parts.append(f"in Service {short(service)}" if service else "in no Service")
        return _Past(then, ", ".join(parts), service)

    def _seen_in(self, revision: str) -> str | None:
        """The Service that pods of a revision are in; None where there are none, or of several."""
        if self._services is None:
            self._services = {}
            for pod in self._world.pods.values():
                if (label := label_of(pod)) is not None:
                    self._services.setdefault(label, set()).add(pod.spec.subdomain)
        words = revision.split("-")
        labels = ("-".join(words[:count]) for count in range(1, len(words) + 1))
        found = set[str]().union(*(self._services.get(label, ()) for label in labels))
        return found.pop() if len(found) == 1 else None


def label_of(pod: Pod) -> str | None:
    """The revision that a pod says it is made of, as its template was written."""
    written = pod.spec.written
    return written if written and REVISION.fullmatch(written) else pod.spec.template_hash
