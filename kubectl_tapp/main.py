"""The command line of `kubectl tapp`: its commands, its errors and its exit codes.

The entry point is `run`.
"""

import errno
import os
import signal
import sys
import time
from collections.abc import Callable, Sequence
from functools import cache
from typing import Annotated, Any, NoReturn

import typer

from kubectl_tapp.base.errors import CommandError, Exit
from kubectl_tapp.base.global_options import GLOBAL_OPTIONS, with_plain_switches
from kubectl_tapp.base.streams import (
    PIPE_CLOSED,
    discard_output,
    flush_output,
    open_closed_streams,
    unwritable_message,
)
from kubectl_tapp.cluster.kubectl import Runner
from kubectl_tapp.cluster.session import Session
from kubectl_tapp.commands import verbs
from kubectl_tapp.commands.listing import list_tapps
from kubectl_tapp.commands.migrate import migrate
from kubectl_tapp.commands.options import register, with_global_options
from kubectl_tapp.commands.plan import plan
from kubectl_tapp.commands.rehearse import rehearse
from kubectl_tapp.commands.status import status
from kubectl_tapp.commands.why import why
from kubectl_tapp.web.command import web

_NAME, PROGRAM = "kubectl tapp", "kubectl-tapp"
_SIGNALED = 128  # A shell adds this to the number of the signal that ended a process
_COMPLETION = ("--show-completion", "--install-completion")

app = typer.Typer(
    help="Show, explain, preview and change TApps.\n\n"
    "A command that changes a TApp shows its plan and asks for confirmation before it writes. The "
    "help of each command ends with examples.",
    epilog="Exit codes: 0 success, 1 failure, 2 invalid command line or file, 3 a condition of "
    "--fail-if holds, 4 the TApp is stuck or the timeout has passed, 5 not confirmed, 6 the TApp "
    "changed after its plan was made, 130 interrupted.",
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _show_version(asked: bool) -> None:
    if asked:
        from hooks.version import VERSION  # noqa: PLC0415 - it costs start time

        print(VERSION)
        raise typer.Exit


def _options(
    session: Session,
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_show_version, is_eager=True, help="Print the version and exit."
        ),
    ] = False,
) -> None:
    """The options before the command."""


app.callback(options_metavar="[options]")(with_global_options(_options, shown=GLOBAL_OPTIONS))
register(app, status)
register(app, why)
register(app, list_tapps, "list")
verbs.add_to(app)
register(app, plan)
register(app, rehearse)
register(app, migrate)
register(app, web)

# The base class of all errors of click's parser. typer does not export this class.
_ClickError: Any = typer.BadParameter.__mro__[2]


def run(
    arguments: Sequence[str],
    runner: Runner | None = None,
    clock: Callable[[], float] = time.time,
    sleep: Callable[[float], None] = time.sleep,
) -> int:
    """Runs one command line and returns its exit code. Each error ends with one sentence on stderr.

    Args:
        arguments: the words after `kubectl tapp`.
        runner: runs kubectl; None runs the program itself.
        clock: returns the time in seconds since the epoch.
        sleep: waits for a number of seconds.
    """
    completing = "_KUBECTL_TAPP_COMPLETE" in os.environ or any(
        word in _COMPLETION for word in arguments
    )
    parser = command()
    session = Session(runner, clock, sleep=sleep)
    try:
        code = parser.main(
            with_plain_switches([*arguments]),
            prog_name=PROGRAM if completing else _NAME,
            standalone_mode=False,
            obj=session,
        )
    except CommandError as error:
        code = _report(error, error.code)
    except _ClickError as error:
        code = _usage(error)
    except (KeyboardInterrupt, typer.Abort):
        code = Exit.INTERRUPTED
    except (BrokenPipeError, SystemExit) as error:
        # click calls sys.exit(1) if the reader of the output has closed the pipe (EPIPE).
        if isinstance(error, BrokenPipeError) or error.code == 1:
            return _end_quietly()
        code = int(error.code or 0)
    except OSError as error:
        code = _system_error(error)
    except Exception as error:  # noqa: BLE001 - the user sees a sentence instead of a traceback
        code = _report(_fault_message(error), Exit.FAILED)
    return exit_code_after_flush(int(code or 0))


def exit_code_after_flush(code: int) -> int:
    """Flushes standard output, and returns the exit code of the process.

    The exit code is `code`. If the flush fails, it is the exit code of that failure.
    """
    error = flush_output()
    if isinstance(error, BrokenPipeError):
        return code or PIPE_CLOSED
    if error is not None and code == Exit.DONE:
        return _report(unwritable_message(error), Exit.FAILED)
    return code


@cache
def command() -> Any:
    """Returns the parser of the command line.

    The parser is built once in a process, because building it takes time.
    """
    return typer.main.get_command(app)


def _report(what: object, code: Exit) -> int:
    Session.note(f"error: {what}")
    return code


def _usage(error: Any) -> int:
    message = error.format_message().rstrip(".").replace("Value error, ", "")
    if not message:  # The command line has no command, and the help has been printed
        return Exit.USAGE
    return _report(f"{message[0].lower()}{message[1:]}", Exit.USAGE)


def _end_quietly() -> int:
    """Discards all further output, and returns the exit code for a closed pipe.

    No message is printed, because the reader of the output has read enough.
    """
    discard_output()
    return PIPE_CLOSED


def _system_error(error: OSError) -> int:
    """Prints an error of the operating system, such as a full disk, and returns the exit code."""
    if flush_output() is not None:
        return _report(unwritable_message(error), Exit.FAILED)
    if "usable temporary directory" in str(error):  # The message of Python's `tempfile`
        what = (
            "there is no writable temporary directory: set TMPDIR to a directory that you may write"
        )
        return _report(what, Exit.FAILED)
    if error.errno in (errno.ENOSPC, errno.EFBIG, errno.EBADF) and not error.filename:
        return _report(unwritable_message(error), Exit.FAILED)
    where = f"{error.filename}: " if error.filename else "the system refuses it: "
    return _report(f"{where}{error.strerror or error}", Exit.FAILED)


def _fault_message(error: Exception) -> str:
    place = error.__traceback__
    while place is not None and place.tb_next is not None:
        place = place.tb_next
    frame = None if place is None else place.tb_frame.f_globals.get("__name__")
    where = "" if place is None else f" at {frame}:{place.tb_lineno}"
    return (
        f"internal error of kubectl-tapp, please report it: {type(error).__name__}{where}: {error}"
    )


def main() -> None:
    """Runs the program `kubectl-tapp`."""
    open_closed_streams()
    exit_on_signals()
    sys.exit(run(sys.argv[1:]))


def exit_on_signals() -> None:
    """Lets SIGTERM and SIGHUP end the process by SystemExit, so that temporary files are deleted.

    A signal that the parent process has set to be ignored, as `nohup` does with SIGHUP, stays
    ignored.
    """
    for name in ("SIGTERM", "SIGHUP"):  # Windows has no SIGHUP
        number = getattr(signal, name, None)
        if number is not None and signal.getsignal(number) == signal.SIG_DFL:
            signal.signal(number, _exit)


def _exit(number: int, _: object) -> NoReturn:
    sys.exit(_SIGNALED + number)


if __name__ == "__main__":
    main()
