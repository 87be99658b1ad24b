"""Kept instances: template, claims and Service of an older revision, from the history.

Entry point: `KeptInstances.keep`, for instances that a partition or a rollback keeps. A record of
the history has a template. Unless it was too large, it also has the claim templates and
`spec.serviceName` of its time. The next pod of a kept instance is created from all of these, so
that it is like the pod before (docs/partition.md):

    template, claims    from the record
    Service             from the record; if that lacks it, from the pods of that revision;
                        if these do not show it, from the current spec
"""

from typing import NamedTuple

import msgspec

from tapp.decide.instances import FromHistory, Instance, is_updated
from tapp.decide.verdicts import no_template
from tapp.declared.claims_and_service import claim_templates, parts_of
from tapp.declared.lookup import Templates
from tapp.declared.templates import Template
from tapp.pod.pod import Pod
from tapp.storage.records import Records
from tapp.words.notes import REVISION
from tapp.words.quoted import short
from tapp.words.ranges import SHOWN
from tapp.words.reasons import Reason
from tapp.world import World


class _Revision(NamedTuple):
    """The claim templates and the Service of an older revision, from its ControllerRevision."""

    templates: Templates | None  # the recorded spec; None if there is no record
    # Text for users about claims and a Service that only the recorded spec has, or ""
    additions: str
    # `spec.serviceName` of that time; None if neither the record nor the pods show it
    service: str | None


class KeptInstances:
    """Gives instances that are kept at an older revision its template, claims and Service.

    A partition keeps them (`partition.py`), or the newest revision was rolled back (`rollback.py`).

    Each revision is looked up in the history only once.
    """

    def __init__(
        self, world: World, records: Records, newest: str, *, rolled_back: bool = False
    ) -> None:
        """Stores the arguments; no revision is looked up yet.

        Args:
            world: the TApp with its children.
            records: the revisions in the history.
            newest: the newest revision of the rolling template (`spec.updateStrategy.template`);
                empty if there is no such template.
            rolled_back: True if the instances are kept because `newest` was rolled back.
        """
        self._world, self._records, self._newest = world, records, newest
        self._rolled_back = newest if rolled_back else ""
        self._now = parts_of(world.tapp.spec)
        self._revisions = dict[str, _Revision]()
        self._services: dict[str, set[str]] | None = None
        self._newest_differs: bool | None = None  # None until a rule needs it.

    def keep(self, instance: Instance, revision: str) -> Instance:
        """Returns an instance with template, claims and Service of the revision that it is kept at.

        If the history lacks the revision, a pod that runs stays as it is, and an instance without a
        pod gets none.

        Args:
            instance: the instance, as the current spec has it.
            revision: the name of the revision at which the instance is kept. It may be the newest
                one.
        """
        pod = instance.pod
        if revision == self._newest:
            return self._keep_at_newest(instance)
        # An unreadable pod is left alone. A pod of another controller is adopted if it fits the
        # newest template as it is.
        if pod is not None and (pod.unreadable or pod.foreign):
            history = FromHistory(revision, rolled_back=self._rolled_back)
            return msgspec.structs.replace(instance, history=history)
        template = self._records.template(revision, instance.id, instance.template_name)
        if template is not None:
            return self._at(instance, revision, template)
        # Without the record, a pod that runs stays as it is, which is all that the partition wants.
        # Any other instance cannot get a pod.
        stays = pod is not None and not pod.completed
        history = FromHistory(revision, rolled_back=self._rolled_back)
        decided = no_template(
            Reason.KEPT if stays else Reason.REVISION_NOT_FOUND,
            f"{history.why}, which is not in the history",
            has_pod=pod is not None,
        )
        return msgspec.structs.replace(
            instance, template=None, decided=decided, updated=False, history=history
        )

    def _keep_at_newest(self, instance: Instance) -> Instance:
        """Returns an instance that the partition keeps at the newest revision.

        A change of claim templates or `spec.serviceName` alone makes no new revision. After such a
        change, the instance gets the claim templates and the Service of the record. Without such a
        change, or without a record, the instance stays as the current spec has it.
        """
        if self._newest_differs is None:
            self._newest_differs = self._differs_from_spec(instance.template_name)
        if not self._newest_differs:
            return instance
        template = self._records.template(self._newest, instance.id, instance.template_name)
        return instance if template is None else self._at(instance, self._newest, template)

    def _differs_from_spec(self, rolling: str) -> bool:
        """Returns True if the record of the newest revision has other claims or another Service.

        "Other" means other than the current spec. Returns False if the history lacks the revision.
        `rolling` is the name of the rolling template.
        """
        templates = self._records.templates_of(self._newest, rolling)
        return templates is not None and templates.other_parts.differs_from(self._now)

    def _at(self, instance: Instance, revision: str, template: Template) -> Instance:
        """Returns an instance with template, claims and Service of a recorded revision.

        Args:
            instance: the instance, as the current spec has it.
            revision: the name of the revision.
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
        # At the newest revision an instance counts as updated, not as kept at an older revision.
        is_newest = revision == self._newest
        return msgspec.structs.replace(
            instance,
            template=template,
            decided=None,
            updated=instance.updated if is_newest else is_updated(instance.pod, template),
            service_name=service,
            history=FromHistory(
                "" if is_newest else revision,
                found.templates,
                found.additions,
                unknown,
                self._rolled_back,
            ),
        )

    def _of(self, revision: str, template: Template) -> _Revision:
        """Returns the claim templates and the Service of a revision.

        Each revision is looked up only once. `template` is the template of the revision.
        """
        found = self._revisions.get(revision)
        if found is None:
            found = self._revisions[revision] = self._look_up(revision, template)
        return found

    def _look_up(self, revision: str, template: Template) -> _Revision:
        """Reads the claim templates and the Service of a revision from its ControllerRevision.

        If the ControllerRevision does not have the Service, the pods of that revision show it.
        `template` is the template of the revision.
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
            parts.append(f"in Service {short(service)}" if service else "without a Service")
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
    """Returns the revision of the template that a pod was created from, as the pod itself says.

    If the template has placeholders, this is the revision of the template as written, from an
    annotation of the pod. Otherwise it is the pod's label. Returns None if the pod has neither.
    """
    written = pod.spec.written
    return written if written and REVISION.fullmatch(written) else pod.spec.template_hash
