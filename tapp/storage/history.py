"""The history of a TApp: decides which ControllerRevisions are created, kept and deleted.

Entry point: `plan_history`. A record (ControllerRevision) holds one content of one template
(`records.py`) and is never changed. If a content needs a higher number, as after a rollback, a new
record is created. The old record is deleted when a later sync observes the new one. Labels and
annotations identify a record, never its name (docs/history.md, "History").

These records are kept:

- for each template of the spec, the record of its current content and the newest older record;
- the records of contents at which a partition keeps instances;
- the newest `revisionHistoryLimit` of the other records.
"""

from collections.abc import Container, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any

from tapp.declared.claims_and_service import (
    NOT_RECORDED,
    ClaimsAndService,
    parts_of,
    recorded_parts,
)
from tapp.declared.model import ParentMeta
from tapp.declared.templates import Template
from tapp.declared.values import NO_VALUES, KeptValues
from tapp.kube.limits import length_in_go
from tapp.kube.objects import RevisionObject
from tapp.storage.records import (
    Content,
    Contents,
    HistoryEntry,
    NamedContent,
    content_name,
    read_entry,
)
from tapp.world import World

# Most bytes of a recorded template as JSON. Metacontroller writes a copy of the record into one of
# its annotations, and all annotations of an object together may have 256 KiB.
LONGEST = 128 << 10

# Characters of the TApp's name in the name of a record: 253 is the limit for both names.
_NAME = 200
# Hexadecimal digits of the hash in the name of a record.
_DIGITS = 10


@dataclass(frozen=True)
class NewRecord:
    """A ControllerRevision to create, with the template, values and claim templates in it."""

    name: str  # Name of the ControllerRevision.
    number: int  # Its number in the TApp's history.
    template: str  # Name of the template.
    revision: str  # Revision of the template, which pods have in a label.
    body: dict[str, Any]  # The template as its author wrote it.
    # The values that the template reads, of the instances that run it.
    values: KeptValues = NO_VALUES
    other_parts: ClaimsAndService = NOT_RECORDED  # Service name and claim templates.
    size: int = 0  # Approximate size in bytes.


@dataclass
class HistoryPlan:
    """The ControllerRevisions that the response keeps, leaves out (deletes) and creates."""

    keep: list[RevisionObject] = field(default_factory=list)  # Kept: they are in the response.
    # Deleted: they are not in the response.
    delete: list[RevisionObject] = field(default_factory=list)
    create: list[NewRecord] = field(default_factory=list)  # To be created.
    bytes: int = 0  # Approximate size of the records to create.
    # True if further records have to wait for the next sync, because this response is full.
    waits: bool = False


def record_name(
    meta: ParentMeta, template: str, revision: str, number: int, values: str = ""
) -> str:
    """Returns the name of a ControllerRevision.

    The name contains a hash that includes the TApp's uid. So the ControllerRevisions that
    `--cascade=orphan` leaves behind have other names than those of a later TApp with the same name.

    Args:
        meta: the metadata of the TApp.
        template: the name of the template in it.
        revision: the revision of the template.
        number: the number of the ControllerRevision in the history.
        values: the digest of the values in it; empty if the template reads none.
    """
    text = "\n".join((meta.uid, revision, str(number), template, *filter(None, (values,))))
    digest = sha256(text.encode(errors="replace")).hexdigest()[:_DIGITS]
    return f"{meta.name[:_NAME].rstrip('.-')}-{digest}"


def unchanged_history(world: World) -> HistoryPlan:
    """Returns a plan that keeps all ControllerRevisions and creates none."""
    return HistoryPlan([world.revisions[name] for name in sorted(world.revisions)])


def plan_history(
    world: World, running: Iterable[Template], in_use: Container[str], most_bytes: int
) -> HistoryPlan:
    """Decides which ControllerRevisions of a TApp are created, kept and deleted.

    The caller has checked that the TApp is not being deleted.

    Args:
        world: the TApp with its children.
        running: the usable templates of the instances below `replicas`.
        in_use: the revisions at which a partition keeps instances, as `content_name` names them.
        most_bytes: approximate limit of the bytes to create in this sync; at least one
            ControllerRevision is created.
    """
    observed = world.revisions
    if not world.declared.revisions:
        return unchanged_history(world)
    plan = HistoryPlan()
    records, being_deleted, highest = list[HistoryEntry](), set[NamedContent](), 0
    for name in sorted(observed):
        record = read_entry(observed[name])
        if record is not None:
            highest = max(highest, record.number)
        if record is None:
            # Leaving out an object that cannot be read would delete it.
            plan.keep.append(observed[name])
        elif observed[name].metadata.deletion_timestamp is not None:
            # A record that is being deleted stays in the response until it is gone.
            plan.keep.append(observed[name])
            being_deleted.add(record.named_content)
        else:
            records.append(record)
    limit = world.tapp.spec.revision_history_limit
    used = {item.name for item in running if not item.obstacle} if limit else set()
    records_by_template = _newest_first(records)
    contents = Contents(world)
    kept = _kept(records_by_template, world, contents, in_use)
    for record in records:
        (plan.keep if record.name in kept else plan.delete).append(observed[record.name])
    # A stale cache may show two records with the same number. Neither is the newest one then.
    newest = {
        one.named_content
        for one, *more in records_by_template.values()
        if not more or more[0].number < one.number
    }
    wanted = _Wanted(world, contents, records_by_template, in_use, parts_of(world.tapp.spec))
    created = _missing(wanted, used, newest | being_deleted, highest)
    for new in created:
        if plan.create and plan.bytes >= most_bytes:
            plan.waits = True
            break
        plan.bytes += new.size
        plan.create.append(new)
    return plan


def _kept(
    records_by_template: Mapping[str, list[HistoryEntry]],
    world: World,
    contents: Contents,
    in_use: Container[str],
) -> set[str]:
    """Returns the names of the ControllerRevisions that stay; the module's docstring lists them.

    Args:
        records_by_template: template name -> its ControllerRevisions, newest first.
        world: the TApp with its children.
        contents: the current revision and values of each template.
        in_use: the revisions at which a partition keeps instances, as `content_name` names them.
    """
    limit, spec = world.tapp.spec.revision_history_limit, world.tapp.spec
    # With `revisionHistoryLimit: 0` no record is created, and existing records are deleted.
    if not limit:
        return set()
    kept, others = set[str](), list[HistoryEntry]()
    for name, ones in records_by_template.items():
        wanted = contents.of(name)
        live = [record for record in ones if record.content == wanted]
        superseded = [record for record in ones if record.content != wanted]
        if superseded and spec.find_template(name) is not None:
            kept.add(superseded.pop(0).name)
        kept.update(record.name for record in live)
        for record in superseded:
            if content_name(record.content) in in_use:
                kept.add(record.name)
            else:
                others.append(record)
    others.sort(reverse=True)
    return kept.union([record.name for record in others[:limit]])


def _newest_first(records: list[HistoryEntry]) -> dict[str, list[HistoryEntry]]:
    """Returns template name -> ControllerRevisions of the template, newest first.

    If several of them have the same revision and values, only the newest is included.
    """
    found: dict[str, dict[Content, HistoryEntry]] = {}
    for record in sorted(records, reverse=True):
        found.setdefault(record.template, {}).setdefault(record.content, record)
    return {name: list(ones.values()) for name, ones in found.items()}


@dataclass(frozen=True)
class _Wanted:
    """Finds the Service name and the claim templates that a ControllerRevision should have.

    `now` are those of the current spec. The other fields are those of `_kept`.
    """

    world: World
    contents: Contents
    records_by_template: Mapping[str, list[HistoryEntry]]
    in_use: Container[str]
    now: ClaimsAndService

    def other_parts(self, what: NamedContent) -> tuple[ClaimsAndService, bool]:
        """Returns the Service name and claim templates that a ControllerRevision should have.

        The second value is True if the existing ControllerRevision has other ones, so that a new
        one is needed. The existing one stays as it is in two cases: a partition keeps instances at
        its revision, or the current claim templates are nested too deeply to be stored. `what` is
        the name of a template with its revision and the digest of its values.
        """
        name, content = what
        record = next(
            (each for each in self.records_by_template.get(name, ()) if each.content == content),
            None,
        )
        data = b"" if record is None else bytes(self.world.revisions[record.name].data)
        recorded, now = recorded_parts(data), self.now
        if record is not None and (now == NOT_RECORDED or content_name(content) in self.in_use):
            return recorded, False
        return now, recorded.differs_from(now)


def _missing(
    wanted: _Wanted, used: Iterable[str], known: set[NamedContent], highest: int
) -> Iterator[NewRecord]:
    """Yields the ControllerRevisions to create, one for each used template that needs one.

    A template needs none if its newest ControllerRevision has the current template, values, Service
    name and claim templates. After a rollback, an older ControllerRevision has them. It is deleted
    only when a later sync observes the new one, so that the history includes the running revision
    at any time.

    Args:
        wanted: the Service name and claim templates that each ControllerRevision should have.
        used: names of the templates that instances run.
        known: name, revision and values of each template's newest ControllerRevision, and of those
            that are being deleted.
        highest: the highest number of a ControllerRevision in the history.
    """
    world = wanted.world
    for name in sorted(used):
        content = wanted.contents.of(name)
        if content is None:
            continue
        other_parts, differs = wanted.other_parts((name, content))
        if (name, content) in known and not differs:
            continue
        revision, values = content[0], world.templates.values_of(name)
        own = record_name(world.tapp.metadata, name, revision, highest + 1, values.digest)
        body = world.tapp.spec.find_template(name)
        # The name is taken by a record that is not readable, or the template is too large.
        if own in world.revisions or body is None or (length := length_in_go(body)) > LONGEST:
            continue
        highest += 1
        whole = length_in_go({"": body, **other_parts.as_kept})
        # The record then has the template and its values, but not the claim templates.
        if whole > LONGEST:
            whole, other_parts = length, NOT_RECORDED
        yield NewRecord(
            own, highest, name, revision, body, values, other_parts, whole + values.size
        )
