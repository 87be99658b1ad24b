"""A command's end: one sentence for a person, and an exit code for a script."""

from enum import IntEnum


class Exit(IntEnum):
    """Exit codes. Those that kubectl has mean the same."""

    DONE = 0
    FAILED = 1  # Something is wrong: no such TApp, no permission, no cluster, a refused write
    USAGE = 2  # The command line or a file is invalid
    CONDITION = 3  # `plan --fail-if`: the condition holds
    STUCK = 4  # `--wait`: the TApp is stuck, or the time is over
    DECLINED = 5  # The plan was shown, and the answer was no; nothing was written
    CHANGED = 6  # The TApp changed after its plan was made; nothing was written
    INTERRUPTED = 130


def plain(text: str) -> str:
    """A text that a terminal shows and does not obey: a container's last words may be anything."""
    return text.translate(_CONTROLS)


_CONTROLS = dict.fromkeys([*range(0x20), *range(0x7F, 0xA0)], "\N{REPLACEMENT CHARACTER}")
del _CONTROLS[ord("\n")], _CONTROLS[ord("\t")]


class CommandError(Exception):
    """A command that cannot go on, with its exit code."""

    def __init__(self, message: str, code: Exit = Exit.FAILED) -> None:
        """`message` is one sentence: what is wrong, where, and what to do."""
        super().__init__(message)
        self.code = code


class UsageError(CommandError):
    """A command line or a file that is invalid."""

    def __init__(self, message: str) -> None:
        """`message` is one sentence: what is wrong, and what to write instead."""
        super().__init__(message, Exit.USAGE)
