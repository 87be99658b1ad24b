"""Content of a TApp's ControllerRevisions: templates as they were, with the values that they read.

A content is known by one name: the template's revision and, where it reads values, their digest
(`content_name`). What becomes of the records is decided in `history.py`.
"""

from collections.abc import Iterable
from itertools import chain, islice
from typing import Final, NamedTuple

from tapp.declared.lookup import Templates
from tapp.declared.templates import Template
from tapp.kube.objects import RevisionObject
from tapp.pod.pod import Pod
from tapp.world import World

Content = tuple[str, str]  # A template's revision, and the digest of its values
What = tuple[str, Content]  # A template's name, and its content

_MOST_TRIED: Final = 10  # Records tried for a pod, the likeliest first: there may be any number
_MOST_FILLED: Final = 3  # Records tried whose template has to be filled in for that


class HistoryEntry(NamedTuple):
    """A ControllerRevision that is one of ours, read; the newest one is the greatest."""

    number: int
    name: str
    template: str
    revision: str
    values: str

    @property
    def what(self) -> What:
        """The content of a record."""
        return self.template, self.content

    @property
    def content(self) -> Content:
        """The same, whatever the template is called."""
        return self.revision, self.values


def read_entry(revision: RevisionObject) -> HistoryEntry | None:
    """A ControllerRevision as a record of ours, None if it is none."""
    meta = revision.metadata
    label = meta.labels and meta.labels.revision
    template = meta.annotations and meta.annotations.template
    if not label or not template or revision.revision is None:
        return None
    values = (meta.annotations and meta.annotations.values) or ""
    return HistoryEntry(revision.revision, meta.name, template, label, values)


def content_name(content: Content) -> str:
    """The name of a content, in the status and for people: `v1-0a1b`, `v1-0a1b-2c3d`."""
    return "-".join(filter(None, content))


class Contents:
    """Contents of the spec's templates now, under the names by which the history knows them.

    That is the content of its newest record, where that has the same template and the values with
    which all instances that run it are filled in as they are by the spec. It may have those of
    others, too: of those that ran it once, and in older records of all.
    """

    def __init__(self, world: World) -> None:
        """Looks for the newest records."""
        self._templates = world.templates
        self._newest: dict[str, tuple[HistoryEntry, RevisionObject]] = {}
        for found in world.revisions.values():
            record = read_entry(found)
            if record is None or found.metadata.deletion_timestamp is not None:
                continue
            if record.template not in self._newest or self._newest[record.template][0] < record:
                self._newest[record.template] = record, found

    def of(self, name: str) -> Content | None:
        """The content of a template, None where it does not resolve."""
        template = self._templates.named(name)
        if not isinstance(template, Template):
            return None
        content = template.revision, self._templates.values_of(name).digest
        record, found = self._newest.get(name, (None, None))
        if record is None or found is None or record.content == content:
            return content
        alike = record.revision == template.revision and self._templates.filled_alike(
            name, bytes(found.data)
        )
        return record.content if alike else content


class Recorded:
    """The templates that the history has, by the names of their contents.

    A record is decoded when it is first asked for, and once in a sync, however many instances use
    it. A record whose template is too large to be filled in for all instances counts as missing.
    """

    def __init__(self, world: World) -> None:
        """Sorts the records by age, without decoding them."""
        self._templates = world.templates
        self._lookups: dict[tuple[str, str], Templates | None] = {}
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
        """The newest content with one of these revisions, "" where there is none."""
        wanted = set(revisions)
        names = {name for each in wanted for name in self._of_revision.get(each, ())}
        return next((name for name in self._objects if name in names), "")

    def then(self, name: str, called: str) -> Templates | None:
        """The TApp as it was at a content, with the template as `called` now; None: no record."""
        key = name, called
        if key not in self._lookups:
            record = self._objects.get(name)
            self._lookups[key] = (
                None if record is None else self._templates.recorded(called, bytes(record.data))
            )
        return self._lookups[key]

    def template(self, name: str, instance: int, called: str) -> Template | None:
        """The template of an instance, as a record has it; `name` and `called` as in `then`."""
        lookup = self.then(name, called)
        found = None if lookup is None else lookup.of(instance)
        return found if isinstance(found, Template) else None

    def of_pod(self, pod: Pod, instance: int, called: str, likely: Iterable[str]) -> str:
        """The content that a pod of ours is made of, likely ones first; "" where no record is."""
        revision, written = pod.spec.template_hash or "", pod.spec.written
        known = None if written else self._known.get(revision)
        if known is None:
            named = self._of_revision.get(written or revision, ())
            # Another setting of what is left to others may have given the same template another
            # revision since; only where all instances share it is it worth a look.
            others = () if written else self._objects
            first = (islice(names, _MOST_TRIED) for names in (likely, named, others))
            most = _MOST_FILLED if written else _MOST_TRIED
            tried = islice(dict.fromkeys(chain.from_iterable(first)), most)
            known = next(
                (name for name in tried if self._has(name, instance, called, revision)), ""
            )
            if not written:
                self._known[revision] = known
        return known

    def _has(self, name: str, instance: int, called: str, revision: str) -> bool:
        template = self.template(name, instance, called)
        return template is not None and revision in (template.revision, template.other_revision)
