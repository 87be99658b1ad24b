"""`kubectl tapp history`: the revisions of a TApp's templates, with their changes and causes."""

from typing import TYPE_CHECKING, Annotated

from kubectl_tapp.base.arguments import name_suggestion
from kubectl_tapp.base.errors import CommandError
from kubectl_tapp.base.printed import formatted
from kubectl_tapp.cluster.session import Session
from kubectl_tapp.commands.options import Format, Name, Output, option
from kubectl_tapp.commands.verb_options import template_option

if TYPE_CHECKING:
    from kubectl_tapp.base.observed import Observed
    from kubectl_tapp.edit.revisions import HistoryEntry

ToShow = Annotated[
    str | None,
    option(
        "--revision",
        metavar="REVISION",
        help="Show this revision in full: its number, or at least 6 characters of its hash.",
    ),
]

_Template = Annotated[str | None, template_option("Show only the revisions of this template.")]


def history(
    session: Session,
    name: Name,
    template: _Template = None,
    revision: ToShow = None,
    output: Output = None,
) -> None:
    """Show the revisions of a TApp's templates.

    Each revision has its time, its cause, and what it changed. A * marks the current revisions.
    """
    from kubectl_tapp.edit import revisions  # noqa: PLC0415 - it costs start time
    from kubectl_tapp.edit.edits import spec_of  # noqa: PLC0415

    observed = session.cluster.observe(name)
    whole = revisions.history_of(observed)
    found = [each for each in whole if template in (None, each.template)]
    if template is not None and whole and not found:
        hint = name_suggestion(template, {each.template for each in whole})
        raise CommandError(f"the history has no template {template!r}{hint}")
    if revision is not None:
        entry = revisions.rollback_target(found, spec_of(observed.tapp), revision)
        _show(session, entry, output)
    elif output is not None:
        session.say(formatted([each.as_document() for each in found], output))
    elif found:
        _table(session, found)
    else:
        session.say(no_history_message(observed))


def _table(session: Session, found: "list[HistoryEntry]") -> None:
    from rich.text import Text  # noqa: PLC0415 - it costs start time

    from kubectl_tapp.show.columns import plain_table  # noqa: PLC0415

    keeps = any(each.kept for each in found)
    rows: list[list[str | Text]] = []
    for each in found:
        mark = Text("*", style="green") if each.in_effect else " "
        cells = [mark, str(each.number), each.template, each.short_hash, each.created]
        cells += [each.kept] if keeps else []
        rows.append([*cells, each.summary, each.cause])
    kept = ["KEPT"] if keeps else []
    heads = dict.fromkeys(("", "REVISION", "TEMPLATE", "HASH", "WHEN", *kept), False)
    session.console.print(plain_table(heads | {"WHAT CHANGED": True, "CAUSE": True}, rows))


def _show(session: Session, entry: "HistoryEntry", output: Format | None) -> None:
    if output is not None:
        session.say(formatted(entry.as_document(), output))
        return
    now = ", which is there now" if entry.in_effect else ""
    session.say(f"Revision {entry.number} of template {entry.template}{now}")
    for title, text in (("hash", entry.hash), ("when", entry.created), ("cause", entry.cause)):
        session.say(f"{title + ':':<8}{text or '-'}")
    session.say(f"changed {entry.summary}" if entry.changes is not None else entry.summary)
    session.say()
    session.say(formatted(entry.body, Format.YAML))


def no_history_message(observed: "Observed") -> str:
    """Returns a sentence that says why a TApp has no revisions in its history.

    The caller has checked that the history is empty.
    """
    if (observed.tapp.get("spec") or {}).get("revisionHistoryLimit") == 0:
        return f"{observed.name} keeps no history: its spec.revisionHistoryLimit is 0"
    declared = (observed.controller or {}).get("spec", {}).get("childResources")
    if declared is not None and all(
        each.get("resource") != "controllerrevisions" for each in declared
    ):
        return (
            f"{observed.name} has no history: the registered CompositeController does not declare "
            "ControllerRevisions; apply the one of this release"
        )
    return f"{observed.name} has no history yet"
