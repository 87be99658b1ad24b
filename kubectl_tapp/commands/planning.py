"""Carries out `kubectl tapp plan`: determines the edited TApp, forecasts the rollout and prints it.

This module is separate from `plan.py`, because its imports take time and `--help` does not need
them.
"""

import sys
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from pathlib import Path

from rich.console import Console

from kubectl_tapp.base.errors import CommandError, Exit
from kubectl_tapp.base.printed import formatted
from kubectl_tapp.cluster.session import Session
from kubectl_tapp.commands.edited import edit_of
from kubectl_tapp.commands.plan_options import PlanOptions
from kubectl_tapp.forecast import assumed, schema
from kubectl_tapp.forecast.fail_if import read_condition
from kubectl_tapp.forecast.forecast import Forecast
from kubectl_tapp.forecast.foresee import forecast
from kubectl_tapp.forecast.taken import with_existing_children
from kubectl_tapp.show.page import page
from kubectl_tapp.show.plan import as_document, print_plan


def plan(session: Session, options: PlanOptions) -> Exit:
    """Prints the forecast of an edit, and returns the exit code of the command.

    The exit code is FAILED if the API server or the service would refuse the edit. It is CONDITION
    if a condition of `--fail-if` holds, and otherwise DONE.
    """
    conditions = [read_condition(text) for text in options.fail_if or []]
    found = _forecast(session, options)
    # The HTML page is written first, because the command ends when the reader of its output closes
    # the pipe.
    if options.html is not None:
        _write_page(found, options.html)
    if options.output is None:
        print_plan(session.console, found, folded=not options.unfold)
        if options.from_ is not None and not found.refused:
            session.say(f"\nNot checked\n  {schema.UNCHECKED}")
    else:
        session.say(formatted(as_document(found), options.output))
    if found.refused:
        return Exit.FAILED
    held = [each for each in conditions if each.holds(found)]
    for each in held:
        session.note(f"--fail-if {each.text}: it holds")
    return Exit.CONDITION if held else Exit.DONE


def _write_page(found: Forecast, path: str) -> None:
    try:
        Path(path).write_text(page(found), encoding="utf-8")
    except OSError as error:
        raise CommandError(f"{path} cannot be written: {error.strerror}") from None


def _forecast(session: Session, options: PlanOptions) -> Forecast:
    edit = edit_of(session, options)
    with progress_line():
        found = forecast(*edit.start)
    if options.from_:
        assumed_too = assumed.assumption_sentences(found, edit.observed.tapp, edit.edited)
        return replace(found, notes=(*found.notes, *assumed_too))
    if not found.refused:  # The spec of a refused edit may not be parseable.
        cluster = edit.session.cluster
        found = with_existing_children(cluster, edit.observed, edit.edited, found)
    return replace(found, stuck=(*found.stuck, *edit.stuck))


def progress_line() -> AbstractContextManager[object]:
    """Returns a context manager that shows a progress line while its block runs.

    The line is on standard error, and is not shown if standard error is no terminal.
    """
    if not sys.stderr.isatty():
        return nullcontext()
    return Console(stderr=True).status("playing the plan")
