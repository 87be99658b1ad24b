"""Kept instances: template, claims and Service of an older revision, from the history.

A record of the history has a template. Unless it was too large, it also has the claim templates and
`spec.serviceName` of its time. The next pod of a kept instance is created from all of these, so
that it is like the pod before (docs/partition.md).
"""

from typing import NamedTuple

import msgspec

from tapp.decide.instances import FromHistory, Instance, is_updated
from tapp.decide.verdicts import Verdict
from tapp.declared.claims_and_service import claim_templates, parts_of
from tapp.declared.lookup import Templates
from tapp.declared.templates import Template
from tapp.pod.pod import Pod
from tapp.storage.records import Records
from tapp.words.notes import REVISION
from tapp.words.quoted import short
from tapp.words.ranges import SHOWN
from tapp.world import World


class KeptInstance(msgspec.Struct, frozen=True, gc=False):
    """The new values of an instance's fields after the partition has kept it at an older revision.

    The fields have the same names and meanings as in `Instance`.
    """

    template: Template | None
    decided: Verdict | None  # the verdict if there is no template
    updated: bool
    service_name: str
    history: FromHistory

    def of(self, instance: Instance) -> Instance:
        """Returns a copy of the instance with these values."""
        return msgspec.structs.replace(
            instance,
            template=self.template,
            decided=self.decided,
            updated=self.updated,
            service_name=self.service_name,
            history=self.history,
        )


class _Revision(NamedTuple):
    """The claim templates and the Service of an older revision, from its ControllerRevision."""

    templates: Templates | None  # the recorded spec; None if there is no record
    additions: str  # claims and Service that the spec has no longer, for a person; or ""
    # `spec.serviceName` of that time; None if neither the record nor the pods say it
    service: str | None


class KeptInstances:
    """Creates a `KeptInstance` for each instance that a partition keeps at an older revision.

    Each revision is looked up in the history only once.
    """

    def __init__(self, world: World, records: Records) -> None:
        self._world, self._records = world, records
        self._now = parts_of(world.tapp.spec)
        self._revisions, self._differs = dict[str, _Revision](), dict[str, bool]()
        self._services: dict[str, set[str]] | None = None

    def at(self, instance: Instance, revision: str, template: Template) -> KeptInstance:
        """Returns the changes to an instance that the partition keeps at an older revision.

        Args:
            instance: the instance, with the template of the current spec.
            revision: the name of the older revision.
            template: the instance's template at that revision.
        """
        found, unknown = self._of(revision, template), ""
        service = instance.service_name if found.service is None else found.service
        # Only a pod that is created needs to know the Service. A pod that exists keeps its own.
        if found.service is None and instance.pod is None:
            unknown = (
                f"the history does not say which serviceName revision {revision} had, and no pod "
                f"shows it, so the pod gets the present one: {instance.service_name or 'none'}"
            )
        history = FromHistory(revision, found.templates, found.additions, unknown)
        return KeptInstance(template, None, is_updated(instance.pod, template), service, history)

    def at_newest(self, instance: Instance, revision: str) -> KeptInstance | None:
        """Returns the changes to an instance that the partition keeps at the newest revision.

        Returns None if the ControllerRevision is like the spec, or is missing. Both differ if a
        user has changed claim templates or `spec.serviceName`, but not the template. The revision
        stays the same then, and the next pod of the instance follows the ControllerRevision.
        """
        name = instance.template_name
        if revision not in self._differs:
            templates = self._records.templates_of(revision, name)
            self._differs[revision] = templates is not None and templates.other_parts.differs_from(
                self._now
            )
        if not self._differs[revision]:
            return None
        template = self._records.template(revision, instance.id, name)
        if template is None:
            return None
        found = self.at(instance, revision, template)
        history = msgspec.structs.replace(found.history, revision="")
        return msgspec.structs.replace(found, updated=instance.updated, history=history)

    def _of(self, revision: str, template: Template) -> _Revision:
        """Returns the claim templates and the Service of a revision.

        Each revision is looked up only once.
        """
        found = self._revisions.get(revision)
        if found is None:
            found = self._revisions[revision] = self._look_up(revision, template)
        return found

    def _look_up(self, revision: str, template: Template) -> _Revision:
        """Reads the claim templates and the Service of a revision from its ControllerRevision.

        If the ControllerRevision does not have the Service, the pods of that revision show it.
        """
        templates = self._records.templates_of(revision, template.name)
        if templates is None:
            return _Revision(None, "", None)
        recorded, today = templates.other_parts, claim_templates(self._world.tapp.spec)
        # If the record was too large to have claim templates, the mounts of the template show them.
        lacks_claims = recorded.volume_claim_templates is None
        names = template.mounts if lacks_claims else claim_templates(templates.spec)
        own = [name for name in names if name not in today]
        parts = [f"with its claim {short(name)}" for name in own[:SHOWN]]
        if len(own) > SHOWN:
            parts.append(f"and {len(own) - SHOWN} more")
        service = recorded.service_name
        service = self._service_of_pods(revision) if service is None else service
        if service not in {None, self._now.service_name}:
            parts.append(f"in Service {short(service)}" if service else "in no Service")
        return _Revision(templates, ", ".join(parts), service)

    def _service_of_pods(self, revision: str) -> str | None:
        """Returns the name of the Service (`spec.subdomain`) that all pods of a revision have.

        Returns an empty string if the pods have no Service, and None if the revision has no pods or
        if they differ.
        """
        if self._services is None:
            self._services = {}
            for pod in self._world.pods.values():
                if (label := label_of(pod)) is not None:
                    self._services.setdefault(label, set()).add(pod.spec.subdomain)
        # A pod's label has the revision of its template, and `revision` may have a hash of the
        # values behind it.
        words = revision.split("-")
        labels = ("-".join(words[:count]) for count in range(1, len(words) + 1))
        found = set[str]().union(*(self._services.get(label, ()) for label in labels))
        return found.pop() if len(found) == 1 else None


def label_of(pod: Pod) -> str | None:
    """Returns the revision that a pod's labels or annotations name, or None without one.

    If the pod's template has placeholders, this is the revision before they were filled in.
    """
    written = pod.spec.written
    return written if written and REVISION.fullmatch(written) else pod.spec.template_hash
