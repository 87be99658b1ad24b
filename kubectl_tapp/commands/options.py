"""The options that commands share, and how a command is registered with those of kubectl.

A command is a function whose first parameter is a `Session`. `register` gives it kubectl's options
(`-n`, `--context`, ...) besides its own, so that none has to repeat them.
"""

import functools
import inspect
from collections.abc import Callable
from enum import StrEnum
from typing import Annotated, Any

import typer

from kubectl_tapp.commands.complete import contexts, ids, names, namespaces


class Format(StrEnum):
    """`-o`: another form of what is shown."""

    JSON = "json"
    YAML = "yaml"


class ListFormat(StrEnum):
    """`-o` of commands that list, as kubectl has it."""

    JSON = "json"
    YAML = "yaml"
    WIDE = "wide"
    NAME = "name"


def bare(name: str | None) -> str | None:
    """`tapp/web`, as kubectl prints it, is `web`."""
    if name is None:
        return None
    kind, slash, rest = name.partition("/")
    known = ("tapp", "tapps", "tapp.apps.tkestack.io", "tapps.apps.tkestack.io")
    return rest if slash and kind in known else name


Name = Annotated[
    str,
    typer.Argument(
        metavar="NAME", help="The TApp.", show_default=False, autocompletion=names, callback=bare
    ),
]
Ids = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[ID]...",
        help="Instances: 3, 0-3,7 or all.",
        show_default=False,
        autocompletion=ids,
    ),
]
Output = Annotated[
    Format | None, typer.Option("-o", "--output", help="As a document.", show_default=False)
]
ListOutput = Annotated[
    ListFormat | None, typer.Option("-o", "--output", help="Another form.", show_default=False)
]
Yes = Annotated[bool, typer.Option("-y", "--yes", help="Do not ask.")]
Watch = Annotated[bool, typer.Option("-w", "--watch", help="Go on showing it as it changes.")]

_PANEL = {"show_default": False}
_Namespace = Annotated[
    str | None,
    typer.Option(
        "-n", "--namespace", metavar="NAME", help="As for kubectl.", autocompletion=namespaces,
        **_PANEL,
    ),
]  # fmt: skip
_Context = Annotated[
    str | None,
    typer.Option(
        "--context", metavar="NAME", help="As for kubectl.", autocompletion=contexts, **_PANEL
    ),
]
_Kubeconfig = Annotated[
    str | None, typer.Option("--kubeconfig", metavar="FILE", help="As for kubectl.", **_PANEL)
]
_As = Annotated[str | None, typer.Option("--as", metavar="USER", help="As for kubectl.", **_PANEL)]
_Timeout = Annotated[
    str | None,
    typer.Option("--request-timeout", metavar="30s", help="As for kubectl.", **_PANEL),
]
TARGETS: dict[str, Any] = {
    "namespace": _Namespace,
    "context": _Context,
    "kubeconfig": _Kubeconfig,
    "as_user": _As,
    "request_timeout": _Timeout,
}


def with_targets(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function for typer: kubectl's options become part of its first argument, the Session."""

    @functools.wraps(function)
    def run(ctx: typer.Context, **values: Any) -> Any:
        targets = {name: values.pop(name) for name in TARGETS}
        ctx.obj = ctx.obj.narrowed(**targets)
        return function(ctx.obj, **values)

    _, *own = inspect.signature(function, eval_str=True).parameters.values()
    keyword = inspect.Parameter.KEYWORD_ONLY
    parameters = [
        inspect.Parameter("ctx", keyword, annotation=typer.Context),
        *(each.replace(kind=keyword) for each in own),
        *(
            inspect.Parameter(name, keyword, default=None, annotation=kind)
            for name, kind in TARGETS.items()
        ),
    ]
    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {each.name: each.annotation for each in parameters}
    del run.__wrapped__
    return run


def register(app: typer.Typer, function: Callable[..., Any], name: str | None = None) -> None:
    """Makes a command of a function whose first parameter is a `Session`."""
    app.command(name, options_metavar="[options]")(with_targets(function))
