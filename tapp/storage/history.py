"""The history of a TApp: decides which records are created, kept and deleted.

Entry point: `plan_history`. A record (ControllerRevision) is never changed. It has a template with
one *content* (`records.py`: the hash of the template and the digest of its values), and the claim
templates and `spec.serviceName` of its time.

A template that instances run gets a new record unless its newest record has

- the current content of the template, and
- the claim templates and `spec.serviceName` of the spec. A record without claim templates and
  Service name passes this check. So does a record at whose content a partition keeps instances.

After a rollback an older record has the current content. It is created again with the highest
number, and the older record is deleted when a later sync observes the new one. So the history
includes the running revision at any time.

These records are kept:

- for each template of the spec, the record of its current content and the newest older record;
- the records of contents at which a partition keeps instances;
- the newest `revisionHistoryLimit` of the other records.

If several records have the same content of a template, only the newest one counts; the others are
deleted. Labels and annotations identify a record, never its name (docs/history.md, "History").
"""

from collections.abc import Container, Iterable, Iterator
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any

from tapp.declared.claims_and_service import NOT_RECORDED, ClaimsAndService, parts_of
from tapp.declared.model import ParentMeta
from tapp.declared.templates import Template
from tapp.declared.values import NO_VALUES, KeptValues
from tapp.kube.limits import length_in_go
from tapp.kube.objects import RevisionObject
from tapp.storage.records import Record, Records
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
    world: World,
    records: Records,
    running: Iterable[Template],
    in_use: Container[str],
    most_bytes: int,
) -> HistoryPlan:
    """Decides which ControllerRevisions of a TApp are created, kept and deleted.

    The caller has checked that the TApp is not being deleted.

    Args:
        world: the TApp with its children.
        records: the records of the TApp.
        running: the templates of the instances below `replicas`, without templates that cannot be
            resolved.
        in_use: the contents of records at which a partition keeps instances.
        most_bytes: approximate limit of the bytes to create in this sync; at least one
            ControllerRevision is created.
    """
    if not world.declared.revisions:
        return unchanged_history(world)
    limit = world.tapp.spec.revision_history_limit
    used = {item.name for item in running if not item.obstacle} if limit else set()
    kept = _kept(world, records, in_use)
    decided = {record.name for record in records.all if not record.is_being_deleted}
    # Leaving out an object deletes it. So the response has all ControllerRevisions that cannot be
    # read, and those that are being deleted until they are gone.
    others = sorted(world.revisions.keys() - decided)
    plan = HistoryPlan([world.revisions[name] for name in others])
    for name in sorted(decided):
        (plan.keep if name in kept else plan.delete).append(world.revisions[name])
    for new in _new_records(world, records, used, in_use):
        if plan.create and plan.bytes >= most_bytes:
            plan.waits = True
            break
        plan.bytes += new.size
        plan.create.append(new)
    return plan


def _kept(world: World, records: Records, in_use: Container[str]) -> set[str]:
    """Returns the names of the records that stay; the module's docstring lists them.

    Records that are being deleted are left out. `in_use` are the contents at which a partition
    keeps instances.
    """
    limit, spec = world.tapp.spec.revision_history_limit, world.tapp.spec
    # With `revisionHistoryLimit: 0` no record is created, and existing records are deleted.
    if not limit:
        return set()
    kept, others = set[str](), list[Record]()
    for name, of_template in records.by_template.items():
        current = records.current.get(name)
        superseded = [record for record in of_template.values() if record.content != current]
        if current in of_template:
            kept.add(of_template[current].name)
        # A rollback needs the newest older record, so the limit does not count it.
        if superseded and spec.find_template(name) is not None:
            kept.add(superseded.pop(0).name)
        for record in superseded:
            if record.content in in_use:
                kept.add(record.name)
            else:
                others.append(record)
    others.sort(reverse=True)
    return kept.union([record.name for record in others[:limit]])


def _new_records(
    world: World, records: Records, used: Iterable[str], in_use: Container[str]
) -> Iterator[NewRecord]:
    """Yields the records to create, one for each used template that needs one.

    Args:
        world: the TApp with its children.
        records: the records of the TApp.
        used: names of the templates that instances run.
        in_use: the contents at which a partition keeps instances.
    """
    spec = world.tapp.spec
    spec_parts = parts_of(spec)
    number = max((record.number for record in records.all), default=0) + 1
    being_deleted = {
        (record.template, record.content) for record in records.all if record.is_being_deleted
    }
    for name in sorted(used):
        template, content = world.templates.named(name), records.current.get(name)
        body = spec.find_template(name)
        if not isinstance(template, Template) or content is None or body is None:
            continue
        of_template = records.by_template.get(name, {})
        record = of_template.get(content)
        parts = _parts_to_record(record, spec_parts, in_use)
        is_outdated = record is not None and record.other_parts.differs_from(parts)
        # A stale cache may show two records with the same number. Neither is the newest one then.
        is_newest = record is not None and all(
            each.number < record.number for each in of_template.values() if each is not record
        )
        # A record that is being deleted is created again when it is gone.
        if (is_newest or (name, content) in being_deleted) and not is_outdated:
            continue
        values = world.templates.values_of(name)
        own = record_name(world.tapp.metadata, name, template.revision, number, values.digest)
        # The name is taken by a record that is not readable, or the template is too large.
        if own in world.revisions or (length := length_in_go(body)) > LONGEST:
            continue
        whole = length_in_go({"": body, **parts.as_kept})
        # The record then has the template and its values, but not the claim templates.
        if whole > LONGEST:
            whole, parts = length, NOT_RECORDED
        size = whole + values.size
        yield NewRecord(own, number, name, template.revision, body, values, parts, size)
        number += 1


def _parts_to_record(
    record: Record | None, spec_parts: ClaimsAndService, in_use: Container[str]
) -> ClaimsAndService:
    """Returns the claim templates and Service name that the new record of a content should have.

    Args:
        record: the newest record of the content; None if there is none.
        spec_parts: the claim templates and Service name of the spec; `NOT_RECORDED` if they are
            nested too deeply to be stored.
        in_use: the contents of records at which a partition keeps instances.
    """
    # The next pod of an instance that a partition keeps at this content has to be like the pod
    # before. So the recorded claim templates stay, also in a new record after a rollback.
    if record is not None and (spec_parts == NOT_RECORDED or record.content in in_use):
        return record.other_parts
    return spec_parts
