"""`kubectl tapp wait`: waits until a TApp has reached a goal."""

from collections.abc import Callable
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from kubectl_tapp.base.arguments import read_duration, read_ids
from kubectl_tapp.cluster.access import TAPPS
from kubectl_tapp.cluster.session import Session
from kubectl_tapp.commands.options import Ids, Name

if TYPE_CHECKING:
    from kubectl_tapp.decide.progress import Progress


class Goal(StrEnum):
    """The values of `--for`: the state to wait for."""

    COMPLETE = "complete"  # Every instance is as the spec asks
    READY = "ready"  # The condition `Ready` is True for the current generation
    AVAILABLE = "available"  # The condition `Available` is True for the current generation
    STUCK = "stuck"  # The rollout is not complete and cannot continue without an intervention


For = Annotated[
    Goal,
    typer.Option(
        "--for",
        help="State to wait for: `complete` (all is as the spec asks), the condition Ready or "
        "Available, or `stuck`.",
    ),
]
Timeout = Annotated[
    str,
    typer.Option(
        metavar="TIME", help="The length of time to wait before giving up: 90s, 10m or 1h30m."
    ),
]


def wait(
    session: Session,
    name: Name,
    ids: Ids = None,
    goal: For = Goal.COMPLETE,
    timeout: Timeout = "10m",
) -> None:
    """Wait until instances are as the spec asks.

    If the TApp is stuck or --timeout has passed, the command prints the reason and exits with 4.
    """
    from kubectl_tapp.commands.waiting import WaitGoal  # noqa: PLC0415
    from kubectl_tapp.commands.waiting import wait as wait_until  # noqa: PLC0415
    from kubectl_tapp.edit.edits import spec_of  # noqa: PLC0415

    seconds = read_duration(timeout)
    chosen = None
    if ids:
        chosen = read_ids(ids, spec_of(session.cluster.get(TAPPS, name)).replicas)

    reached: dict[Goal, Callable[[Progress], bool]] = {
        Goal.READY: lambda now: now.ready,
        Goal.AVAILABLE: lambda now: now.has_minimum,
        Goal.STUCK: lambda _now: False,
    }
    messages = {Goal.READY: "the TApp is Ready", Goal.AVAILABLE: "enough instances are available"}
    states = {Goal.READY: "Ready", Goal.AVAILABLE: "available", Goal.STUCK: "stuck"}
    message, state = messages.get(goal, "done"), states.get(goal, "done")
    stuck = goal is Goal.STUCK
    wait_until(session, WaitGoal(name, chosen, seconds, message, state, reached.get(goal), stuck))
