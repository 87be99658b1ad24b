"""Writes to several objects: each is tried, a person is asked, then one follows the other."""

from collections.abc import Callable, Sequence
from typing import TypeVar

from kubectl_tapp.base.errors import CommandError
from kubectl_tapp.commands.options import NOTHING_WRITTEN, DryRun
from kubectl_tapp.commands.verb_options import Verb

T = TypeVar("T")


def write_each(  # noqa: PLR0913 - what a write to several objects consists of
    verb: Verb,
    items: Sequence[T],
    done: str,
    named: Callable[[list[T]], str],
    *,
    attempt: Callable[[T], object],
    write: Callable[[T], object],
    check: Callable[[], object] = lambda: None,
) -> bool:
    """Writes each, in this order, after the question; False where nothing was to be written.

    `done` says what they are then (`on hold`), `named` names some of them. `attempt` lets the API
    server check the write of one. `check` is called when a person has said yes; it raises what
    speaks against it by then.

    Raises CommandError: one may not be written; it is said who was written and who was not.
    """
    session, choices = verb.session, verb.choices
    if choices.dry_run is not DryRun.CLIENT:
        for item in items:  # whoever may not write learns it before anything begins
            attempt(item)
    if choices.dry_run is not None:
        session.say(NOTHING_WRITTEN)
        return False
    session.confirm(yes=choices.yes)
    check()
    count = 0
    try:
        for item in items:
            write(item)
            count += 1
    except (KeyboardInterrupt, CommandError):
        written, left = list(items[:count]), list(items[count:])
        session.note(f"not all: {done}: {named(written) or 'none'}; not finished: {named(left)}")
        raise
    session.say(f"{verb.name}: {named(list(items))} {done}")
    return True
