"""Instances made as the history has them: of a template, with its claims and in its Service.

docs/design.md, "The partition": what else a pod is made of is kept, too.
"""

from typing import NamedTuple

from tapp.decide.instances import Instance
from tapp.pod.pod import Pod
from tapp.spec.beside import beside_of, claim_templates
from tapp.spec.lookup import Templates
from tapp.spec.templates import Template
from tapp.storage.records import Recorded
from tapp.words.notes import REVISION
from tapp.words.quoted import short
from tapp.words.ranges import SHOWN
from tapp.world import World


class _Past(NamedTuple):
    """A revision, as it was beside its template.

    Attributes:
        then: the TApp as it was; None where no record has it.
        otherwise: what its pods have that those of today have not, for a person.
        service: the Service that they are in, None where neither record nor pods say so.
    """

    then: Templates | None
    otherwise: str
    service: str | None


class AsRecorded:
    """Gives instances what the history has; each revision is looked at once."""

    def __init__(self, world: World, recorded: Recorded) -> None:
        """`world` is what was observed, `recorded` its history."""
        self._world, self._recorded = world, recorded
        self._now = beside_of(world.tapp.spec)
        self._past, self._differs = dict[str, _Past](), dict[str, bool]()
        self._services: dict[str, set[str]] | None = None

    def make(self, instance: Instance, revision: str, template: Template) -> None:
        """An instance's next pod is made of a template of the history, with what was beside it."""
        past = self._of(revision, template)
        instance.template, instance.past = template, past.then
        instance.otherwise = past.otherwise
        if past.service is not None:
            instance.service_name = past.service
        elif instance.pod is None:
            instance.doubt = (
                f"the history does not say which serviceName revision {revision} had, and no pod "
                f"shows it: it gets that of today, {instance.service_name or 'none'}"
            )

    def leave(self, instance: Instance, revision: str) -> None:
        """One at the newest revision stays as recorded, if the spec is another beside it."""
        called = instance.template.name
        if revision not in self._differs:
            then = self._recorded.then(revision, called)
            self._differs[revision] = then is not None and then.beside.differs_from(self._now)
        if not self._differs[revision]:
            return
        template = self._recorded.template(revision, instance.id, called)
        if template is not None:
            self.make(instance, revision, template)

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
