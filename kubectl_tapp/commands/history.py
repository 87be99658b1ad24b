"""`kubectl tapp history`: which templates were rolled out, when, why, and what they changed."""

from typing import TYPE_CHECKING, Annotated

import typer

from kubectl_tapp.base.errors import CommandError, plain
from kubectl_tapp.base.printed import printed
from kubectl_tapp.cluster.session import Session
from kubectl_tapp.commands.options import Format, Name, Output
from kubectl_tapp.commands.verb_options import OnTemplate

if TYPE_CHECKING:
    from kubectl_tapp.base.observed import Observed
    from kubectl_tapp.edit.revisions import Entry

ToShow = Annotated[
    str | None,
    typer.Option("--revision", metavar="REVISION", help="Show this one whole.", show_default=False),
]


def history(
    session: Session,
    name: Name,
    template: OnTemplate = None,
    revision: ToShow = None,
    output: Output = None,
) -> None:
    """The templates that were rolled out: when, why, and what each changed; `*` is there now."""
    from kubectl_tapp.base.arguments import nearest  # noqa: PLC0415
    from kubectl_tapp.edit import revisions  # noqa: PLC0415 - it costs start time
    from kubectl_tapp.edit.edits import spec_of  # noqa: PLC0415

    observed = session.cluster.observe(name)
    whole = revisions.entries(observed)
    found = [each for each in whole if template in (None, each.template)]
    if template is not None and whole and not found:
        hint = nearest(template, {each.template for each in whole})
        raise CommandError(f"the history has no template {template!r}{hint}")
    if revision is not None:
        entry = revisions.chosen(found, spec_of(observed.tapp), revision)
        _show(session, entry, output)
    elif output is not None:
        session.say(printed([each.as_document() for each in found], output))
    elif found:
        _table(session, found)
    else:
        session.say(_nothing(observed))


def _table(session: Session, found: "list[Entry]") -> None:
    from rich.table import Table  # noqa: PLC0415 - it costs start time
    from rich.text import Text  # noqa: PLC0415

    table = Table(box=None, pad_edge=False, header_style="bold")
    for title in ("", "REVISION", "TEMPLATE", "HASH", "WHEN"):
        table.add_column(title, no_wrap=True)
    table.add_column("WHAT CHANGED", overflow="fold")
    table.add_column("CAUSE", overflow="fold")
    for each in found:
        mark = Text("*", style="green") if each.current and each.same_values else Text(" ")
        cells = (str(each.number), each.template, each.short_hash, each.created)
        table.add_row(mark, *(Text(plain(cell)) for cell in (*cells, each.short, each.cause)))
    session.console.print(table)


def _show(session: Session, entry: "Entry", output: Format | None) -> None:
    if output is not None:
        session.say(printed(entry.as_document(), output))
        return
    now = ", which is there now" if entry.current else ""
    session.say(f"Revision {entry.number} of template {entry.template}{now}")
    for title, text in (("hash", entry.hash), ("when", entry.created), ("cause", entry.cause)):
        session.say(f"{title + ':':<8}{text or '-'}")
    session.say(f"changed {entry.short}" if entry.changes is not None else entry.short)
    session.say()
    session.say(printed(entry.body, Format.YAML))


def _nothing(observed: "Observed") -> str:
    """Why there is no history."""
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
