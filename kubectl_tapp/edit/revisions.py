"""Reads the history of a TApp's templates from its ControllerRevisions.

`history_of` returns the history, and `rollback_target` chooses the revision that a rollback
restores.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace

import msgspec

from kubectl_tapp.base.arguments import template_names, template_users
from kubectl_tapp.base.errors import CommandError, UsageError
from kubectl_tapp.base.observed import Document, Observed
from kubectl_tapp.base.shapes import template_shape_error
from kubectl_tapp.edit.edits import CHANGE_CAUSE, spec_of
from tapp.declared.differences import Difference, Effect, differences
from tapp.declared.lookup import resolve_templates
from tapp.declared.model import TAppSpec
from tapp.declared.revision import PREFIX
from tapp.declared.templates import Template, resolve
from tapp.storage.records import content_name
from tapp.words.digits import is_whole, whole
from tapp.words.groups import grouped
from tapp.words.ranges import id_list
from tapp.words.vocabulary import TEMPLATE, TEMPLATE_HASH, VALUES

REVISIONS = "controllerrevisions.apps"


@dataclass(frozen=True)
class HistoryEntry:
    """One revision in the history of a TApp: a template with its values, as the service rolled it
    out.
    """

    number: int  # the revision number
    template: str  # the name of the template
    hash: str  # the template hash, which is the label of the pods
    created: str  # when the revision was created, as an RFC 3339 timestamp
    cause: str  # the cause that the author gave; "" if none was given
    body: Document  # the content of the template
    current: bool  # True if the template has this content now
    values: (
        Document  # the fields `values` and `defaultValues` that the template's placeholders read
    )
    same_values: bool  # True if the spec has the same values now
    # the numbers of the instances that a partition keeps at this revision, such as `0-3,7`; "" if
    # there are none
    kept: str
    # the values that differ from the previous revision of the template, as a phrase
    values_changed: str
    # the differences from the previous revision of the template; None for the first revision
    changes: list[Difference] | None
    # a phrase about deleted revisions between the previous revision and this one; "" if none was
    # deleted
    missing: str = ""
    # True if the spec has this template and these values now, and no newer revision has both, too
    in_effect: bool = False

    @property
    def summary(self) -> str:
        """The changes since the previous revision in a few words: images first, then the other
        fields.
        """
        if self.changes is None and self.missing:
            return f"{_images(self.body)} ({self.missing})"
        if self.changes is None:
            return "first revision"
        images = [each for each in self.changes if each.effect is Effect.IN_PLACE]
        texts = [f"{_container(each.path)}: {each.before} → {each.after}" for each in images]
        others = [each.path for each in self.changes if each.effect is not Effect.IN_PLACE]
        if others:
            more = f" and {len(others) - 1} more" if len(others) > 1 else ""
            texts.append(f"{others[0]}{more}")
        texts += [self.values_changed] if self.values_changed else []
        text = ", ".join(texts) or "nothing"
        return f"{text} ({self.missing})" if self.missing else text

    @property
    def short_hash(self) -> str:
        """The beginning of the hash, which identifies a revision in tables and which `--to`
        accepts.
        """
        return self.hash[:SHORT_HASH]

    def as_document(self) -> Document:
        """Returns the entry as a JSON object for `--output`."""
        return {
            "revision": self.number,
            "templateName": self.template,
            "hash": self.hash,
            "created": self.created,
            "changeCause": self.cause,
            "current": self.in_effect,
            "changes": msgspec.to_builtins(self.changes or []),
            "template": self.body,
            **({"kept": self.kept} if self.kept else {}),
            **self.values,
        }


# Least number of characters of a hash that a user may type; fewer would often be ambiguous
_MIN_HASH = 6
SHORT_HASH = len(PREFIX) + 8  # Number of characters of a hash that tables show


def _container(path: str) -> str:
    """Returns the container name in a path such as `spec.containers[app].image`.

    A path without a container name is returned unchanged.
    """
    _, _, rest = path.partition("[")
    return rest.partition("]")[0] or path


def _images(body: Document) -> str:
    """Returns the images of the containers in a template as text, such as `app: nginx:2`."""
    spec = body.get("spec") or {}
    texts = [f"{each.get('name')}: {each.get('image')}" for each in spec.get("containers") or []]
    return ", ".join(texts)


@dataclass(frozen=True)
class _Previous:
    """The revision before another revision of the same template, with which the history compares
    that revision.
    """

    # the ControllerRevision of the previous revision; None if there is none or it was deleted
    record: Document | None
    missing: str = ""  # a phrase about deleted revisions between both; "" if none was deleted


def _previous_revisions(records: list[tuple[int, Document]]) -> dict[int, _Previous]:
    """Returns revision number -> the previous revision of the same template.

    `records` are pairs of revision number and ControllerRevision, sorted by number. A rollback
    gives an existing ControllerRevision a new number, so that its old number is missing from the
    records. If exactly one number is missing and exactly one later rollback has renumbered a
    ControllerRevision, that ControllerRevision had the missing number.
    """
    numbers, found = {number for number, _ in records}, dict[int, _Previous]()
    by_template = grouped((each["metadata"]["annotations"][TEMPLATE], x) for x in records
                          for each in [x[1]])  # fmt: skip
    for own in by_template.values():
        moved = list[Document]()
        for index in range(len(own) - 1, -1, -1):
            number, record = own[index]
            low, before = own[index - 1] if index else (0, None)
            between = sum(low < each < number for each in numbers)
            missing = number - low - 1 - between
            if missing == 1 and len(moved) == 1:
                found[number] = _Previous(moved.pop())
            elif missing:
                first = next(each for each in range(number - 1, low, -1) if each not in numbers)
                text = f"revision {first} is" if missing == 1 else f"{missing} revisions are"
                found[number] = _Previous(before, f"{text} not kept")
            else:
                found[number] = _Previous(before)
            if _is_from_rollback(record):
                moved.append(record)
    return found


_ROLLBACK = "kubectl tapp rollback "


def _is_from_rollback(record: Document) -> bool:
    """Returns True if a rollback has given a ControllerRevision its number, as its cause says.

    The cause must name the hash of this ControllerRevision. A cause of another rollback may also
    stand there: an edit without the plugin leaves the old cause on the TApp, and the service copies
    it to the new record.
    """
    metadata = record["metadata"]
    cause = metadata["annotations"].get(CHANGE_CAUSE) or ""
    restored = f"--to {metadata['labels'][TEMPLATE_HASH][:SHORT_HASH]}"
    return cause.startswith(_ROLLBACK) and restored in cause


def history_of(observed: Observed) -> list[HistoryEntry]:
    """Returns the history of the TApp's templates, oldest revision first.

    Raises CommandError if the ControllerRevisions could not be read, or if the spec is invalid.
    """
    observed.require_readable(REVISIONS)
    spec = spec_of(observed.tapp)
    templates = resolve_templates(spec)
    at: Document = (observed.tapp.get("status") or {}).get("kept") or {}
    found: list[HistoryEntry] = []
    records = sorted(
        (
            (each["revision"], each)
            for each in written_by_service(observed.revisions)
            if type(each.get("revision")) is int and not each["metadata"].get("deletionTimestamp")
        ),
        key=lambda it: (it[0], it[1]["metadata"]["name"]),
    )
    befores = _previous_revisions(records)
    for number, kept in records:
        metadata = kept["metadata"]
        notes = metadata["annotations"]
        name, body = notes[TEMPLATE], kept["data"]["template"]
        digest, before = metadata["labels"][TEMPLATE_HASH], befores[number].record
        wanted = templates.named(name)
        values = _values_in(kept)
        entry = HistoryEntry(
            number=number,
            template=name,
            hash=digest,
            created=metadata.get("creationTimestamp") or "",
            cause=notes.get(CHANGE_CAUSE) or "",
            body=body,
            current=isinstance(wanted, Template) and _is_current(wanted, digest, body),
            values=values,
            kept=at.get(content_name(digest, notes.get(VALUES) or "")) or "",
            same_values=(notes.get(VALUES) or "") == templates.values_of(name).digest
            or (
                isinstance(wanted, Template)
                and digest == wanted.revision
                and templates.filled_alike(name, msgspec.json.encode(kept["data"]))
            ),
            values_changed="" if before is None else _values_changed(_values_in(before), values),
            changes=None
            if before is None
            else differences(
                before["data"]["template"], body, ignores_resources=spec.ignores_resources
            ),
            missing=befores[number].missing,
        )
        found.append(entry)
    # Two revisions may have the same values for the current instances. Either the older one also
    # has values of other instances, or a rollback has just made the newer one. Only the newer one
    # is in effect.
    newest = {each.template: each.number for each in found if each.current and each.same_values}
    return [replace(each, in_effect=newest.get(each.template) == each.number) for each in found]


_VALUES = ("values", "defaultValues")


def _values_in(record: Document) -> Document:
    return {part: record["data"][part] for part in _VALUES if part in record["data"]}


def _values_changed(before: Document, after: Document) -> str:
    """Returns a phrase about the values that differ, with their instances, such as `value a of 1,
    4`.

    `before` and `after` have the fields `values` and `defaultValues`. Returns "" if nothing
    differs.
    """
    old, new = ({"": each.get("defaultValues") or {}} for each in (before, after))
    old, new = {**old, **(before.get("values") or {})}, {**new, **(after.get("values") or {})}
    whose: dict[str, list[str]] = {}
    for id in dict.fromkeys([*old, *new]):
        one, other = old.get(id) or {}, new.get(id) or {}
        for key in dict.fromkeys([*one, *other]):
            if one.get(key) != other.get(key):
                whose.setdefault(key, []).append(id)
    parts = []
    for key, ids in sorted(whose.items()):
        texts = ["by default"] if "" in ids else []
        numbers = sorted(found for id in ids if (found := whole(id)) is not None)
        texts += [f"of {id_list(numbers)}"] if numbers else []
        parts.append(f"value {key} {' and '.join(texts)}")
    return "; ".join(parts)


def _is_current(wanted: Template, digest: str, body: Document) -> bool:
    """Returns True if a recorded template has the same content as the current template `wanted`.

    `digest` is the hash of the recorded template, and `body` its content. The hashes may differ
    although the content is the same, if `ignores_resources` has changed since. So the function
    computes the hash of the recorded content with the current setting, and compares that.
    """
    if digest == wanted.revision:
        return True
    kept = resolve("", body, ignores_resources=wanted.ignores_resources)
    return isinstance(kept, Template) and kept.revision == wanted.revision


def written_by_service(revisions: Iterable[Document]) -> Iterable[Document]:
    """Yields the well-formed ControllerRevisions that this service has written, and skips all
    others.
    """
    for each in revisions:
        metadata, data = each["metadata"], each.get("data")
        named = TEMPLATE in (metadata.get("annotations") or {})
        hashed = TEMPLATE_HASH in (metadata.get("labels") or {})
        body = data.get("template") if isinstance(data, dict) else None
        whole = isinstance(body, dict) and not template_shape_error("", body)
        if named and hashed and whole:
            yield each


def rollback_target(  # noqa: PLR0913 - all of them describe the revision to choose
    history: list[HistoryEntry],
    spec: TAppSpec,
    to: str | None = None,
    template: str | None = None,
    *,
    with_values: bool = False,
    ends: str = "the verb abort or promote",
) -> HistoryEntry:
    """Returns the revision that a rollback restores.

    Raises CommandError if no revision fits, or several do, and UsageError if `to` is too short.

    Args:
        history: the history of the TApp, oldest revision first.
        spec: the spec of the TApp.
        to: a revision number, or at least six characters of the beginning of a hash. None means the
            previous revision of `template`.
        template: the template to roll back. None means the template of the revision `to`, or,
            without `to`, the template that changed last.
        with_values: True to accept also a revision that differs from the current template only in
            values.
        ends: the commands that end a canary, for the error message.
    """
    known = [each for each in history if template in (None, each.template)]
    if template is not None and not known:
        raise CommandError(f"the history has no template {template!r}")
    if to is not None:
        return _find_revision(known, to, "" if template is None else f" of template {template!r}")
    name = template or _changed_last(known, spec)
    own = [each for each in known if each.template == name]
    earlier = [x for x in own if not x.current or (with_values and not x.same_values)]
    if not earlier:
        message = f"there is no earlier revision of template {name!r} to roll back to"
        with_other_values = [each for each in own if not each.same_values]
        if with_other_values:
            only_values = f"revision {with_other_values[-1].number} differs only in values"
            raise CommandError(f"{message}; {only_values}, which --with-values restores")
        hint = (
            f"; a canary ends by {ends}, and --template {spec.default_name} goes back with the "
            "others"
        )
        raise CommandError(message + (hint if name != spec.default_name else ""))
    return earlier[-1]


def _find_revision(known: list[HistoryEntry], to: str, of: str) -> HistoryEntry:
    """Returns the revision that the text `to` names: by its number, or by the beginning of its
    hash.

    A text of digits is always a revision number, because the number of a deleted revision could
    equal the beginning of another revision's hash. `of` is a phrase for the error message that
    names the searched template; may be empty.
    """
    if is_whole(to):
        fitting = [each for each in known if to == str(each.number)]
    else:
        digest = to.removeprefix(PREFIX)
        if len(digest) < _MIN_HASH:
            raise UsageError(
                f"{to!r} is not a revision: give its number, or {_MIN_HASH} or more characters of "
                f"its hash, such as {PREFIX}4ff13b"
            )
        fitting = [each for each in known if each.hash.removeprefix(PREFIX).startswith(digest)]
    if len(fitting) == 1:
        return fitting[0]
    if not fitting:
        there = ", ".join(f"{each.number} ({each.short_hash})" for each in known)
        hint = f"the history has {there}" if there else "the history is empty"
        raise CommandError(f"there is no revision {to}{of}: {hint}")
    those = ", ".join(f"{each.number} ({each.template}, {each.hash})" for each in fitting)
    raise CommandError(f"{to} fits several revisions, {those}: give the number")


def _changed_last(known: list[HistoryEntry], spec: TAppSpec) -> str:
    """Returns the name of the template that changed last, among the templates that instances run.

    `known` are the revisions to look at, oldest first. A template whose current content has no
    revision yet counts as newer than all others. Templates that no instance runs do not count, such
    as a canary that was ended by hand.
    """
    used = template_users(spec).keys() & set(template_names(spec))
    recorded = {each.template for each in known if each.current}
    unrecorded = sorted({each.template for each in known} & used - recorded)
    if unrecorded:
        return unrecorded[0]
    newest = [each for each in known if each.current and each.template in used]
    return newest[-1].template if newest else spec.default_name
