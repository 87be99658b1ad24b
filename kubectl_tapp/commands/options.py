"""The options that commands share, and the registration of commands with kubectl's global options.

A command is a function whose first parameter is a `Session`. `register` adds kubectl's global
options (`-n`, `--context`, ...) to its own parameters, so that no command has to repeat them.
"""

import functools
import inspect
from collections.abc import Callable, Iterable
from dataclasses import dataclass, is_dataclass
from enum import StrEnum
from typing import Annotated, Any

import typer

from kubectl_tapp.base.arguments import read_duration
from kubectl_tapp.base.global_options import GLOBAL_OPTIONS, SHOWN_OPTIONS
from kubectl_tapp.base.hints import remember_options
from kubectl_tapp.commands.complete import contexts, ids, names, namespaces
from kubectl_tapp.commands.help_texts import epilog_of


class Format(StrEnum):
    """The values of `--output` for commands that print one document."""

    JSON = "json"
    YAML = "yaml"


NOTHING_WRITTEN = "Dry run: nothing was written."
# The last words of the output of a verb that has nothing to change
NO_CHANGE = "no change needed"


class DryRun(StrEnum):
    """The values of `--dry-run`, as in kubectl."""

    CLIENT = "client"
    SERVER = "server"


class ListFormat(StrEnum):
    """The values of `--output` for commands that list objects, as in kubectl."""

    JSON = "json"
    YAML = "yaml"
    WIDE = "wide"
    NAME = "name"


def without_resource_prefix(name: str | None) -> str | None:
    """Returns a TApp's name without a resource type before it: `web` for `tapp/web`.

    kubectl prints names in this form. Returns None for None, which means that no name is given.
    """
    if name is None:
        return None
    kind, slash, rest = name.partition("/")
    known = ("tapp", "tapps", "tapp.apps.tkestack.io", "tapps.apps.tkestack.io")
    return rest if slash and kind in known else name


def option(*names: str, **more: Any) -> Any:
    """Returns a typer option with these names, whose help does not show a default.

    `more` are further arguments of `typer.Option`.
    """
    return typer.Option(*names, show_default=False, **more)


def argument(metavar: str, help: str, **more: Any) -> Any:  # noqa: A002 - as typer calls it
    """Returns a typer argument whose help does not show a default.

    `metavar` is the word for the argument in the help, and `more` are further arguments of
    `typer.Argument`.
    """
    return typer.Argument(metavar=metavar, help=help, show_default=False, **more)


Name = Annotated[
    str,
    argument("NAME", "Name of the TApp.", autocompletion=names, callback=without_resource_prefix),
]
ID_HELP = "Instance numbers: 3, 0-3,7 or all."
Ids = Annotated[
    list[str] | None,
    argument("[ID]...", "Instance numbers: 3, 0-3,7 or all (default: all).", autocompletion=ids),
]
Output = Annotated[
    Format | None, option("-o", "--output", help="Output format (default: text for people).")
]
ListOutput = Annotated[
    ListFormat | None, option("-o", "--output", help="Output format (default: a table).")
]
Yes = Annotated[bool, typer.Option("-y", "--yes", help="Write without asking for confirmation.")]
Watch = Annotated[
    bool, typer.Option("-w", "--watch", help="After showing the TApp, watch for changes.")
]


@dataclass(frozen=True)
class Choices:
    """The options of every verb that say how to carry out the edit, such as `--dry-run` and
    `--wait`.
    """

    yes: Yes = False
    dry_run: Annotated[
        DryRun | None,
        option(
            help="Show the plan and write nothing. The server strategy also lets the API server "
            "check the edit."
        ),
    ] = None
    wait: Annotated[bool, typer.Option("--wait")] = False
    timeout: Annotated[
        str,
        typer.Option(
            metavar="TIME", help="With --wait, give up after this time: 90s, 10m or 1h30m."
        ),
    ] = "10m"

    def __post_init__(self) -> None:
        """Raises UsageError if the timeout is invalid, before the command does anything else."""
        read_duration(self.timeout)

    @property
    def seconds(self) -> float:
        """The timeout of `--wait` in seconds."""
        return read_duration(self.timeout)


_COMPLETIONS: dict[str, Any] = {"namespace": namespaces, "context": contexts}
"""Name of a global option of kubectl -> the completion of its value."""


def _global_option(name: str, *, shown: bool) -> Any:
    target = GLOBAL_OPTIONS[name]
    kind: Any = (list[str] if target.is_repeatable else str) if target.metavar else bool
    more: dict[str, Any] = {"metavar": target.metavar} if target.metavar else {}
    if name in _COMPLETIONS:
        more["autocompletion"] = _COMPLETIONS[name]
    return Annotated[kind | None, option(*target.forms, help=target.help, hidden=not shown, **more)]


def with_global_options(
    function: Callable[..., Any], shown: Iterable[str] = SHOWN_OPTIONS
) -> Callable[..., Any]:
    """Returns a function for typer whose parameters include kubectl's global options.

    The global options become part of the Session, which is the first argument of `function`. A
    parameter that is a dataclass becomes one option for each of its fields. All global options are
    accepted, but the help shows only those that `shown` names.
    """
    _, *own = inspect.signature(function, eval_str=True).parameters.values()
    whole = next((each for each in own if is_dataclass(each.annotation)), None)
    if whole is not None:
        own = [*inspect.signature(whole.annotation, eval_str=True).parameters.values()]

    def run(ctx: typer.Context, **values: Any) -> Any:
        ctx.obj = ctx.obj.with_options(**{name: values.pop(name) for name in GLOBAL_OPTIONS})
        remember_options(ctx.obj.global_options)
        if whole is not None:
            return function(ctx.obj, whole.annotation(**values))
        return function(ctx.obj, **values)

    targets = [
        keyword(name, _global_option(name, shown=name in shown), None) for name in GLOBAL_OPTIONS
    ]
    return with_parameters(run, function, [keyword("ctx", typer.Context), *own, *targets])


def keyword(
    name: str, annotation: Any, default: Any = inspect.Parameter.empty
) -> inspect.Parameter:
    """Returns a keyword parameter in the form in which typer reads the parameters of a function.

    Without `default`, the parameter is required.
    """
    kind = inspect.Parameter.KEYWORD_ONLY
    return inspect.Parameter(name, kind, default=default, annotation=annotation)


def with_parameters(
    run: Callable[..., Any], function: Callable[..., Any], parameters: list[inspect.Parameter]
) -> Callable[..., Any]:
    """Returns `run` with the name and the docstring of `function`, and with these parameters.

    typer builds a command from the name, the docstring and the parameters of a function.
    """
    functools.update_wrapper(run, function)
    del run.__wrapped__  # type: ignore[attr-defined]
    known = [keyword(each.name, each.annotation, each.default) for each in parameters]
    run.__signature__ = inspect.Signature(known)  # type: ignore[attr-defined]
    run.__annotations__ = {each.name: each.annotation for each in known}
    return run


def register(app: typer.Typer, function: Callable[..., Any], name: str | None = None) -> None:
    """Adds a function to the app as a command. The first parameter of the function is a `Session`.

    `name` is the name of the command; None means the name of the function.
    """
    app.command(name, options_metavar="[options]", epilog=epilog_of(function.__name__))(
        with_global_options(function)
    )
