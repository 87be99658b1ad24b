"""`kubectl tapp rollback`: a template as it was before comes back."""

from typing import Annotated

import typer

from kubectl_tapp.commands.verb_options import Cause, OnTemplate, Verb


def rollback(
    verb: Verb,
    to: Annotated[
        str | None,
        typer.Option(
            "--to",
            metavar="REVISION",
            help="Number, or 6 characters of its hash; else the one before.",
            show_default=False,
        ),
    ] = None,
    template: OnTemplate = None,
    with_values: Annotated[
        bool, typer.Option("--with-values", help="Its placeholders' values go back, too.")
    ] = False,
    cause: Cause = None,
) -> None:
    """Take a template back to what it was: the one that changed last, or --template's."""
    from kubectl_tapp.edit import revisions  # noqa: PLC0415 - it costs start time

    history = revisions.entries(verb.seen)
    entry = revisions.chosen(history, verb.spec, to, template, with_values=with_values)
    # The record gets another number by this, so the cause names what stays: its hash.
    twins = {each.template for each in history if each.hash == entry.hash}
    which = f" --template {entry.template}" if len(twins) > 1 else ""
    command = f"rollback {verb.name}{which} --to {entry.short_hash}"
    verb.notes.append(
        f"Template {entry.template} goes back to revision {entry.number} ({entry.hash}, "
        f"{entry.created})."
    )
    edited = verb.tapp
    if not entry.current:
        edited = verb.edits.with_template(edited, entry.template, entry.body)
    if with_values:
        edited = verb.edits.with_kept_values(edited, entry.body, entry.values)
        command += " --with-values"
    if edited == verb.tapp:
        verb.do(verb.tapp)
        return
    verb.do(verb.caused(edited, cause, command))
