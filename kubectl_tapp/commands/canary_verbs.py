"""`kubectl tapp promote` and `abort`: the two ends of a canary."""

from typing import TYPE_CHECKING, Annotated

import typer

from kubectl_tapp.commands.complete import templates
from kubectl_tapp.commands.verb_options import Cause, OnTemplate, Verb
from tapp.words.ranges import ranges

if TYPE_CHECKING:
    from kubectl_tapp.edit.canaries import Canary

Base = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="What it is tried instead of; else what it is a copy of, or all others run.",
        show_default=False,
        autocompletion=templates,
    ),
]


def promote(
    verb: Verb, template: OnTemplate = None, base: Base = None, cause: Cause = None
) -> None:
    """Give all instances what the canary runs: its own stay as they are, the others follow."""
    from kubectl_tapp.edit import canaries  # noqa: PLC0415 - it costs start time

    canary = canaries.find(verb.tapp, template, base)
    who = f", which {ranges(canary.ids)} run{'s'[: len(canary.ids) == 1]}"
    ran = who if canary.ids else ", which nobody runs"
    verb.notes.append(
        f"Canary: template {canary.base!r} gets the content of {canary.name!r}{ran}. "
        + _afterwards(canary)
    )
    edited = canaries.promoted(verb.tapp, canary)
    verb.do(verb.caused(edited, cause, f"promote {verb.name} --template {canary.name}"))


def abort(verb: Verb, template: OnTemplate = None, base: Base = None, cause: Cause = None) -> None:
    """Take the canary's instances back to the template that the others run."""
    from kubectl_tapp.edit import canaries  # noqa: PLC0415 - it costs start time

    canary = canaries.find(verb.tapp, template, base)
    who = ranges(canary.ids) or "nobody"
    goes = "go" if len(canary.ids) > 1 else "goes"
    verb.notes.append(
        f"Canary: {who} {goes} back from {canary.name!r} to {canary.base!r}. {_afterwards(canary)}"
    )
    edited = canaries.aborted(verb.tapp, canary)
    verb.do(verb.caused(edited, cause, f"abort {verb.name} --template {canary.name}"))


def _afterwards(canary: "Canary") -> str:
    if canary.copy:
        return f"{canary.name!r} was made for it and leaves the pool."
    return f"{canary.name!r} stays in the pool, and nobody runs it then."
