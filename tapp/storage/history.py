"""The history: which templates that were rolled out are kept, as ControllerRevisions.

A record is one revision of one template of a TApp. Records are never changed: what has to get
another number is made again, and the older record goes when the newer one is seen. Which one is
whose tell its label and its annotation, never its name (docs/design.md, "History").
"""

from collections.abc import Container, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any

from tapp.declared.beside import UNSAID, Beside, beside_of, recorded_beside
from tapp.declared.model import ParentMeta
from tapp.declared.templates import Template
from tapp.declared.values import NO_VALUES, KeptValues
from tapp.kube.limits import length_in_go
from tapp.kube.objects import RevisionObject
from tapp.storage.records import Content, Contents, HistoryEntry, What, content_name, read_entry
from tapp.world import World

LONGEST = 128 << 10
"""Bytes of a template's JSON above which it is not recorded: Metacontroller writes what it creates
into an annotation as well, and all annotations of an object may take 256 KiB."""

_NAME = 200  # Characters of the TApp's name in a record's: 253 is the limit of both
_DIGITS = 10  # Hexadecimal digits of the hash in a record's name


@dataclass(frozen=True)
class NewRecord:
    """A record to make."""

    name: str  # name of the ControllerRevision
    number: int  # its place in the TApp's history
    template: str  # name of the template
    revision: str  # the template's revision, as pods have it in their label
    body: dict[str, Any]  # the template as its author wrote it
    values: KeptValues = NO_VALUES  # those that it reads, of the instances that run it
    beside: Beside = UNSAID  # what else pods are made of
    size: int = 0  # bytes of all this, about


@dataclass
class HistoryPlan:
    """Fate of a TApp's ControllerRevisions."""

    keep: list[RevisionObject] = field(default_factory=list)  # returned, so that they stay
    delete: list[RevisionObject] = field(default_factory=list)  # left out, so that they go
    create: list[NewRecord] = field(default_factory=list)  # those that are made
    bytes: int = 0  # of these, about
    waits: bool = False  # others are only made with a later answer, because this one is full


def record_name(
    meta: ParentMeta, template: str, revision: str, number: int, values: str = ""
) -> str:
    """The name of the ControllerRevision of a template's revision, with this number.

    The TApp's uid is part of the hash: what a TApp that was deleted with `--cascade=orphan` has
    left behind is never in the way of the next one of the same name.
    """
    text = "\n".join((meta.uid, revision, str(number), template, *filter(None, (values,))))
    digest = sha256(text.encode(errors="replace")).hexdigest()[:_DIGITS]
    return f"{meta.name[:_NAME].rstrip('.-')}-{digest}"


def unchanged_history(world: World) -> HistoryPlan:
    """Everything stays, and nothing is made."""
    return HistoryPlan([world.revisions[name] for name in sorted(world.revisions)])


def plan_history(
    world: World, running: Iterable[Template], in_use: Container[str], most_bytes: int
) -> HistoryPlan:
    """Sorts the ControllerRevisions of a living TApp.

    `running` are the templates below `replicas` that resolve, `in_use` the contents that a
    partition keeps instances at. About so many bytes may be written anew with one answer, and one
    revision at least.
    """
    observed = world.revisions
    if not world.declared.revisions:
        return unchanged_history(world)
    plan = HistoryPlan()
    records, going, highest = list[HistoryEntry](), set[What](), 0
    for name in sorted(observed):
        record = read_entry(observed[name])
        if record is not None:
            highest = max(highest, record.number)
        if record is None:
            plan.keep.append(observed[name])  # a doubt is no deletion
        elif observed[name].metadata.deletion_timestamp is not None:
            plan.keep.append(observed[name])  # what goes is waited for
            going.add(record.what)
        else:
            records.append(record)
    limit = world.tapp.spec.revision_history_limit
    used = {item.name for item in running if not item.obstacle} if limit else set()
    lines = _newest_first(records)
    contents = Contents(world)
    kept = _kept(lines, world, contents, in_use)
    for record in records:
        (plan.keep if record.name in kept else plan.delete).append(observed[record.name])
    # Two have the same number where a cache lags: then neither is the newest.
    newest = {one.what for one, *more in lines.values() if not more or more[0].number < one.number}
    wanted = _Wanted(world, contents, lines, in_use, beside_of(world.tapp.spec))
    created = _missing(wanted, used, newest | going, highest)
    for new in created:
        if plan.create and plan.bytes >= most_bytes:
            plan.waits = True
            break
        plan.bytes += new.size
        plan.create.append(new)
    return plan


def _kept(
    lines: Mapping[str, list[HistoryEntry]],
    world: World,
    contents: Contents,
    in_use: Container[str],
) -> set[str]:
    """Names of those that stay: what is in use, two for each template of the spec, `limit` more."""
    limit, spec = world.tapp.spec.revision_history_limit, world.tapp.spec
    if not limit:
        return set()
    kept, others = set[str](), list[HistoryEntry]()
    for name, ones in lines.items():
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
    """Template -> its records; of those of one content the newest alone."""
    found: dict[str, dict[Content, HistoryEntry]] = {}
    for record in sorted(records, reverse=True):
        found.setdefault(record.template, {}).setdefault(record.content, record)
    return {name: list(ones.values()) for name, ones in found.items()}


@dataclass(frozen=True)
class _Wanted:
    """Knows what a record is to say beside a template."""

    world: World
    contents: Contents
    lines: Mapping[str, list[HistoryEntry]]
    in_use: Container[str]
    now: Beside

    def beside(self, what: What) -> tuple[Beside, bool]:
        """The record that a template as it is now is to have, and if it has another one.

        What a partition keeps instances at stays as it is recorded. A record that says nothing is
        left so.
        """
        name, content = what
        record = next((each for each in self.lines.get(name, ()) if each.content == content), None)
        data = b"" if record is None else bytes(self.world.revisions[record.name].data)
        said, now = recorded_beside(data), self.now
        if record is not None and (now == UNSAID or content_name(content) in self.in_use):
            return said, False
        return now, said.differs_from(now)


def _missing(
    wanted: _Wanted, used: Iterable[str], known: set[What], highest: int
) -> Iterator[NewRecord]:
    """The records to make: of what runs and is not the newest of its template, or not as it is now.

    After a rollback there is an older one. It goes when this one is seen, and not before: what
    runs is in the history all the time, whatever comes in between.
    """
    world = wanted.world
    for name in sorted(used):
        content = wanted.contents.of(name)
        if content is None:
            continue
        beside, differs = wanted.beside((name, content))
        if (name, content) in known and not differs:
            continue
        revision, values = content[0], world.templates.values_of(name)
        own = record_name(world.tapp.metadata, name, revision, highest + 1, values.digest)
        body = world.tapp.spec.find_template(name)
        if own in world.revisions or body is None or (length := length_in_go(body)) > LONGEST:
            continue
        highest += 1
        whole = length_in_go({"": body, **beside.as_kept})
        if whole > LONGEST:
            whole, beside = length, UNSAID
        yield NewRecord(own, highest, name, revision, body, values, beside, whole + values.size)
