"""Formats the commands that messages suggest, so that the user can paste them into any shell.

Each command names its namespace, even if it is the current one. It repeats the options of the
command line that select the cluster and the user (`--context`, `--as`, ...). `remember_options`
stores these options in a global variable, because a process runs only one command line.
"""

import shlex
from typing import Any

from kubectl_tapp.base.global_options import GivenOptions, kubectl_arguments

_LEFT_OUT = ("namespace", "request_timeout", "token", "password", "username")
"""Global options of kubectl that a suggested command does not repeat.

Credentials must not appear in messages, and the time limit concerns only the present command. The
namespace is left out because `shell_command` adds it itself.
"""

_given: list[str] = []


def remember_options(given: GivenOptions) -> None:
    """Stores kubectl's options of this command line, so that all commands in later messages repeat
    them.
    """
    _given[:] = kubectl_arguments(
        {key: each for key, each in given.items() if key not in _LEFT_OUT}
    )


def shell_command(*words: str, namespace: str = "", plugin: bool = True) -> str:
    """Returns a command line in backquotes: `kubectl tapp WORDS -n NAMESPACE`, with the words
    quoted for the shell.

    Args:
        words: the words of the command, without the program.
        namespace: the namespace for `-n`; empty if the command needs no namespace.
        plugin: False for a command of kubectl itself, without `tapp`.
    """
    scope = ["-n", namespace] if namespace else []
    program = ["kubectl", "tapp"] if plugin else ["kubectl"]
    return f"`{shlex.join([*program, *words, *scope, *_given])}`"


def contexts_hint() -> str:
    """Returns the command, in backquotes, that lists the contexts of the kubeconfig in use."""
    files = [each for each in _given if each.startswith("--kubeconfig=")]
    return f"`{shlex.join(['kubectl', 'config', 'get-contexts', *files])}`"


def tapp_command(tapp: dict[str, Any], verb: str, *words: str) -> str:
    """Returns the command `kubectl tapp VERB NAME WORDS` for a TApp, in backquotes and with its
    namespace.
    """
    metadata = tapp["metadata"]
    return shell_command(verb, metadata["name"], *words, namespace=metadata.get("namespace") or "")
