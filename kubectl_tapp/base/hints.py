"""Commands that messages name, complete, so that they can be pasted: at any time, in any context.

Each has the namespace, also if it is the current one, and the options of cluster and user that the
command line had. The command line is one for the whole process, so it is remembered here.
"""

import shlex
from typing import Any

from kubectl_tapp.base.targets import Given, passed_on

_LEFT_OUT = ("namespace", "request_timeout", "token", "password", "username")
"""Options that no hint repeats: secrets, the time limit, and the namespace, which hints name."""

_given: list[str] = []


def remember(targets: Given) -> None:
    """Remembers the options of kubectl that the command line had, for all later hints."""
    _given[:] = passed_on({key: each for key, each in targets.items() if key not in _LEFT_OUT})


def hint(*words: str, namespace: str = "", plugin: bool = True) -> str:
    """Returns a command in backquotes: `kubectl tapp WORDS -n NAMESPACE`, quoted for the shell.

    With `plugin=False` it is a command of kubectl itself. Without a namespace it has no `-n`.
    """
    scope = ["-n", namespace] if namespace else []
    program = ["kubectl", "tapp"] if plugin else ["kubectl"]
    return f"`{shlex.join([*program, *words, *scope, *_given])}`"


def hinted(tapp: dict[str, Any], verb: str, *words: str) -> str:
    """Returns the command of a verb for this TApp, in its namespace; `words` follow its name."""
    metadata = tapp["metadata"]
    return hint(verb, metadata["name"], *words, namespace=metadata.get("namespace") or "")
