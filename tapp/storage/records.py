"""The records of a TApp: its ControllerRevisions, with the templates of earlier revisions.

Entry point: `Records`, which reads all records once in a sync. A record has a template, the values
that the template reads, the claim templates and `spec.serviceName`. `history.py` decides which
records are created, kept and deleted.

A record is identified by the name of its template and by its *content*:

    content = hash of the template, or
              hash of the template + "-" + digest of the values, if the template reads values

The content is computed once, when the record is read. All comparisons of records use it, and so do
the partition, `status.kept` and the plugin. Pods have the first part of it in a label.

The claim templates and `spec.serviceName` are recorded, but are not part of the content: a change
of them alone begins no rollout (docs/partition.md), and no label of a pod shows them. So the
history has one record of each content, with the newest of them.
"""

from collections.abc import Iterable
from itertools import chain, islice
from typing import Final, NamedTuple

from tapp.declared.claims_and_service import ClaimsAndService, recorded_parts
from tapp.declared.lookup import FilledTemplates, Templates
from tapp.declared.templates import Template
from tapp.kube.objects import RevisionObject
from tapp.pod.pod import Pod
from tapp.world import World

# Records that are compared with a pod, the likeliest first; a TApp may have any number of records.
_MOST_TRIED: Final = 10
# Fewer records are compared if their template has to be filled in for that, which takes longer.
_MOST_FILLED: Final = 3


class Record(NamedTuple):
    """A ControllerRevision that this service has written.

    Records compare by number, so the newest record is the largest.
    """

    number: int  # Its number in the TApp's history.
    name: str  # Name of the ControllerRevision.
    template: str  # Name of its template.
    content: str  # Identity of its template and values, as `content_name` returns it.
    revision: str  # Hash of its template, which pods have in a label.
    observed: RevisionObject  # The ControllerRevision itself.

    @property
    def is_being_deleted(self) -> bool:
        """True if the ControllerRevision has a deletion timestamp."""
        return self.observed.metadata.deletion_timestamp is not None

    @property
    def data(self) -> bytes:
        """The JSON of the ControllerRevision's `data`."""
        return bytes(self.observed.data)

    @property
    def other_parts(self) -> ClaimsAndService:
        """The recorded claim templates and Service name."""
        return recorded_parts(self.data)


def content_name(revision: str, values: str) -> str:
    """Returns the content of a record, such as `v1-0a1b`, or `v1-0a1b-2c3d` with values.

    Args:
        revision: the hash of the template.
        values: the digest of the values that the template reads; empty if it reads none.
    """
    return f"{revision}-{values}" if values else revision


def read_record(revision: RevisionObject) -> Record | None:
    """Returns the record in a ControllerRevision.

    Returns None if this service did not write the ControllerRevision, or if its label or
    annotations are missing.
    """
    meta = revision.metadata
    label = meta.labels and meta.labels.revision
    template = meta.annotations and meta.annotations.template
    if not label or not template or revision.revision is None:
        return None
    values = (meta.annotations and meta.annotations.values) or ""
    content = content_name(label, values)
    return Record(revision.revision, meta.name, template, content, label, revision)


class Records:
    """The records of a TApp, and the current content of each template in the spec.

    The `data` of a record is decoded when its template is first used, and at most once in a sync. A
    record whose template is too large to be filled in for all instances counts as missing.
    """

    def __init__(self, world: World) -> None:
        """Reads all records, without decoding their `data`."""
        self._templates = world.templates
        self._lookups: dict[tuple[str, str], Templates | None] = {}
        self._filled: dict[tuple[str, str], FilledTemplates] = {}
        self._known: dict[str, str] = {}
        read = (read_record(found) for found in world.revisions.values())
        # All records, newest first. ControllerRevisions that this service did not write are left
        # out.
        self.all = sorted((record for record in read if record is not None), reverse=True)
        # Content -> the newest record of it. A record that is being deleted can still be read.
        self._by_content: dict[str, Record] = {}
        self._of_revision: dict[str, list[str]] = {}  # Hash of a template -> contents with it.
        # Template name -> content -> the newest record of it, newest first. Records that are being
        # deleted are left out.
        self.by_template: dict[str, dict[str, Record]] = {}
        for record in self.all:
            if record.content not in self._by_content:
                self._by_content[record.content] = record
                self._of_revision.setdefault(record.revision, []).append(record.content)
            if not record.is_being_deleted:
                of_template = self.by_template.setdefault(record.template, {})
                of_template.setdefault(record.content, record)
        # Name of a template in the spec -> its current content. Unusable templates are left out.
        self.current = {
            name: self._content_of(name, template)
            for name, template in world.templates.by_name.items()
            if isinstance(template, Template)
        }

    def _content_of(self, name: str, template: Template) -> str:
        """Returns the content of a template of the spec, with its values.

        The newest record may have values of further instances, which ran the template earlier. If
        it fills in the template for all current instances exactly like the spec, the result is the
        content of that record. Otherwise an instance that leaves the template would make a new
        content, and so would begin a rollout.
        """
        content = content_name(template.revision, self._templates.values_of(name).digest)
        newest = next(iter(self.by_template.get(name, {}).values()), None)
        if newest is None or content == newest.content or template.revision != newest.revision:
            return content
        return newest.content if self._templates.filled_alike(name, newest.data) else content

    def newest_of(self, revisions: Iterable[str]) -> str:
        """Returns the content of the newest record whose template has one of these hashes.

        Returns an empty string if the history has none of them.
        """
        wanted = set(revisions)
        return next((record.content for record in self.all if record.revision in wanted), "")

    def templates_of(self, content: str, name: str) -> Templates | None:
        """Returns the spec in a ControllerRevision, which has one template for all instances.

        Returns None if there is no such ControllerRevision, or if it cannot be read.

        Args:
            content: the content of the record.
            name: the name that the template gets in the result; in the record it may have another
                name.
        """
        key = content, name
        if key not in self._lookups:
            record = self._by_content.get(content)
            self._lookups[key] = (
                None if record is None else self._templates.recorded(name, record.data)
            )
        return self._lookups[key]

    def template(self, content: str, instance: int, name: str) -> Template | None:
        """Returns the template of a ControllerRevision, filled in for an instance.

        Returns None if there is no such ControllerRevision, or if its template cannot be filled in
        for the instance.

        Args:
            content: the content of the record.
            instance: the number of the instance.
            name: the template's current name.
        """
        lookup = self.templates_of(content, name)
        if lookup is None:
            return None
        found = lookup.filled_in(instance, self._filled.setdefault((content, name), {}))
        return found if isinstance(found, Template) else None

    def of_pod(self, pod: Pod, instance: int, template: str, likely: Iterable[str]) -> str:
        """Returns the content of the record that has the template from which a pod was created.

        Returns an empty string if no record has it.

        Args:
            pod: the pod.
            instance: the number of its instance.
            template: the current name of the instance's template.
            likely: the contents to compare first.
        """
        # If a template has placeholders, each instance has its own filled-in template. Its pod has
        # the hash of that one and, in an annotation, the hash of the template as written.
        revision, written = pod.spec.template_hash or "", pod.spec.written
        known = None if written else self._known.get(revision)
        if known is None:
            named = self._of_revision.get(written or revision, ())
            # If `resources: Ignore` was set or removed since, the same template has another
            # revision now. Only a template without placeholders is worth comparing with all
            # records, because the result serves all instances.
            others = () if written else self._by_content
            first = (islice(names, _MOST_TRIED) for names in (likely, named, others))
            most = _MOST_FILLED if written else _MOST_TRIED
            tried = islice(dict.fromkeys(chain.from_iterable(first)), most)
            known = next(
                (name for name in tried if self._has(name, instance, template, revision)), ""
            )
            if not written:
                self._known[revision] = known
        return known

    def _has(self, content: str, instance: int, name: str, revision: str) -> bool:
        """Returns True if the template in a ControllerRevision has this revision for an instance.

        Args:
            content: the content of the record.
            instance: the number of the instance.
            name: the template's current name.
            revision: the revision. It may include the resources of running containers or leave them
                out (`resources: Ignore`).
        """
        found = self.template(content, instance, name)
        return found is not None and revision in (found.revision, found.other_revision)
