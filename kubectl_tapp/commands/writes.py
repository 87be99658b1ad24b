"""Writes to several objects: each is tried, a person is asked, then one follows the other."""

from collections.abc import Callable, Sequence
from typing import Protocol, TypeVar

from kubectl_tapp.base.errors import CommandError
from kubectl_tapp.commands.options import NOTHING_WRITTEN, DryRun
from kubectl_tapp.commands.verb_options import Verb

T = TypeVar("T")
T_contra = TypeVar("T_contra", contravariant=True)


class Write(Protocol[T_contra]):
    """One write; a dry run lets the API server check it."""

    def __call__(self, item: T_contra, /, *, dry_run: bool) -> object:
        """Writes, or raises a CommandError."""


def write_each(  # noqa: PLR0913 - what a write to several objects consists of
    verb: Verb,
    items: Sequence[T],
    write: Write[T],
    done: str,
    named: Callable[[list[T]], str],
    *,
    check: Callable[[], None] = lambda: None,
) -> bool:
    """Writes each, after the question; False where nothing was to be written.

    Args:
        verb: the verb under way.
        items: what is written, in this order.
        write: one of them.
        done: what they are then: `on hold`.
        named: names some of them, for a person.
        check: called when a person has said yes; it raises what speaks against it by then.

    Raises:
        CommandError: one may not be written; it is said who was written and who was not.
    """
    session, choices = verb.session, verb.choices
    if choices.dry_run is not DryRun.CLIENT:
        for item in items:  # whoever may not write learns it before anything begins
            write(item, dry_run=True)
    if choices.dry_run is not None:
        session.say(NOTHING_WRITTEN)
        return False
    session.confirm(yes=choices.yes)
    check()
    count = 0
    try:
        for item in items:
            write(item, dry_run=False)
            count += 1
    except (KeyboardInterrupt, CommandError):
        written, left = list(items[:count]), list(items[count:])
        session.note(f"not all: {done}: {named(written) or 'none'}; not {done}: {named(left)}")
        raise
    session.say(f"{verb.name}: {named(list(items))} {done}")
    return True
