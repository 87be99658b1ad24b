"""`kubectl tapp rollback`: a template as it was before comes back."""

from typing import Annotated

import typer

from kubectl_tapp.verb_options import Cause, OnTemplate, Verb


def rollback(
    verb: Verb,
    to: Annotated[
        str | None,
        typer.Option(
            "--to",
            metavar="REVISION",
            help="Number or hash; else the one before.",
            show_default=False,
        ),
    ] = None,
    template: OnTemplate = None,
    cause: Cause = None,
) -> None:
    """Take a template back to what it was: the one that changed last, or --template's."""
    from kubectl_tapp import revisions  # noqa: PLC0415 - it costs start time

    history = revisions.entries(verb.seen)
    entry = revisions.chosen(history, verb.spec, to, template)
    words = f"rollback {verb.name} --to {entry.number}"
    verb.notes.append(
        f"Template {entry.template} goes back to revision {entry.number} ({entry.hash}, "
        f"{entry.created})."
    )
    if entry.current:
        verb.do(verb.tapp)
        return
    edited = verb.edits.with_template(verb.tapp, entry.template, entry.body)
    verb.do(verb.caused(edited, cause, words))
