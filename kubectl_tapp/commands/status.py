"""`kubectl tapp status`: shows the state of each instance, and why instances wait."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

import typer

from kubectl_tapp.base.errors import UsageError
from kubectl_tapp.base.observed import Observed
from kubectl_tapp.base.printed import formatted
from kubectl_tapp.cluster.access import CLAIMS, EVENTS, PODS
from kubectl_tapp.cluster.kubectl import KubectlError
from kubectl_tapp.cluster.session import Session
from kubectl_tapp.commands.options import Name, Output, Watch

if TYPE_CHECKING:
    from rich.console import RenderableType

    from kubectl_tapp.decide.inspection import Inspection

Unfold = Annotated[
    bool,
    typer.Option(
        "--unfold", help="Print a line for each instance, even if there are more than 24."
    ),
]


def status(
    session: Session,
    name: Name,
    watch: Watch = False,
    unfold: Unfold = False,
    output: Output = None,
) -> None:
    """Show the state of each instance, and why instances wait.

    The lines below the table show how the budget is used up, and by which instances.
    """
    if watch and output is not None:
        raise UsageError("--watch and --output cannot be used together")
    observed = session.cluster.observe(name, events=True)
    for resource in (PODS, CLAIMS, EVENTS):
        if resource in observed.unread:
            session.note(f"note: {observed.unread[resource]}")
    if output is not None:
        from kubectl_tapp.show.documents import status_document  # noqa: PLC0415 - start time

        session.say(formatted(status_document(_inspected(session, observed)), output))
    elif watch:
        _follow(session, observed, unfold)
    else:
        _print(session, observed, unfold)


def _inspected(session: Session, observed: Observed) -> "Inspection":
    from kubectl_tapp.decide.inspection import inspect  # noqa: PLC0415 - it costs start time

    return inspect(session.cluster, observed, session.now())


def _shown(session: Session, observed: Observed, unfold: bool) -> "RenderableType":
    from kubectl_tapp.show import status as show_status  # noqa: PLC0415 - it costs start time

    if PODS in observed.unread:
        return show_status.status_text_from_status(observed, session.console, unfold=unfold)
    return show_status.status_text(_inspected(session, observed), session.console, unfold=unfold)


def _print(session: Session, observed: Observed, unfold: bool) -> None:
    console = session.console
    console.print(_shown(session, observed, unfold), soft_wrap=not console.is_terminal)


def _follow(session: Session, observed: Observed, unfold: bool) -> None:
    if session.console.is_terminal:
        from rich.live import Live  # noqa: PLC0415 - it costs start time

        with Live(
            _shown(session, observed, unfold), console=session.console, auto_refresh=False
        ) as live:
            for newer in _polled(session, observed):
                live.update(_shown(session, newer, unfold), refresh=True)
    else:
        from kubectl_tapp.show.status import Changes  # noqa: PLC0415

        _print(session, observed, unfold)
        before = Changes(_inspected(session, observed))
        for newer in _polled(session, observed):
            for line in before.lines_since_last_look(_inspected(session, newer)):
                session.say(line)
    session.note(f"note: TApp {observed.name} was deleted")


def _polled(session: Session, observed: Observed) -> Iterator[Observed]:
    for _ in session.polls():
        try:
            observed = session.cluster.observe(observed.name, before=observed)
        except KubectlError as error:
            if error.reason != "NotFound":
                raise
            return
        yield observed
