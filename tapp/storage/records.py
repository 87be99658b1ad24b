"""Reads a TApp's ControllerRevisions: the templates of earlier revisions, with their values.

A record contains a template, the values that it reads, the Service name and the claim templates.
Its *content* is identified by the template's revision and, if the template reads values, their
digest (`content_name`). `history.py` decides which records are kept, created and deleted.
"""

from collections.abc import Iterable
from itertools import chain, islice
from typing import Final, NamedTuple

from tapp.declared.lookup import FilledTemplates, Templates
from tapp.declared.templates import Template
from tapp.kube.objects import RevisionObject
from tapp.pod.pod import Pod
from tapp.world import World

# A template's revision and the digest of its values; the digest is empty if it reads none.
Content = tuple[str, str]
# A template's name and its content.
NamedContent = tuple[str, Content]

# Records that are compared with a pod, the likeliest first; a TApp may have any number of records.
_MOST_TRIED: Final = 10
# Fewer records are compared if their template has to be filled in for that, which takes longer.
_MOST_FILLED: Final = 3


class HistoryEntry(NamedTuple):
    """The facts about a ControllerRevision that this service has written, without its template.

    They are its number, its name, the name and the revision of its template, and the digest of its
    values. Entries compare by number, so the newest entry is the largest.
    """

    number: int
    name: str
    template: str
    revision: str
    values: str

    @property
    def named_content(self) -> NamedContent:
        """The name of the template, with its revision and the digest of its values."""
        return self.template, self.content

    @property
    def content(self) -> Content:
        """The revision of the template and the digest of its values; empty if it reads none."""
        return self.revision, self.values


def read_entry(revision: RevisionObject) -> HistoryEntry | None:
    """Returns number, name, template and revision of a ControllerRevision.

    Returns None if this service did not write it, or if its label or annotations are missing.
    """
    meta = revision.metadata
    label = meta.labels and meta.labels.revision
    template = meta.annotations and meta.annotations.template
    if not label or not template or revision.revision is None:
        return None
    values = (meta.annotations and meta.annotations.values) or ""
    return HistoryEntry(revision.revision, meta.name, template, label, values)


def content_name(content: Content) -> str:
    """Returns a name for the revision of a template and its values, for the status and messages.

    The name is the revision, such as `v1-0a1b`, and the digest of the values if the template reads
    any, such as `v1-0a1b-2c3d`.
    """
    return "-".join(filter(None, content))


class Contents:
    """The current *content* of each template in the spec: its revision and the digest of its
    values.

    The newest ControllerRevision may contain the values of further instances, which ran the
    template earlier. If it fills in the template for all current instances exactly like the spec,
    its content is used. Otherwise a change of the further instances' values would start a new
    revision.
    """

    def __init__(self, world: World) -> None:
        """Finds the newest ControllerRevision of each template.

        ControllerRevisions that are being deleted do not count.
        """
        self._templates = world.templates
        self._newest: dict[str, tuple[HistoryEntry, RevisionObject]] = {}
        for found in world.revisions.values():
            record = read_entry(found)
            if record is None or found.metadata.deletion_timestamp is not None:
                continue
            if record.template not in self._newest or self._newest[record.template][0] < record:
                self._newest[record.template] = record, found

    def of(self, name: str) -> Content | None:
        """Returns the current revision of a template with the digest of its values.

        Returns None if the template does not exist or cannot be used. `name` is the name of the
        template.
        """
        template = self._templates.named(name)
        if not isinstance(template, Template):
            return None
        content = template.revision, self._templates.values_of(name).digest
        # Further values in the newest record must not make a new content (class docstring).
        record, found = self._newest.get(name, (None, None))
        if record is None or found is None or record.content == content:
            return content
        alike = record.revision == template.revision and self._templates.filled_alike(
            name, bytes(found.data)
        )
        return record.content if alike else content


class Records:
    """The templates of earlier revisions, from the ControllerRevisions of a TApp.

    A ControllerRevision is found by `content_name`, the name of its revision and values. It is
    decoded on first use, and at most once in a sync. It counts as missing if its template is too
    large to be filled in for all instances.
    """

    def __init__(self, world: World) -> None:
        """Sorts the ControllerRevisions by age, without decoding them."""
        self._templates = world.templates
        self._lookups: dict[tuple[str, str], Templates | None] = {}
        self._filled: dict[tuple[str, str], FilledTemplates] = {}
        self._objects: dict[str, RevisionObject] = {}
        self._of_revision: dict[str, list[str]] = {}
        self._known: dict[str, str] = {}
        pairs = [(read_entry(found), found) for found in world.revisions.values()]
        records = [(record, found) for record, found in pairs if record is not None]
        for record, found in sorted(records, key=lambda pair: pair[0], reverse=True):
            name = content_name(record.content)
            if name not in self._objects:
                self._objects[name] = found
                self._of_revision.setdefault(record.revision, []).append(name)

    def newest_of(self, revisions: Iterable[str]) -> str:
        """Returns the name (`content_name`) of the newest ControllerRevision with such a revision.

        Returns an empty string if the history has none of the given revisions.
        """
        wanted = set(revisions)
        names = {name for each in wanted for name in self._of_revision.get(each, ())}
        return next((name for name in self._objects if name in names), "")

    def templates_of(self, content: str, name: str) -> Templates | None:
        """Returns the spec of a ControllerRevision, in which all instances run one template.

        Returns None if there is no such ControllerRevision, or if it cannot be read.

        Args:
            content: the name of its revision and values (`content_name`).
            name: the name that the template has in the result; it may have had another name then.
        """
        key = content, name
        if key not in self._lookups:
            record = self._objects.get(content)
            self._lookups[key] = (
                None if record is None else self._templates.recorded(name, bytes(record.data))
            )
        return self._lookups[key]

    def template(self, content: str, instance: int, name: str) -> Template | None:
        """Returns the template of a ControllerRevision, filled in for an instance.

        Returns None if there is no such ControllerRevision, or if its template cannot be filled in
        for the instance.

        Args:
            content: the name of its revision and values (`content_name`).
            instance: the number of the instance.
            name: the template's current name.
        """
        lookup = self.templates_of(content, name)
        if lookup is None:
            return None
        found = lookup.filled_in(instance, self._filled.setdefault((content, name), {}))
        return found if isinstance(found, Template) else None

    def of_pod(self, pod: Pod, instance: int, template: str, likely: Iterable[str]) -> str:
        """Returns the ControllerRevision that has the template from which a pod was created.

        The result is the name of its revision and values (`content_name`). Returns an empty string
        if no ControllerRevision fits.

        Args:
            pod: the pod.
            instance: the number of its instance.
            template: the current name of the instance's template.
            likely: names of the ControllerRevisions to compare first.
        """
        # A pod whose template has placeholders also has the revision of the template as written.
        revision, written = pod.spec.template_hash or "", pod.spec.written
        known = None if written else self._known.get(revision)
        if known is None:
            named = self._of_revision.get(written or revision, ())
            # If `resources: Ignore` was set or removed since, the same template has another
            # revision now. Only a template without placeholders is worth comparing with all
            # records, because the result serves all instances.
            others = () if written else self._objects
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
        """Returns True if the template of a ControllerRevision has this revision for an instance.

        Args:
            content: the name of its revision and values (`content_name`).
            instance: the number of the instance.
            name: the template's current name.
            revision: the revision, with or without the resources of running containers.
        """
        found = self.template(content, instance, name)
        return found is not None and revision in (found.revision, found.other_revision)
