"""The options of `kubectl tapp rehearse`."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated

import typer

from kubectl_tapp.commands.options import Output, option
from kubectl_tapp.commands.plan_options import EditOptions


class FaultKind(StrEnum):
    """The values of `--fault`: the kinds of faults, as in `simulator/schedule.py`."""

    NODE_LOSS = "node-loss"
    EVICTION = "eviction"
    NODE_PRESSURE = "node-pressure"
    CRASH = "crash"
    KUBELET_RESTART = "kubelet-restart"
    FAILED_PULL = "failed-pull"
    SLOW_PULL = "slow-pull"
    SLOW_START = "slow-start"
    REFUSED_WRITE = "refused-write"
    STALE_CACHE = "stale-cache"
    METACONTROLLER_RESTART = "metacontroller-restart"
    SERVICE_RESTART = "service-restart"
    SECOND_EDIT = "second-edit"


@dataclass(frozen=True)
class RehearseOptions(EditOptions):
    """The options of `kubectl tapp rehearse`: the TApp, its edit, the number of simulations, and
    their faults.
    """

    runs: Annotated[
        int, typer.Option("--runs", min=1, metavar="NUMBER", help="Play the edit this often.")
    ] = 200
    seed: Annotated[
        int, typer.Option("--seed", min=1, metavar="NUMBER", help="Seed of the first run.")
    ] = 1
    fault: Annotated[
        list[FaultKind] | None,
        option(
            "--fault",
            metavar="KIND",
            help=f"Kind of faults (default: all): {', '.join(FaultKind)}. Can be repeated.",
        ),
    ] = None
    faults: Annotated[
        int, typer.Option("--faults", min=1, max=20, metavar="NUMBER", help="Faults in each run.")
    ] = 1
    within: Annotated[
        str | None,
        option(
            "--within",
            metavar="TIME",
            help="Time in which the faults begin: 90s, 10m or 1h30m (default: as long as the edit "
            "takes without faults).",
        ),
    ] = None
    replay: Annotated[
        int | None,
        option(
            "--replay",
            metavar="SEED",
            min=1,
            help="Play only the run with this seed, and show it step by step.",
        ),
    ] = None
    fail_if: Annotated[
        list[str] | None,
        option(
            "--fail-if",
            metavar="CONDITION",
            help="Exit with code 3 if this condition holds in any run: stuck, unavailable or "
            "duration. A limit may follow, as in unavailable>2 or duration>10m. Can be repeated.",
        ),
    ] = None
    html: Annotated[
        str | None,
        option("--html", metavar="FILE", help="Write the results as an HTML page to this file."),
    ] = None
    output: Output = None
