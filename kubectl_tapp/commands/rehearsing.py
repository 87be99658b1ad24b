"""Carries out `kubectl tapp rehearse`: determines the edit, simulates it with faults, and prints
the results.

`rehearse` is the entry point.

This module is separate from `rehearse.py`, because its imports take time and `--help` does not need
them.
"""

import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from kubectl_tapp.base.arguments import read_duration
from kubectl_tapp.base.errors import CommandError, Exit
from kubectl_tapp.base.printed import formatted
from kubectl_tapp.cluster.session import Session
from kubectl_tapp.commands.edited import edit_of
from kubectl_tapp.commands.rehearse_options import RehearseOptions
from kubectl_tapp.forecast.foresee import start_of
from kubectl_tapp.forecast.rehearsal import Rehearsal, Settings
from kubectl_tapp.forecast.rehearsal import rehearse as play
from kubectl_tapp.forecast.rehearsal_conditions import read_condition_of_rehearsal
from kubectl_tapp.show.rehearsal import as_document, print_rehearsal
from kubectl_tapp.show.rehearsal_page import rehearsal_page

NODES = ("node-1", "node-2", "node-3", "node-4")
"""Names of the nodes over which the pods of a TApp from a file are spread at the beginning of a
run.
"""
_SPREAD = f"the pods are assumed to be spread over {len(NODES)} nodes"


def rehearse(session: Session, options: RehearseOptions) -> Exit:
    """Prints the results of a rehearsal, and returns the exit code of the command.

    The exit code is FAILED if the edit is refused or a run violates a safety property. Otherwise it
    is CONDITION if a condition of `--fail-if` holds, INTERRUPTED after Ctrl-C, and else DONE.
    """
    conditions = [read_condition_of_rehearsal(text) for text in options.fail_if or []]
    settings = Settings(
        options.runs,
        options.seed,
        tuple(str(each.value) for each in dict.fromkeys(options.fault or [])),
        options.faults,
        None if options.within is None else read_duration(options.within),
        options.replay,
    )
    found = _played(session, options, settings)
    # The HTML page is written first, because the command ends when the reader of its output closes
    # the pipe.
    if options.html is not None:
        _write_page(found, options.html)
    if options.output is None:
        print_rehearsal(session.console, found)
    else:
        session.say(formatted(as_document(found), options.output))
    if found.refused:
        return Exit.FAILED
    held = [each for each in conditions if each.holds(found)]
    for each in held:
        session.note(f"--fail-if {each.text}: it holds")
    if any(run.violations for run in found.everything):
        return Exit.FAILED
    if held:
        return Exit.CONDITION
    return Exit.INTERRUPTED if found.interrupted else Exit.DONE


def _played(session: Session, options: RehearseOptions, settings: Settings) -> Rehearsal:
    edit = edit_of(session, options, NODES)
    if edit.assumptions.refused:
        name, space = edit.observed.name, str(edit.edited["metadata"].get("namespace") or "")
        return Rehearsal(name, space, settings, refused=edit.assumptions.refused)
    total = 1 if settings.replay is not None else settings.runs
    found = play(start_of(*edit.start), settings, _progress(total))
    notes = (*found.notes, _SPREAD) if options.from_ else found.notes
    return replace(found, notes=notes, remarks=(*edit.assumptions.remarks, *edit.stuck))


def _progress(total: int) -> Callable[[int], None]:
    """Returns a function that shows the number of finished runs on standard error.

    The function does nothing if standard error is no terminal.
    """
    stream = sys.stderr
    if not stream.isatty():
        return lambda _count: None

    def show(count: int) -> None:
        end = "\r\x1b[K" if count == total else ""
        stream.write(f"\r{count} of {total} runs (Ctrl-C shows what is known so far){end}")
        stream.flush()

    return show


def _write_page(found: Rehearsal, path: str) -> None:
    try:
        Path(path).write_text(rehearsal_page(found), encoding="utf-8")
    except OSError as error:
        raise CommandError(f"{path} cannot be written: {error.strerror}") from None
