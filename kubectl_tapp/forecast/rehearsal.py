"""Rehearses an edit: simulates it many times, each time with other random faults.

`rehearse` is the entry point. Each run has a seed of its own: `Settings.seed` for the first run,
and one more for each further run. Runs with the same seed are equal. Several processes share the
runs if there are enough of them.
"""

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from multiprocessing import get_all_start_methods, get_context

from kubectl_tapp.decide.budget import Limit, limits
from kubectl_tapp.forecast.foresee import Start
from kubectl_tapp.forecast.rehearsed_run import Played, RehearsedRun
from simulator.api.store import ApiError
from simulator.schedule import KINDS, Fault, drawn

SECOND_EDIT = "second-edit"
_LEAST_WITHIN = 10.0  # Faults begin within at least this many seconds, even if the edit is faster
# Faults begin within this many seconds if the edit never completes without faults
_UNKNOWN_DURATION = 60.0
_RUNS_OF_A_PROCESS = 25  # Number of runs for which another process is started


@dataclass(frozen=True)
class Settings:
    """The number of runs to simulate, and the faults in them."""

    runs: int = 200  # number of runs with faults
    seed: int = 1  # the seed of the first run
    kinds: tuple[str, ...] = ()  # the kinds of faults to draw from; empty for all kinds
    faults: int = 1  # number of faults in each run
    # faults begin within this many seconds; None for the time that the edit takes without faults
    within: float | None = None
    # the seed of the only run, if a single run is to be repeated; None for `runs` runs
    replay: int | None = None


@dataclass(frozen=True)
class Rehearsal:
    """The results of all runs."""

    name: str  # name of the TApp
    namespace: str
    settings: Settings
    kinds: tuple[str, ...] = ()  # the kinds of faults that could be drawn
    within: float = 0.0  # all faults began within this many seconds after the edit
    limits: tuple[Limit, ...] = ()  # the budgets (maxUnavailable) that limit the updates
    undisturbed: Played | None = None  # the run without faults; None if the edit is refused
    played: tuple[Played, ...] = ()  # the runs with faults
    # the run of `played` with the highest rank, with its timeline; None if no run has ended
    worst: Played | None = None
    notes: tuple[str, ...] = ()  # sentences about assumptions
    remarks: tuple[str, ...] = ()  # sentences about the edit
    # why the API server or the service refuses the edit; empty if it is accepted
    refused: tuple[str, ...] = ()
    interrupted: bool = False  # True if the user ended the rehearsal with Ctrl-C

    @property
    def everything(self) -> tuple[Played, ...]:
        """The run without faults, if there is one, and all runs with faults."""
        return (() if self.undisturbed is None else (self.undisturbed,)) + self.played

    @property
    def durations(self) -> list[float]:
        """The seconds until the edit was complete, for each run with faults that completed the
        edit, sorted.
        """
        return sorted(each.duration for each in self.played if each.duration is not None)

    @property
    def allowed(self) -> int | None:
        """The largest number of instances that updates may make unavailable at one time.

        None if a budget sets no limit, or if no budget applies.
        """
        known = [each.allowed for each in self.limits if each.instances]
        return None if None in known else max((x for x in known if x is not None), default=None)

    def faults_of(self, seed: int) -> list[Fault]:
        """Returns the faults that the run with this seed draws."""
        return drawn(seed, self.kinds, self.settings.faults, self.within)

    def of_kind(self, kind: str) -> list[Played]:
        """Returns the runs whose faults include one of this kind."""
        return [
            each
            for each in self.played
            if any(fault.kind == kind for fault in self.faults_of(each.seed))
        ]


def rehearse(
    start: Start, settings: Settings, progress: Callable[[int], None] = lambda _count: None
) -> Rehearsal:
    """Simulates an edit once without faults, and then as often with faults as the settings say.

    Args:
        start: the common starting point of all runs.
        settings: the number of runs, and their faults.
        progress: called with the number of finished runs after each of them.
    """
    space = start.edited["metadata"]["namespace"]
    found = Rehearsal(start.observed.name, space, settings)
    exists = bool(start.observed.tapp["metadata"].get("uid"))
    kinds = settings.kinds or tuple(sorted(KINDS))
    kinds = tuple(each for each in kinds if exists or each != SECOND_EDIT)
    if not kinds:
        why = f"--fault {SECOND_EDIT} needs a TApp that exists: nothing could be taken back"
        return replace(found, refused=(why,))
    run = RehearsedRun(start)
    try:
        undisturbed = run.rehearse(0, ())
    except ApiError as error:
        return replace(found, refused=(str(error),))
    if run.hook.refused:
        return replace(found, refused=(run.hook.refused,))
    lasts = _UNKNOWN_DURATION if undisturbed.duration is None else undisturbed.duration
    found = replace(
        found,
        kinds=kinds,
        within=max(lasts, _LEAST_WITHIN) if settings.within is None else settings.within,
        limits=() if run.log.last is None else tuple(limits(run.log.last)),
        undisturbed=undisturbed,
        notes=tuple(start.assumed_times()),
    )
    seeds = range(settings.seed, settings.seed + settings.runs)
    if settings.replay is not None:
        seeds = range(settings.replay, settings.replay + 1)
    played: list[Played] = []
    # If the user presses Ctrl-C, no further run starts, and the report covers the completed runs.
    interrupted = True
    with suppress(KeyboardInterrupt):
        for each in _results(start, found, seeds):
            played.append(each)
            progress(len(played))
        interrupted = False
    found = replace(found, played=tuple(played), interrupted=interrupted)
    if not played:
        return found
    worst = max(played, key=lambda each: (each.rank, -each.seed))
    again = RehearsedRun(start).rehearse(worst.seed, found.faults_of(worst.seed), detailed=True)
    return replace(found, worst=again)


def _results(start: Start, found: Rehearsal, seeds: range) -> Iterator[Played]:
    """Yields the result of the run for each seed, in the order of the seeds.

    With many seeds, several processes share the runs.
    """
    processes = min(_processors(), len(seeds) // _RUNS_OF_A_PROCESS)
    if processes < 2 or "fork" not in get_all_start_methods():  # noqa: PLR2004 - one is this one
        yield from map(partial(_play, start, found), seeds)
        return
    _inherited[:] = [(start, found)]
    with get_context("fork").Pool(processes, initializer=_ignore_interruptions) as pool:
        yield from pool.imap(_play_inherited, seeds, chunksize=4)


def _play(start: Start, found: Rehearsal, seed: int) -> Played:
    return RehearsedRun(start).rehearse(seed, found.faults_of(seed))


_inherited: list[tuple[Start, Rehearsal]] = []
"""The arguments of `_play` for the processes of the pool. The main process sets them before it
forks, so that each process inherits them and gets only a seed for each run.
"""


def _play_inherited(seed: int) -> Played:
    return _play(*_inherited[0], seed)


def _ignore_interruptions() -> None:
    """Ignores Ctrl-C in a process of the pool, because the main process handles it and ends the
    pool.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _processors() -> int:
    affinity = getattr(os, "sched_getaffinity", None)  # macOS and Windows do not have this function
    return len(affinity(0)) if affinity is not None else os.cpu_count() or 1
