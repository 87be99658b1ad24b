"""Errors that end a command: one sentence for the user, and an exit code for scripts."""

from enum import IntEnum


class Exit(IntEnum):
    """The exit codes of `kubectl tapp`. The codes 0 and 1 have the same meaning as for kubectl."""

    DONE = 0
    FAILED = 1  # The command failed: unknown TApp, no permission, no cluster, refused write
    USAGE = 2  # The command line or a file is invalid
    CONDITION = 3  # `plan --fail-if`: at least one condition holds
    STUCK = 4  # `--wait` or `wait`: the TApp is stuck, or the timeout has passed
    DECLINED = 5  # The user saw the plan and answered no; nothing was written
    CHANGED = 6  # The TApp changed after its plan was made; nothing was written
    INTERRUPTED = 130  # 128 + SIGINT, as a shell reports it


def printable(text: str) -> str:
    """Returns the text with U+FFFD instead of each control character except newline and tab.

    Messages quote texts of other programs, such as the last output of a container. Escape sequences
    in these texts must not reach the user's terminal.
    """
    return text.translate(_CONTROLS)


# The control characters of C0 and C1, which a terminal would execute
_CONTROLS = dict.fromkeys([*range(0x20), *range(0x7F, 0xA0)], "\N{REPLACEMENT CHARACTER}")
del _CONTROLS[ord("\n")], _CONTROLS[ord("\t")]


class CommandError(Exception):
    """An error that ends the command: the user sees its message, one sentence, and `code` becomes
    the exit code.
    """

    def __init__(self, message: str, code: Exit = Exit.FAILED) -> None:
        super().__init__(message)
        self.code = code


class UsageError(CommandError):
    """An error that ends the command with exit code 2, because the command line or a file is
    invalid.
    """

    def __init__(self, message: str) -> None:
        super().__init__(message, Exit.USAGE)
